// Small hand-made runs, one for each verdict: four processes on two hosts or on one, a program of a
// few tensors, and the timelines that the engine would give for it.
#pragma once

#include <string>
#include <utility>

#include "sim/report/report.h"

namespace sim::report::samples {

using namespace sim::literals;

// parameters 3 GiB, two layers' outputs kept by silu, then two clones of which the second fails.
struct SmallProgram {
  program::Program program;
  program::TensorId weights, first, second, clone0, clone1;
};

inline SmallProgram small_program() {
  SmallProgram s;
  program::Program& p = s.program;
  const auto scope = [&](const char* text) { return p.scopes.push_back(text); };
  const auto label = [&](const char* text) { return p.labels.push_back(text); };
  const program::LabelId shard = label("parameter shard"), output = label("silu output"),
                         silu = label("silu"), clone = label("state-dict clone");
  const auto tensor = [&](Bytes bytes, MemoryClass memory_class, ScopeId where,
                          program::LabelId what, program::LabelId saved_by = {}) {
    program::TensorInfo info;
    info.bytes = bytes;
    info.memory_class = memory_class;
    info.scope = where;
    info.label = what;
    info.saved_by = saved_by;
    return p.tensors.push_back(info);
  };
  s.weights = tensor(3_GiB, MemoryClass::parameters, scope("model.embed_tokens.weight"), shard);
  s.first = tensor(100_B, MemoryClass::activations, scope("model.layers.0.mlp"), output, silu);
  s.second = tensor(300_B, MemoryClass::activations, scope("model.layers.1.mlp"), output, silu);
  s.clone0 = tensor(1_GiB, MemoryClass::temporaries,
                    scope("model.layers.0.self_attn.q_proj.weight"), clone);
  s.clone1 = tensor(1_GiB, MemoryClass::temporaries,
                    scope("model.layers.1.self_attn.q_proj.weight"), clone);
  const auto add = [&](program::Body body) { p.ops.push_back({body, {}, StreamRole::compute}); };
  add(program::Alloc{s.weights});
  add(program::Loop{4, 3});
  add(program::Alloc{s.first});
  add(program::Alloc{s.second});
  add(program::Free{s.second});
  add(program::Free{s.first});
  add(program::Alloc{s.clone0});
  add(program::Alloc{s.clone1});
  add(program::Free{s.clone0});
  return s;
}

inline Scenario scenario(std::int64_t nodes, std::int64_t processes_per_node) {
  Scenario s;
  s.name = "sample";
  s.model.name = "tiny-model";
  s.job.trainer.name = "bare_loop";
  s.job.strategies.push_back({{"sharded", {}}, {}});
  s.job.precision.autocast = Located<DType>{DType::bf16, {}};
  s.cluster.node.name = "box";
  s.cluster.node.gpus = 8;
  s.cluster.gpu.peak[DType::bf16] = 100_TFLOPS;
  s.cluster.nodes.value = nodes;
  s.cluster.processes_per_node.value = processes_per_node;
  s.software.releases["torch"] = {{2, 0, 1, "2.0.1"}, {}};
  s.assumptions.add("job.sequence_length", "512", "the trainer's default");
  return s;
}

inline PhaseRecord phase(const std::string& name, Duration begin, Duration end, Bytes peak,
                         std::uint32_t peak_op) {
  PhaseRecord p;
  p.name = name;
  p.begin = Instant{begin};
  p.end = Instant{end};
  p.peak_allocated = peak;
  p.peak_reserved = peak + 64_MiB;
  p.end_allocated = peak;
  p.end_reserved = peak + 64_MiB;
  p.peak_device_used = peak + 1_GiB;
  p.peak_by_class[0] = peak;
  p.peak_op = peak_op;
  p.host_anonymous = 2_GiB;
  return p;
}

struct Sample {
  Scenario scenario;
  program::Workload workload;
  Timeline timeline;

  Report report() const {
    return analyse({scenario, workload, Flops{4e12}, 4096, scenario.assumptions, {}}, timeline);
  }
};

inline Sample fits() {
  Sample s;
  s.scenario = scenario(1, 4);
  s.scenario.cluster.visible_devices = {7, 6, 5, 4, 3, 2};
  s.workload.programs.push_back(small_program().program);
  s.workload.program_of = IdVector<RankId, std::uint32_t>(4, 0);
  RankRecord record;
  record.ranks = {RankId{0}, RankId{1}, RankId{2}, RankId{3}};
  record.phases = {phase("load", 0_s, 2_s, 3_GiB, 0), phase("step0.forward", 2_s, 3_s, 3_GiB, 0),
                   phase("step", 3_s, 4_s, 3_GiB + 1024_B, 3),
                   phase("step", 5_s, 6_s, 3_GiB + 512_B, 2)};
  record.ops_done = 9;
  record.external = 960_MiB;
  record.total = 8_GiB;
  s.timeline.ranks.push_back(record);
  HostRecord host;
  host.host = HostId{0};
  host.capacity = 64_GiB;
  host.peak_anonymous = 8_GiB;
  host.phases.push_back({"load", 8_GiB, {}, {}, {}});
  s.timeline.hosts.push_back(host);
  for (std::uint32_t r = 0; r < 4; ++r) s.timeline.processes.push_back({RankId{r}, 0, ""});
  return s;
}

inline Sample out_of_gpu_memory() {
  Sample s = fits();
  s.scenario = scenario(2, 2);
  RankRecord& record = s.timeline.ranks.front();
  record.phases.resize(1);
  record.phases.push_back(phase("wrap", 2_s, 3_s, 4_GiB, 6));
  record.ops_done = 7;
  s.timeline.verdict = CudaOutOfMemory{
      RankId{0},
      "wrap",
      "model.layers.1.self_attn.q_proj.weight",
      "CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 8.00 GiB total capacity; ...)",
      "state-dict clone",
      1_GiB,
      1_GiB,
      4_GiB,
      4_GiB + 64_MiB,
      512_MiB,
      8_GiB,
      Instant{3_s}};
  return s;
}

inline Sample crashed() {
  Sample s = fits();
  RankRecord& record = s.timeline.ranks.front();
  record.phases.push_back(phase("save", 6_s, 9_s, 4_GiB, 6));
  record.phases.back().warnings = 1;
  record.failed_allocs = {small_program().clone1.value};
  record.warnings.push_back({RankId{0}, "save", "model.layers.1.self_attn.q_proj.weight",
                             "Failed to clone() tensor: CUDA out of memory. Tried to allocate ...",
                             1_GiB, 4_GiB, 4_GiB + 64_MiB, 512_MiB, 1});
  s.timeline.verdict = Crashed{RankId{0},
                               "save",
                               "model.layers.1.self_attn.q_proj.weight",
                               "CUDA error: invalid argument",
                               4_GiB,
                               4_GiB + 64_MiB,
                               512_MiB,
                               8_GiB,
                               Instant{9_s}};
  s.timeline.processes = {{RankId{0}, 1, ""},
                          {RankId{1}, -15, "SIGTERM"},
                          {RankId{2}, -15, "SIGTERM"},
                          {RankId{3}, -15, "SIGTERM"}};
  return s;
}

inline Sample out_of_host_memory() {
  Sample s = fits();
  program::Program& p = s.workload.programs.front();
  p.ops.clear();
  program::HostBuffer buffer;
  buffer.bytes = 15_GiB;
  buffer.label = p.labels.push_back("weights in fp32");
  for (int i = 0; i < 2; ++i) {
    p.ops.push_back(
        {program::HostAlloc{p.host_buffers.push_back(buffer)}, {}, StreamRole::compute});
  }
  RankRecord& record = s.timeline.ranks.front();
  record.phases = {phase("load", 0_s, 2_s, {}, 0)};
  record.ops_done = 1;
  s.timeline.verdict = HostOutOfMemory{HostId{0},
                                       RankId{3},
                                       "load",
                                       "model.layers.0.mlp.up_proj.weight",
                                       "exitcode: -9 (pid: 4)",
                                       15_GiB,
                                       64_GiB,
                                       60_GiB,
                                       Instant{2_s}};
  s.timeline.processes = {{RankId{0}, -15, "SIGTERM"},
                          {RankId{1}, -15, "SIGTERM"},
                          {RankId{2}, -15, "SIGTERM"},
                          {RankId{3}, -9, "SIGKILL"}};
  return s;
}

inline Sample hangs() {
  Sample s = fits();
  RankRecord waiting = s.timeline.ranks.front(), missing = waiting;
  waiting.ranks = {RankId{1}, RankId{2}, RankId{3}};
  missing.ranks = {RankId{0}};
  s.timeline.ranks = {missing, waiting};
  Hang hang;
  hang.waiting = waiting.ranks;
  hang.missing = missing.ranks;
  hang.phase = "save";
  hang.scope = "model.layers.0";
  hang.message = "Watchdog caught collective operation timeout: ... ran for 1800000 milliseconds";
  hang.missing_is_doing = "its program has ended";
  hang.watchdog = 1800_s;
  s.timeline.verdict = hang;
  return s;
}

inline std::vector<std::pair<std::string, Sample>> all() {
  return {{"fits", fits()},
          {"cuda_out_of_memory", out_of_gpu_memory()},
          {"host_out_of_memory", out_of_host_memory()},
          {"hang", hangs()},
          {"crashed", crashed()}};
}

}  // namespace sim::report::samples
