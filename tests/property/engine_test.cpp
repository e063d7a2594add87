// Random jobs: folding ranks changes nothing, two runs give the same text, memory is accounted for.
#include <fmt/core.h>
#include <rapidcheck.h>

#include <map>
#include <sstream>
#include <string>

#include "sim/timeline/timeline_text.h"
#include "tests/unit/engine/hand_program.h"

#include "tests/support/catch.h"

namespace sim::engine {
namespace {

constexpr std::uint32_t kRanks = 8;

int pick(int below) { return *rc::gen::inRange(0, below); }

// One random op. Tensors and buffers come up again and again; every rank calls the collectives that
// its program names in the same order, so nothing but the random mismatch of two programs hangs.
void add_random_op(HandProgram& p, program::CollectiveId gather) {
  const auto streams = {StreamRole::compute, StreamRole::unshard, StreamRole::communication};
  p.on(*(streams.begin() + pick(3)));
  const program::TensorId tensor{static_cast<std::uint32_t>(pick(12))};
  switch (pick(13)) {
    case 0:
    case 1:
    case 2:
      p.alloc(tensor);
      break;
    case 3:
      p.free(tensor);
      break;
    case 4:
      p.add(program::RecordStream{tensor, StreamRole::compute}).free(tensor);
      break;
    case 5:
    case 6:
      p.launch(program::KernelId{static_cast<std::uint32_t>(pick(3))});
      break;
    case 7:
      p.call(gather);
      break;
    case 8:
      p.add(program::RecordEvent{program::EventId{static_cast<std::uint32_t>(pick(2))}});
      break;
    case 9:
      p.add(program::WaitEvent{program::EventId{static_cast<std::uint32_t>(pick(2))}});
      break;
    case 10:
      p.work(Duration{pick(50) * 1'000'000});
      break;
    case 11:
      p.sync();
      break;
    default:
      // Programs that ask their host at the same picosecond may be served in either order.
      p.work(Duration{1 + pick(1'000'000)});
      p.add(program::HostAlloc{program::HostBufferId{static_cast<std::uint32_t>(pick(2))}});
  }
}

program::Program random_program() {
  HandProgram p;
  const auto gather = p.collective(CollectiveKind::all_gather, 8_MiB);
  for (int i = 0; i < 12; ++i) {
    p.tensor(Bytes{pick(60) * 1'000'000}, static_cast<MemoryClass>(pick(kMemoryClasses)));
    if (pick(4) == 0) p.program.tensors.back().on_failure = program::OnFailure::warn;
  }
  for (int i = 0; i < 3; ++i) p.kernel(Bytes{1 + pick(200) * 1'000'000});
  p.buffer(Bytes{pick(200) * 1'000'000});
  p.buffer(Bytes{pick(200) * 1'000'000}, HostMemoryKind::pinned);
  p.event();
  p.event();
  const int ops = pick(120);
  for (int i = 0; i < ops; ++i) {
    if (pick(15) == 0) p.phase(pick(2) == 0 ? "step" : "save");
    add_random_op(p, gather);
    if (pick(20) == 0) {
      p.add(program::Loop{static_cast<std::uint32_t>(1 + pick(6)),
                          static_cast<std::uint32_t>(pick(5))});
    }
  }
  return p.program;
}

// One or two programs, dealt out at random; a second one makes hangs likely.
program::Workload random_workload() {
  std::vector<program::Program> programs{random_program()};
  if (pick(2) == 0) programs.push_back(random_program());
  std::vector<std::uint32_t> program_of;
  for (std::uint32_t r = 0; r < kRanks; ++r) {
    program_of.push_back(static_cast<std::uint32_t>(pick(static_cast<int>(programs.size()))));
  }
  return hand_workload(std::move(programs), kRanks, program_of);
}

Machine small_machine() {
  const auto gpus = static_cast<std::uint32_t>(4 + 4 * pick(2));
  return hand_machine(kRanks, Bytes{(100 + pick(400)) * 1'000'000LL}, gpus);
}

// The record of each class's first rank under the names that the folded run gives it.
Timeline fold(const Timeline& single, const Timeline& folded) {
  Timeline result = single;
  result.ranks.clear();
  for (const RankRecord& record : folded.ranks) {
    result.ranks.push_back(single.ranks[record.ranks.front().value]);
    result.ranks.back().ranks = record.ranks;
  }
  return result;
}

// A failure cuts other ranks and hosts off wherever they were: their records are not compared.
Timeline without_bystanders(Timeline t) {
  const auto* oom = std::get_if<CudaOutOfMemory>(&t.verdict);
  const auto* host = std::get_if<HostOutOfMemory>(&t.verdict);
  if (oom == nullptr && host == nullptr) return t;
  std::erase_if(t.ranks, [&](const RankRecord& record) {
    return oom == nullptr || record.ranks.front() != oom->rank;
  });
  std::erase_if(t.hosts, [&](const HostRecord& record) {
    return host == nullptr || record.host != host->host;
  });
  return t;
}

// Empty if the texts are equal.
std::string first_difference(const std::string& a, const std::string& b) {
  std::istringstream lines_a(a), lines_b(b);
  std::string line_a, line_b;
  while (std::getline(lines_a, line_a) && std::getline(lines_b, line_b)) {
    if (line_a != line_b) return fmt::format("{}\n{}", line_a, line_b);
  }
  return a == b ? "" : "one is longer";
}

TEST_CASE("ranks simulated as one and each by itself give the same") {
  CHECK(rc::check([] {
    const program::Workload workload = random_workload();
    const Machine machine = small_machine();
    // Without skipping on either side: only ranks that make up the whole job may skip.
    const Timeline folded = simulate(workload, machine, {.skip_repeats = false});
    const Timeline single =
        simulate(workload, machine, {.fold_ranks = false, .skip_repeats = false});
    RC_ASSERT(first_difference(to_text(without_bystanders(folded)),
                               to_text(without_bystanders(fold(single, folded)))) == "");
  }));
}

// Phases that a loop repeats alike are one record where they are skipped: here all records of one
// name are one.
Timeline with_phases_merged(Timeline t) {
  t.repeats.clear();
  for (RankRecord& rank : t.ranks) {
    std::map<std::string, PhaseRecord> merged;
    for (const PhaseRecord& phase : rank.phases) {
      const auto [found, first] = merged.try_emplace(phase.name, phase);
      PhaseRecord& all = found->second;
      all.begin = all.end = Instant{};  // a record that stands for several spans the others
      all.peak_op = 0;                  // the first of equal peaks, whichever record it is in
      if (first) continue;
      all.time += phase.time;
      all.alloc_retries += phase.alloc_retries;
      all.warnings += phase.warnings;
      all.peak_allocated = std::max(all.peak_allocated, phase.peak_allocated);
      all.peak_reserved = std::max(all.peak_reserved, phase.peak_reserved);
      all.peak_device_used = std::max(all.peak_device_used, phase.peak_device_used);
      all.host_anonymous = std::max(all.host_anonymous, phase.host_anonymous);
      all.host_pinned = std::max(all.host_pinned, phase.host_pinned);
      all.end_allocated = phase.end_allocated;
      all.end_reserved = phase.end_reserved;
      for (std::size_t c = 0; c < kMemoryClasses; ++c) {
        all.peak_by_class[c] = std::max(all.peak_by_class[c], phase.peak_by_class[c]);
      }
    }
    rank.phases.clear();
    for (auto& [name, phase] : merged) rank.phases.push_back(phase);
  }
  for (HostRecord& host : t.hosts) host.phases.clear();
  return t;
}

TEST_CASE("iterations skipped and run give the same") {
  CHECK(rc::check([] {
    const program::Workload workload = random_workload();
    const Machine machine = small_machine();
    const Timeline skipped = simulate(workload, machine);
    const Timeline run = simulate(workload, machine, {.skip_repeats = false});
    RC_ASSERT(first_difference(to_text(with_phases_merged(without_bystanders(skipped))),
                               to_text(with_phases_merged(without_bystanders(run)))) == "");
  }));
}

TEST_CASE("two runs give the same bytes") {
  CHECK(rc::check([] {
    const program::Workload workload = random_workload();
    const Machine machine = small_machine();
    const SimulateOptions options{.record_slices = true, .record_memory = true};
    RC_ASSERT(first_difference(to_text(simulate(workload, machine, options)),
                               to_text(simulate(workload, machine, options))) == "");
  }));
}

TEST_CASE("recording changes nothing, slices of a stream do not overlap, memory stays in bounds") {
  CHECK(rc::check([] {
    const program::Workload workload = random_workload();
    const Machine machine = small_machine();
    Timeline t = simulate(workload, machine, {.record_slices = true, .record_memory = true});
    std::map<std::pair<std::uint32_t, StreamRole>, Instant> busy_until;
    for (const Slice& slice : t.slices) {
      RC_ASSERT(slice.begin <= slice.end);
      if (slice.on_host) continue;
      Instant& until = busy_until[{slice.rank.value, slice.stream}];
      RC_ASSERT(slice.begin >= until);
      until = slice.end;
    }
    for (const MemorySample& sample : t.memory) {
      RC_ASSERT(sample.allocated <= sample.reserved);
      RC_ASSERT(sample.device_used <= machine.gpu.total);
    }
    t.slices.clear();
    t.memory.clear();
    RC_ASSERT(first_difference(to_text(t), to_text(simulate(workload, machine))) == "");
  }));
}

}  // namespace
}  // namespace sim::engine
