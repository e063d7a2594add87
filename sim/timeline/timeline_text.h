// A Timeline as stable text for golden files and for comparing two runs: the same timeline gives
// the same bytes. Sizes are bytes and times picoseconds, both exact; what is zero or empty is left
// out.
//
//   verdict fits
//   process 0 exit 0
//   ranks 0-3 program 0 ops 12 launches 3 finished 15400000 total 1073741824
//     phase load 0..1000000 allocated 104857600/104857600 reserved 104857600/104857600 ...
//   host 0 capacity 1073741824 anonymous 209715200
//   kernel 0 compute 5500000..112345678 is fill of model.layers.0
#pragma once

#include <string>

#include "sim/timeline/timeline.h"

namespace sim {

std::string to_text(const Timeline& timeline);

}  // namespace sim
