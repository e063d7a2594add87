#include "sim/network/topology.h"
