// A scenario: everything that was asked, typed and located. `read_scenario` touches the disk;
// nothing after it does.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/diagnostics.h"
#include "sim/scenario/assumptions.h"
#include "sim/scenario/hardware_spec.h"
#include "sim/scenario/job_spec.h"
#include "sim/scenario/model_spec.h"

namespace sim {

struct Scenario {
  std::string name;  // the file's stem
  std::string path;
  ModelSpec model;
  ClusterSpec cluster;
  SoftwareSpec software;
  JobSpec job;
  AllocatorSpec allocator;
  ObservedSpec observed;
  std::vector<Expectation> expect;
  Assumptions assumptions;
};

// Where models/ and hardware/ are found.
struct DataRoots {
  std::string models;
  std::string hardware;
};
// Below the folder that the environment variable REHEARSE_HOME names, else below the source tree
// that this library was built from.
DataRoots default_data_roots();

// One `key=value` of the command line, laid over the file before it is read:
// {"job.micro_batch_size", "4"}.
using Override = std::pair<std::string, std::string>;

// Reads what can be read of the file: nullopt only where it cannot be parsed. With errors filed the
// rest is good for one thing, to let the floors above name their own mistakes in the same run.
std::optional<Scenario> read_scenario_partly(const std::string& path, const DataRoots& roots,
                                             const std::vector<Override>& overrides,
                                             Diagnostics& diagnostics);

// Reads, checks what can be checked on this floor, and files every default as an assumption. All
// mistakes of the file are filed in one go; nullopt if there is any error.
std::optional<Scenario> read_scenario(const std::string& path, const DataRoots& roots,
                                      const std::vector<Override>& overrides,
                                      Diagnostics& diagnostics);

// The same from a file already in memory. `keys` collects every key that the reader knows, dotted.
std::optional<Scenario> read_scenario(std::shared_ptr<const SourceFile> file,
                                      const DataRoots& roots,
                                      const std::vector<Override>& overrides,
                                      Diagnostics& diagnostics,
                                      std::set<std::string>* keys = nullptr);

}  // namespace sim
