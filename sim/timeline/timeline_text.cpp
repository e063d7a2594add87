#include "sim/timeline/timeline_text.h"

#include <fmt/format.h>

#include <iterator>

namespace sim {

namespace {

// Collects one line of "name value" pairs.
class Line {
 public:
  explicit Line(std::string start) : text_(std::move(start)) {}

  Line& add(std::string_view name, Bytes b) { return add(name, b.count); }
  Line& add(std::string_view name, std::int64_t n) {
    if (n != 0) fmt::format_to(std::back_inserter(text_), " {} {}", name, n);
    return *this;
  }
  Line& add(std::string_view name, Bytes peak, Bytes end) {
    if (peak.count != 0) {
      fmt::format_to(std::back_inserter(text_), " {} {}/{}", name, peak.count, end.count);
    }
    return *this;
  }
  Line& add(std::string_view name, std::string_view value) {
    if (!value.empty()) fmt::format_to(std::back_inserter(text_), " {} {}", name, value);
    return *this;
  }
  std::string text() const { return text_ + '\n'; }

 private:
  std::string text_;
};

std::int64_t picoseconds(Instant t) { return t.time_since_epoch().count(); }

// "0-3,5,7-8" for ascending ranks.
std::string ranges(const std::vector<RankId>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1].value == ranks[last].value + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(ranks[i].value);
    if (last > i) text += '-' + std::to_string(ranks[last].value);
    i = last + 1;
  }
  return text;
}

// Messages can have several lines; each stands indented on its own.
std::string message_lines(std::string_view message) {
  std::string text;
  while (!message.empty()) {
    const std::size_t end = message.find('\n');
    fmt::format_to(std::back_inserter(text), "  | {}\n", message.substr(0, end));
    message.remove_prefix(end == std::string_view::npos ? message.size() : end + 1);
  }
  return text;
}

struct VerdictText {
  std::string operator()(const Fits&) const { return "verdict fits\n"; }
  std::string operator()(const CudaOutOfMemory& v) const {
    return Line(fmt::format("verdict cuda_out_of_memory rank {}", v.rank.value))
               .add("phase", v.phase)
               .add("scope", v.scope)
               .add("tensor", v.tensor)
               .add("requested", v.requested)
               .add("tried", v.tried)
               .add("allocated", v.allocated)
               .add("reserved", v.reserved)
               .add("free", v.free)
               .add("total", v.total)
               .add("at", picoseconds(v.at))
               .text() +
           message_lines(v.message);
  }
  std::string operator()(const HostOutOfMemory& v) const {
    return Line(fmt::format("verdict host_out_of_memory host {} rank {}", v.host.value,
                            v.rank.value))
               .add("phase", v.phase)
               .add("scope", v.scope)
               .add("requested", v.requested)
               .add("capacity", v.capacity)
               .add("used", v.used)
               .add("at", picoseconds(v.at))
               .text() +
           message_lines(v.message);
  }
  std::string operator()(const Hang& v) const {
    return Line(fmt::format("verdict hang waiting {} missing {} collective {}", ranges(v.waiting),
                            ranges(v.missing), to_text(v.collective)))
               .add("phase", v.phase)
               .add("scope", v.scope)
               .add("watchdog", v.watchdog.count())
               .add("at", picoseconds(v.at))
               .text() +
           message_lines(v.message) + message_lines("missing: " + v.missing_is_doing);
  }
  std::string operator()(const Crashed& v) const {
    return Line(fmt::format("verdict crashed rank {}", v.rank.value))
               .add("phase", v.phase)
               .add("scope", v.scope)
               .add("allocated", v.allocated)
               .add("reserved", v.reserved)
               .add("free", v.free)
               .add("total", v.total)
               .add("at", picoseconds(v.at))
               .text() +
           message_lines(v.message);
  }
};

std::string phase_text(const PhaseRecord& phase) {
  Line line(fmt::format("  phase {} {}..{}", phase.name, picoseconds(phase.begin),
                        picoseconds(phase.end)));
  line.add("allocated", phase.peak_allocated, phase.end_allocated)
      .add("reserved", phase.peak_reserved, phase.end_reserved)
      .add("device_used", phase.peak_device_used)
      .add("peak_op", phase.peak_op);
  for (int c = 0; c < kMemoryClasses; ++c) {
    line.add(to_text(static_cast<MemoryClass>(c)),
             phase.peak_by_class[static_cast<std::size_t>(c)]);
  }
  return line.add("host_anonymous", phase.host_anonymous)
      .add("host_pinned", phase.host_pinned)
      .add("warnings", phase.warnings)
      .add("alloc_retries", phase.alloc_retries)
      .text();
}

std::string warning_text(const WarningRecord& warning) {
  return Line(fmt::format("  warning x{}", warning.count))
             .add("phase", warning.phase)
             .add("scope", warning.scope)
             .add("tried", warning.tried)
             .add("allocated", warning.allocated)
             .add("reserved", warning.reserved)
             .add("free", warning.free)
             .text() +
         message_lines(warning.text);
}

std::string rank_text(const RankRecord& rank) {
  std::string text =
      Line("ranks " + ranges(rank.ranks) + " program " + std::to_string(rank.program))
          .add("ops", rank.ops_done)
          .add("launches", rank.launches)
          .add("finished", picoseconds(rank.finished))
          .add("external", rank.external)
          .add("total", rank.total)
          .add("failed_allocs", fmt::format("{}", fmt::join(rank.failed_allocs, ",")))
          .text();
  for (const PhaseRecord& phase : rank.phases) text += phase_text(phase);
  for (const WarningRecord& warning : rank.warnings) text += warning_text(warning);
  return text;
}

std::string host_text(const HostRecord& host) {
  std::string text = Line(fmt::format("host {}", host.host.value))
                         .add("capacity", host.capacity)
                         .add("anonymous", host.peak_anonymous)
                         .add("pinned", host.peak_pinned)
                         .add("file_backed", host.peak_file_backed)
                         .text();
  for (const HostPhaseRecord& phase : host.phases) {
    text += Line("  phase " + phase.name)
                .add("anonymous", phase.peak_anonymous)
                .add("pinned", phase.peak_pinned)
                .add("file_backed", phase.peak_file_backed)
                .add("begin_anonymous", phase.begin_anonymous)
                .text();
  }
  return text;
}

std::string slice_text(const Slice& slice, const Timeline& timeline) {
  constexpr std::string_view kinds[] = {"kernel",    "collective", "copy",
                                        "host_work", "wait",       "allocator"};
  const std::string_view place = slice.on_host ? "host" : to_text(slice.stream);
  return Line(fmt::format("{} {} {} {}..{}", kinds[static_cast<int>(slice.kind)], slice.rank.value,
                          place, picoseconds(slice.begin), picoseconds(slice.end)))
      .add("is", slice.label < timeline.labels.size() ? timeline.labels[slice.label] : "")
      .add("of", slice.scope.valid() ? timeline.scopes[slice.scope] : "")
      .text();
}

}  // namespace

std::string to_text(const Timeline& timeline) {
  std::string text = std::visit(VerdictText{}, timeline.verdict);
  for (const ProcessExit& process : timeline.processes) {
    text += Line(fmt::format("process {} exit {}", process.rank.value, process.exit_code))
                .add("signal", process.signal)
                .text();
  }
  for (const RankRecord& rank : timeline.ranks) text += rank_text(rank);
  for (const HostRecord& host : timeline.hosts) text += host_text(host);
  for (const Slice& slice : timeline.slices) text += slice_text(slice, timeline);
  for (const MemorySample& sample : timeline.memory) {
    text += fmt::format("memory {} op {} at {} allocated {} reserved {} device_used {}\n",
                        sample.rank.value, sample.op, picoseconds(sample.at),
                        sample.allocated.count, sample.reserved.count, sample.device_used.count);
  }
  for (const LinkSample& sample : timeline.links) {
    text += fmt::format("link {} {}..{} bytes {}\n", sample.link, picoseconds(sample.begin),
                        picoseconds(sample.end), sample.bytes.count);
  }
  return text;
}

}  // namespace sim
