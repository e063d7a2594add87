#include "sim/network/sharing.h"

#include <algorithm>
#include <limits>

namespace sim::network {

std::vector<double> max_min_rates(std::span<const double> capacities,
                                  std::span<const std::vector<std::uint32_t>> routes) {
  constexpr double kUnbounded = std::numeric_limits<double>::infinity();
  std::vector<double> rates(routes.size(), kUnbounded);
  std::vector<double> left(capacities.begin(), capacities.end());
  std::vector<std::vector<std::uint32_t>> flows_on(capacities.size());
  std::vector<std::uint32_t> growing(capacities.size(), 0);
  for (std::uint32_t flow = 0; flow < routes.size(); ++flow) {
    for (const std::uint32_t link : routes[flow]) {
      flows_on[link].push_back(flow);
      ++growing[link];
    }
  }
  for (;;) {
    // The link that is full first; among equals the lowest.
    double share = kUnbounded;
    std::uint32_t full = 0;
    for (std::uint32_t link = 0; link < left.size(); ++link) {
      if (growing[link] == 0) continue;
      const double here = std::max(left[link], 0.0) / growing[link];
      if (here < share) {
        share = here;
        full = link;
      }
    }
    if (share == kUnbounded) return rates;
    for (const std::uint32_t flow : flows_on[full]) {
      if (rates[flow] != kUnbounded) continue;
      rates[flow] = share;
      for (const std::uint32_t link : routes[flow]) {
        left[link] -= share;
        --growing[link];
      }
    }
  }
}

}  // namespace sim::network
