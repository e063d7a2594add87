#include "sim/program/libraries/facts.h"
#include "sim/program/libraries/since.h"

namespace sim::program {

namespace {

std::string_view beside(const Release& torch) {
  return by_release<std::string_view>({torch.major, torch.minor, torch.patch, {}},
                                      {{{1, 13, 0, {}}, "0.18.0"},
                                       {{2, 0, 0, {}}, "0.21.0"},
                                       {{2, 1, 0, {}}, "0.24.1"},
                                       {{2, 2, 0, {}}, "0.27.2"},
                                       {{2, 3, 0, {}}, "0.30.1"},
                                       {{2, 4, 0, {}}, "0.33.0"},
                                       {{2, 5, 0, {}}, "1.1.1"},
                                       {{2, 6, 0, {}}, "1.3.0"},
                                       {{2, 7, 0, {}}, "1.7.0"},
                                       {{2, 8, 0, {}}, "1.10.1"},
                                       {{2, 9, 0, {}}, "1.12.0"}});
}

bool used_by(const JobSpec& job) { return job.quantization.has_value(); }

}  // namespace

const Library kAccelerate{"accelerate", "placing of tensors on devices", "1.12.0", beside, used_by};

// utils/modeling.py set_module_tensor_to_device: empty_cache() at its end, in 0.22 whatever the
// device, in 0.31 unless it is the CPU. Releases before 0.21 do not call it.
bool placing_empties_cache(const Software& software) {
  const Release& r = software.of("accelerate");
  return r >= Release{0, 21, 0, {}};
}

}  // namespace sim::program
