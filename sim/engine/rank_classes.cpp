#include "sim/engine/rank_classes.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace sim::engine {

namespace {

// By rank, the groups that it is in and that its program names, ascending.
std::vector<std::vector<std::uint32_t>> memberships(const program::Workload& workload) {
  std::vector<std::set<std::uint32_t>> named(workload.programs.size());
  for (std::size_t p = 0; p < named.size(); ++p) {
    for (const auto& call : workload.programs[p].collectives) named[p].insert(call.group.value);
  }
  std::vector<std::vector<std::uint32_t>> groups(workload.program_of.size());
  for (std::uint32_t g = 0; g < workload.groups.size(); ++g) {
    for (const RankId rank : workload.groups[GroupId{g}].ranks) {
      if (named[workload.program_of[rank]].contains(g)) groups[rank.value].push_back(g);
    }
  }
  return groups;
}

}  // namespace

RankClasses fold_ranks(const program::Workload& workload, bool fold) {
  RankClasses classes;
  const auto groups = memberships(workload);
  std::map<std::pair<std::uint32_t, std::vector<std::uint32_t>>, std::uint32_t> known;
  for (RankId rank{0}; rank.value < workload.program_of.size(); ++rank.value) {
    const auto next = static_cast<std::uint32_t>(classes.ranks.size());
    std::uint32_t index = next;
    if (fold) {
      index =
          known.try_emplace({workload.program_of[rank], groups[rank.value]}, next).first->second;
    }
    if (index == next) classes.ranks.emplace_back();
    classes.ranks[index].push_back(rank);
    classes.class_of.push_back(index);
  }
  return classes;
}

}  // namespace sim::engine
