// What a scenario left out and Rehearse chose: every default is filed here and printed in the
// report.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace sim {

struct Assumption {
  std::string key;    // dotted path of the field: "job.micro_batch_size"
  std::string value;  // as it would be written: "1", "80 GiB"
  std::string why;    // one clause, with the source where there is one
};

class Assumptions {
 public:
  // The same key twice keeps the later value.
  void add(std::string key, std::string value, std::string why);
  const std::vector<Assumption>& all() const { return items_; }

 private:
  std::vector<Assumption> items_;
};

}  // namespace sim
