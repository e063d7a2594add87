#include "sim/report/memory_snapshot.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

#include "sim/report/pickle.h"

namespace sim::report {

namespace {

// The phase that is open when an op runs.
class PhaseOf {
 public:
  explicit PhaseOf(const program::Program& program) : program_(program) {
    for (std::size_t i = 0; i < program.ops.size(); ++i) {
      if (const auto* begin = std::get_if<program::BeginPhase>(&program.ops[i].body)) {
        begins_.emplace_back(static_cast<std::uint32_t>(i), begin->phase);
      }
    }
  }
  std::string_view operator()(std::uint32_t op) const {
    const auto after = std::upper_bound(begins_.begin(), begins_.end(), op,
                                        [](std::uint32_t o, const auto& b) { return o < b.first; });
    if (after == begins_.begin()) return "start";
    return program_.phases[std::prev(after)->second];
  }

 private:
  const program::Program& program_;
  std::vector<std::pair<std::uint32_t, program::PhaseId>> begins_;
};

// Writes one rank's part; remembers which tensor lies where.
class RankWriter {
 public:
  RankWriter(Pickle& pickle, const program::Program& program, RankId rank)
      : p_(pickle), program_(program), phase_of_(program), rank_(rank) {}

  void event(const TraceEvent& e) {
    p_.begin_dict();
    field("action", to_text(e.action));
    if (e.action == AllocatorAction::oom) {
      field("device_free", e.free.count);
    } else {
      field("addr", static_cast<std::int64_t>(e.address));
    }
    field("size", e.size.count);
    field("stream", e.stream);
    field("time_us", e.at.time_since_epoch() / Duration{1'000'000});
    if (e.action == AllocatorAction::alloc) owners_[e.address] = {e.tensor, e.op};
    p_.key("frames");
    if (e.action == AllocatorAction::oom) {
      frames({e.tensor, e.op});
    } else if (const auto owner = owners_.find(e.address); owner != owners_.end() && of_block(e)) {
      frames(owner->second);
    } else {
      no_frames();
    }
    p_.end_dict();
  }

  void segment(const SegmentView& s) {
    Bytes allocated{}, active{}, requested{};
    for (const SegmentView::Block& b : s.blocks) {
      if (b.allocated) allocated += b.size;
      if (b.active) active += b.size;
      if (b.active) requested += b.requested;
    }
    p_.begin_dict();
    field("device", rank_.value);
    field("address", static_cast<std::int64_t>(s.address));
    field("total_size", s.size.count);
    field("allocated_size", allocated.count);
    field("active_size", active.count);
    field("requested_size", requested.count);
    field("stream", s.stream);
    field("segment_type", s.small_pool ? "small" : "large");
    p_.key("segment_pool_id");
    p_.begin_tuple();
    p_.number(0);
    p_.number(0);
    p_.end_tuple();
    p_.key("is_expandable");
    p_.truth(s.expandable);
    p_.key("frames");
    no_frames();
    p_.key("blocks");
    p_.begin_list();
    for (const SegmentView::Block& b : s.blocks) block(b);
    p_.end_list();
    p_.end_dict();
  }

 private:
  using Owner = std::pair<std::uint32_t, std::uint32_t>;  // tensor, op of its allocation

  static bool of_block(const TraceEvent& e) { return e.action <= AllocatorAction::free_completed; }
  void field(std::string_view name, std::string_view value) {
    p_.key(name);
    p_.text(value);
  }
  void field(std::string_view name, std::int64_t value) {
    p_.key(name);
    p_.number(value);
  }
  void no_frames() {
    p_.begin_list();
    p_.end_list();
  }
  void block(const SegmentView::Block& b) {
    p_.begin_dict();
    field("address", static_cast<std::int64_t>(b.address));
    field("size", b.size.count);
    field("requested_size", (b.active ? b.requested : b.size).count);
    field("state", b.allocated ? "active_allocated"
                   : b.active  ? "active_pending_free"
                               : "inactive");
    p_.key("frames");
    const auto owner = owners_.find(b.address);
    if (b.active && owner != owners_.end()) {
      frames(owner->second);
    } else {
      no_frames();
    }
    p_.end_dict();
  }
  void frame(std::string_view filename, std::string_view name) {
    p_.begin_dict();
    field("filename", filename);
    field("line", 0);
    field("name", name);
    p_.end_dict();
  }
  // Equal lists of frames are written once.
  void frames(const Owner& owner) {
    const std::string_view phase = phase_of_(owner.second);
    const auto [known, is_new] = frames_.try_emplace({owner.first, phase}, 0);
    if (!is_new) {
      p_.recall(known->second);
      return;
    }
    const program::TensorInfo& info = program_.tensors[program::TensorId{owner.first}];
    std::string name = info.scope.valid() ? program_.scopes[info.scope] : std::string{};
    if (name.empty()) name = "(model)";
    if (info.label.valid()) name += " (" + program_.labels[info.label] + ")";
    if (info.saved_by.valid()) name += ", saved by " + program_.labels[info.saved_by];
    p_.begin_list();
    frame(to_text(info.memory_class), name);
    frame("phase", phase);
    p_.end_list();
    known->second = p_.remember();
  }

  Pickle& p_;
  const program::Program& program_;
  PhaseOf phase_of_;
  RankId rank_;
  std::unordered_map<std::uint64_t, Owner> owners_;  // by address
  std::map<std::pair<std::uint32_t, std::string_view>, std::uint32_t> frames_;
};

}  // namespace

std::string memory_snapshot(const program::Workload& workload, const Timeline& timeline) {
  Pickle p;
  std::vector<RankWriter> writers;
  std::map<RankId, std::size_t> writer_of;
  std::uint32_t devices = 0;
  for (const RankRecord& record : timeline.ranks) {
    writer_of[record.ranks.front()] = writers.size();
    writers.emplace_back(p, workload.programs[record.program], record.ranks.front());
    devices = std::max(devices, record.ranks.front().value + 1);
  }
  std::vector<std::vector<const TraceEvent*>> events(devices);
  for (const TraceEvent& e : timeline.allocator_events) events[e.rank.value].push_back(&e);

  p.begin_dict();
  p.key("device_traces");
  p.begin_list();
  for (std::uint32_t device = 0; device < devices; ++device) {
    p.begin_list();
    const auto writer = writer_of.find(RankId{device});
    for (const TraceEvent* e : events[device]) writers[writer->second].event(*e);
    p.end_list();
  }
  p.end_list();
  p.key("segments");
  p.begin_list();
  for (std::size_t i = 0; i < writers.size(); ++i) {
    for (const SegmentView& s : timeline.ranks[i].segments) writers[i].segment(s);
  }
  p.end_list();
  p.key("allocator_settings");
  p.begin_dict();
  p.end_dict();
  p.key("external_annotations");
  p.begin_list();
  p.end_list();
  p.end_dict();
  return std::move(p).finish();
}

}  // namespace sim::report
