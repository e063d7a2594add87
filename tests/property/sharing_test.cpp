#include <algorithm>
#include <random>

#include "sim/network/sharing.h"
#include "tests/support/catch.h"

namespace sim::network {
namespace {

using Routes = std::vector<std::vector<std::uint32_t>>;

Routes random_routes(std::mt19937& random, std::uint32_t links, std::size_t flows) {
  Routes routes(flows);
  for (auto& route : routes) {
    for (std::uint32_t link = 0; link < links; ++link) {
      if (random() % 4 == 0) route.push_back(link);
    }
    if (route.empty()) route.push_back(static_cast<std::uint32_t>(random() % links));
  }
  return routes;
}

TEST_CASE("no link is over capacity and every flow has a bottleneck where none is faster") {
  std::mt19937 random(20240501);
  for (int round = 0; round < 300; ++round) {
    const auto links = static_cast<std::uint32_t>(1 + random() % 12);
    std::vector<double> capacities(links);
    for (double& c : capacities) c = static_cast<double>(1 + random() % 1000);
    const Routes routes = random_routes(random, links, random() % 40);
    const std::vector<double> rates = max_min_rates(capacities, routes);

    std::vector<double> load(links, 0), fastest(links, 0);
    for (std::size_t flow = 0; flow < routes.size(); ++flow) {
      for (const std::uint32_t link : routes[flow]) {
        load[link] += rates[flow];
        fastest[link] = std::max(fastest[link], rates[flow]);
      }
    }
    const double slack = 1e-9;
    for (std::uint32_t link = 0; link < links; ++link) {
      REQUIRE(load[link] <= capacities[link] * (1 + slack));
    }
    for (std::size_t flow = 0; flow < routes.size(); ++flow) {
      REQUIRE(std::any_of(routes[flow].begin(), routes[flow].end(), [&](std::uint32_t link) {
        return load[link] >= capacities[link] * (1 - slack) &&
               rates[flow] >= fastest[link] * (1 - slack);
      }));
    }
  }
}

}  // namespace
}  // namespace sim::network
