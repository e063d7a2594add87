// Fair shares of links: max-min rates of flows that run at the same time. Pure numbers: no time, no
// names, no units beyond those the caller gives the capacities.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sim::network {

// The max-min fair rate of each flow by progressive filling (Bertsekas and Gallager, Data Networks,
// 6.5.2): all rates grow together; when a link is full, its flows keep what they have. The result
// is the only one in which no link is over capacity and every flow crosses a full link on which no
// other flow is faster.
//
// `routes`: for each flow the links it crosses, each at most once. A flow without links is
// unbounded and gets infinity.
std::vector<double> max_min_rates(std::span<const double> capacities,
                                  std::span<const std::vector<std::uint32_t>> routes);

}  // namespace sim::network
