#include "sim/scenario/assumptions.h"

namespace sim {

void Assumptions::add(std::string key, std::string value, std::string why) {
  std::erase_if(items_, [&](const Assumption& item) { return item.key == key; });
  items_.push_back({std::move(key), std::move(value), std::move(why)});
}

}  // namespace sim
