#include "sim/engine/rendezvous.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"

namespace sim::engine {

Rendezvous::Rendezvous(const program::Workload& workload, const RankClasses& classes)
    : workload_(&workload),
      members_(workload.groups.size(), std::vector<std::uint32_t>(classes.everyone() + 1, 0)),
      issued_(workload.groups.size(), std::vector<std::uint64_t>(classes.everyone() + 1, 0)),
      open_(workload.groups.size()) {
  for (std::uint32_t g = 0; g < workload.groups.size(); ++g) {
    for (const RankId rank : workload.groups[GroupId{g}].ranks) {
      ++members_[g][classes.class_of[rank]];
      ++members_[g][classes.everyone()];
    }
  }
}

void Rendezvous::part() {
  for (std::uint32_t g = 0; g < issued_.size(); ++g) {
    CHECK(open_[g].empty(), "a collective that everyone issues as one ends at once");
    std::fill(issued_[g].begin(), issued_[g].end(), issued_[g].back());
  }
}

std::uint32_t Rendezvous::issue(std::uint32_t rank_class, const program::CollectiveCall& call,
                                ScopeId scope, Instant now, Duration duration) {
  const std::uint32_t group = call.group.value;
  const std::uint64_t number = ++issued_[group][rank_class];
  std::vector<std::uint32_t>& open = open_[group];
  auto found = std::find_if(open.begin(), open.end(), [&](std::uint32_t m) {
    return meetings_[m].number == number && !meetings_[m].stranger;
  });
  const bool stranger = members_[group][rank_class] == 0;
  if (found == open.end() || stranger) {
    if (vacant_.empty()) {
      vacant_.push_back(static_cast<std::uint32_t>(meetings_.size()));
      meetings_.emplace_back();
    }
    Meeting& fresh = meetings_[vacant_.back()];
    fresh.group = call.group;
    fresh.number = number;
    fresh.entrants.clear();
    fresh.members = fresh.arrived = 0;
    fresh.ready = {};
    fresh.duration = duration;
    fresh.matches = fresh.open = true;
    fresh.stranger = stranger;
    found = open.insert(open.end(), vacant_.back());
    vacant_.pop_back();
  }
  Meeting& meeting = meetings_[*found];
  if (!meeting.entrants.empty()) {
    const program::CollectiveCall& first = meeting.entrants.front().call;
    if (first.kind != call.kind || first.bytes != call.bytes) meeting.matches = false;
  }
  meeting.entrants.push_back({rank_class, call, scope, now, false, {}});
  meeting.members += members_[group][rank_class];
  return *found;
}

bool Rendezvous::arrive(std::uint32_t index, std::uint32_t rank_class, StreamRole role,
                        Instant ready) {
  Meeting& meeting = meetings_[index];
  for (Entrant& entrant : meeting.entrants) {
    if (entrant.rank_class != rank_class) continue;
    entrant.arrived = true;
    entrant.role = role;
  }
  meeting.arrived += members_[meeting.group.value][rank_class];
  meeting.ready = std::max(meeting.ready, ready);
  return meeting.matches && !meeting.stranger &&
         meeting.arrived == workload_->groups[meeting.group].ranks.size();
}

void Rendezvous::close(std::uint32_t index) {
  Meeting& meeting = meetings_[index];
  meeting.open = false;
  std::vector<std::uint32_t>& open = open_[meeting.group.value];
  open.erase(std::find(open.begin(), open.end(), index));
  vacant_.push_back(index);
}

bool Rendezvous::all_entered(const Meeting& meeting) const {
  return meeting.matches && !meeting.stranger &&
         meeting.members == workload_->groups[meeting.group].ranks.size();
}

const Rendezvous::Meeting* Rendezvous::oldest_open() const {
  const Meeting* oldest = nullptr;
  const auto order = [&](const Meeting& meeting) {
    Instant last{};
    for (const Entrant& entrant : meeting.entrants) last = std::max(last, entrant.issued);
    return std::pair(all_entered(meeting), last);
  };
  for (const auto& open : open_) {
    for (const std::uint32_t index : open) {
      const Meeting& meeting = meetings_[index];
      if (oldest == nullptr || order(meeting) < order(*oldest)) oldest = &meeting;
    }
  }
  return oldest;
}

std::vector<const Rendezvous::Meeting*> Rendezvous::entered_by(std::uint32_t rank_class) const {
  std::vector<const Meeting*> entered;
  for (const auto& open : open_) {
    for (const std::uint32_t index : open) {
      const auto& entrants = meetings_[index].entrants;
      if (std::any_of(entrants.begin(), entrants.end(),
                      [&](const Entrant& e) { return e.rank_class == rank_class; })) {
        entered.push_back(&meetings_[index]);
      }
    }
  }
  return entered;
}

}  // namespace sim::engine
