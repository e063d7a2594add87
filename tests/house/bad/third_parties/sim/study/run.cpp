#include "sim/study/run.h"
#include <yaml-cpp/yaml.h>
