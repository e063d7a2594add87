#include "sim/plan/plan.h"
