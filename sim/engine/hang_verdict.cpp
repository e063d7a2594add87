#include "sim/engine/hang_verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/check.h"
#include "sim/base/units_text.h"

namespace sim::engine {

namespace {

// Process-group timeout of the NCCL backend where a script sets none: kProcessGroupDefaultTimeout,
// 30 minutes (torch/csrc/distributed/c10d/Types.hpp).
constexpr Duration kDefaultWatchdog = 1800_s;

// c10d's names (opTypeToString in torch/csrc/distributed/c10d/Work.cpp). A barrier is an all-reduce
// of one element.
std::string_view op_type(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::barrier:
      return "ALLREDUCE";
    case CollectiveKind::all_gather:
      return "_ALLGATHER_BASE";
    case CollectiveKind::reduce_scatter:
      return "_REDUCE_SCATTER_BASE";
    case CollectiveKind::broadcast:
      return "BROADCAST";
    case CollectiveKind::all_to_all:
      return "ALLTOALL_BASE";
  }
  return "UNKNOWN";
}

std::string in_words(const Rendezvous::Entrant& entrant, std::string_view group, const Rank& rank) {
  const std::string scope = rank.scope_name(entrant.scope);
  return fmt::format("{}{}{} of group {}", to_text(entrant.call.kind), scope.empty() ? "" : " of ",
                     scope, group);
}

bool differs(const Rendezvous::Entrant& a, const Rendezvous::Entrant& b) {
  return a.call.kind != b.call.kind || a.call.bytes != b.call.bytes;
}

const Rendezvous::Entrant* find(const Rendezvous::Meeting& meeting, std::uint32_t rank_class) {
  for (const auto& entrant : meeting.entrants) {
    if (entrant.rank_class == rank_class) return &entrant;
  }
  return nullptr;
}

// What a rank class that does not come is doing instead.
std::string doing(std::uint32_t rank_class, const Rendezvous& rendezvous, const Rank& rank,
                  const program::Workload& workload) {
  if (rank.finished()) return "finished its script";
  for (const Rendezvous::Meeting* meeting : rendezvous.entered_by(rank_class)) {
    const Rendezvous::Entrant& entrant = *find(*meeting, rank_class);
    if (!entrant.arrived) continue;  // behind another on its stream
    return "waits in " + in_words(entrant, workload.groups[meeting->group].name, rank);
  }
  return rank.waiting() ? "waits for its device" : "stopped in " + rank.phase_name();
}

// Classes with the same answer are named once.
void add_once(std::vector<std::string>& all, std::string words) {
  if (std::find(all.begin(), all.end(), words) == all.end()) all.push_back(std::move(words));
}

}  // namespace

Hang explain_hang(const Rendezvous& rendezvous, const RankClasses& classes,
                  const std::vector<std::unique_ptr<Rank>>& ranks,
                  const program::Workload& workload) {
  const Rendezvous::Meeting* meeting = rendezvous.oldest_open();
  CHECK(meeting != nullptr, "ranks wait for ever only in collectives");
  const Rendezvous::Entrant& first = meeting->entrants.front();
  const Rank& speaker = *ranks[first.rank_class];
  const program::Group& group = workload.groups[meeting->group];

  Hang hang;
  std::vector<std::string> answers;
  hang.collective = first.call.kind;
  hang.phase = speaker.phase_name();
  hang.scope = speaker.scope_name(first.scope);
  hang.watchdog = workload.watchdog > Duration{} ? workload.watchdog : kDefaultWatchdog;
  for (std::uint32_t c = 0; c < ranks.size(); ++c) {
    const Rendezvous::Entrant* entrant = find(*meeting, c);
    const bool waits = entrant != nullptr && !differs(*entrant, first) &&
                       (entrant->arrived || !rendezvous.all_entered(*meeting));
    if (waits) {
      hang.at = std::max(hang.at, entrant->issued);
      hang.waiting.insert(hang.waiting.end(), classes.ranks[c].begin(), classes.ranks[c].end());
      continue;
    }
    if (!rendezvous.is_member(c, meeting->group)) continue;
    for (const RankId rank : group.ranks) {
      if (classes.class_of[rank] == c) hang.missing.push_back(rank);
    }
    add_once(answers, entrant == nullptr || !differs(*entrant, first)
                          ? doing(c, rendezvous, *ranks[c], workload)
                          : fmt::format("is in {} of {} instead, which does not match {} of {}",
                                        in_words(*entrant, group.name, *ranks[c]),
                                        to_text(entrant->call.bytes), to_text(first.call.kind),
                                        to_text(first.call.bytes)));
  }
  if (meeting->stranger) {
    add_once(answers, fmt::format("the waiting rank is no member of group {}", group.name));
  }
  hang.missing_is_doing = fmt::format("{}", fmt::join(answers, "; "));
  std::sort(hang.waiting.begin(), hang.waiting.end());
  std::sort(hang.missing.begin(), hang.missing.end());
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(hang.watchdog).count();
  hang.message = fmt::format(
      "[Rank {}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={}, OpType={}, "
      "Timeout(ms)={}) ran for {} milliseconds before timing out.",
      hang.waiting.front().value, meeting->number, op_type(first.call.kind), limit, limit);
  return hang;
}

}  // namespace sim::engine
