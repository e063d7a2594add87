// Where the members of a group meet for a collective. The n-th collective that a member issues on a
// group belongs to the n-th of every other member (NCCL's rule for a communicator); if those differ
// in kind or size, none of them ever ends.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"
#include "sim/engine/rank_classes.h"
#include "sim/program/program.h"

namespace sim::engine {

class Rendezvous {
 public:
  struct Entrant {
    std::uint32_t rank_class = 0;
    program::CollectiveCall call;
    ScopeId scope;  // of its own program
    Instant issued;
    bool arrived = false;  // at the head of its stream
    StreamRole role = StreamRole::communication;
  };
  struct Meeting {
    GroupId group;
    std::uint64_t number = 0;  // from 1, as the watchdog's SeqNum
    std::vector<Entrant> entrants;
    std::size_t members = 0;  // ranks that issued it
    std::size_t arrived = 0;  // ranks whose streams are ready
    Instant ready{};          // the last of those
    Duration duration{};
    bool matches = true;    // all entrants agree on kind and bytes
    bool stranger = false;  // an entrant is no member of the group
    bool open = false;
  };

  Rendezvous(const program::Workload& workload, const RankClasses& classes);
  // Everyone's collectives so far were those of each class; none may be open.
  void part();

  // A rank class issues its next collective on the call's group; returns the meeting's number for
  // arrive().
  std::uint32_t issue(std::uint32_t rank_class, const program::CollectiveCall& call, ScopeId scope,
                      Instant now, Duration duration);
  // Its stream is ready for it. true: that was the last one; the meeting can be held and close()d.
  bool arrive(std::uint32_t meeting, std::uint32_t rank_class, StreamRole role, Instant ready);
  void close(std::uint32_t meeting);

  const Meeting& operator[](std::uint32_t meeting) const { return meetings_[meeting]; }
  // The open meeting whose last entrant came first, or null; one that a member never entered goes
  // before one that all have entered, but in different orders on their streams.
  const Meeting* oldest_open() const;
  bool all_entered(const Meeting& meeting) const;
  // The meetings that a rank class has entered and that are still open, in the order of entry.
  std::vector<const Meeting*> entered_by(std::uint32_t rank_class) const;
  bool is_member(std::uint32_t rank_class, GroupId group) const {
    return members_[group.value][rank_class] > 0;
  }

 private:
  const program::Workload* workload_;
  std::vector<std::vector<std::uint32_t>> members_;  // [group][class]: ranks of the class in it
  std::vector<std::vector<std::uint64_t>> issued_;   // [group][class]: collectives so far
  std::vector<std::vector<std::uint32_t>> open_;     // [group]: open meetings by number
  std::vector<Meeting> meetings_;
  std::vector<std::uint32_t> vacant_;  // closed meetings, used again
};

}  // namespace sim::engine
