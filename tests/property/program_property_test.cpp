// Laws of every lowered program, whatever the settings: a tensor is made once, freed at most once
// and never before it is made; after each optimizer step only what lasts is left.
#include <string>
#include <vector>

#include "sim/program/lower.h"
#include "sim/study/run.h"

#include "tests/support/catch.h"

namespace sim::study {
namespace {

using namespace sim::program;

enum class State { unmade, live, freed };

// Runs the allocations of `p` in host order, loops once. Returns what is live at each `phase`
// begin.
void check_order(const Program& p) {
  std::vector<State> state(p.tensors.size(), State::unmade);
  std::array<Bytes, kMemoryClasses> held{};
  bool stepped = false;
  for (const Op& op : p.ops) {
    if (const auto* alloc = std::get_if<Alloc>(&op.body)) {
      REQUIRE(state[alloc->tensor.value] == State::unmade);
      state[alloc->tensor.value] = State::live;
      const TensorInfo& info = p.tensors[alloc->tensor];
      REQUIRE(info.bytes >= Bytes{0});
      held[static_cast<std::size_t>(info.memory_class)] += info.bytes;
    } else if (const auto* free = std::get_if<Free>(&op.body)) {
      REQUIRE(state[free->tensor.value] == State::live);
      state[free->tensor.value] = State::freed;
      const TensorInfo& info = p.tensors[free->tensor];
      held[static_cast<std::size_t>(info.memory_class)] -= info.bytes;
    } else if (const auto* record = std::get_if<RecordStream>(&op.body)) {
      REQUIRE(state[record->tensor.value] == State::live);
    } else if (const auto* phase = std::get_if<BeginPhase>(&op.body)) {
      const std::string& name = p.phases[phase->phase];
      if (stepped && (name.rfind("step", 0) == 0 || name == "save") &&
          name.rfind("step0", 0) != 0) {
        INFO("at the begin of " << name);
        CHECK(held[static_cast<std::size_t>(MemoryClass::activations)] == Bytes{0});
        CHECK(held[static_cast<std::size_t>(MemoryClass::temporaries)] == Bytes{0});
      }
      stepped |= name == "step0.optimizer";
    }
  }
}

TEST_CASE("programs make and free their tensors in order, under every setting") {
  struct Setting {
    const char* scenario;
    std::vector<Override> overrides;
  };

  const char* seven = "vicuna-7b-fsdp-save.yaml";
  const std::vector<Setting> settings = {
      {seven, {}},
      {seven, {{"job.activation_checkpointing", "none"}}},
      {seven, {{"job.attention", "eager"}, {"software.transformers", "4.28.1"}}},
      {seven,
       {{"job.attention", "sdpa"},
        {"software.transformers", "4.46.0"},
        {"software.torch", "2.5.1"}}},
      {seven, {{"software.torch", "1.13.1"}, {"software.transformers", "4.28.1"}}},
      {seven, {{"job.gradient_accumulation_steps", "1"}, {"job.steps", "1"}}},
      {seven, {{"job.gradient_accumulation_steps", "2"}, {"job.micro_batch_size", "3"}}},
      {seven,
       {{"job.trainer", "pytorch"},
        {"software.torch", "2.11.0"},
        {"software.transformers", "5.17.0"}}},
      {"vicuna-7b-fsdp-save-offload.yaml", {}},
      {"vicuna-13b-fsdp-save-rank0-only.yaml", {}},
  };
  for (const Setting& setting : settings) {
    std::string what = setting.scenario;
    for (const auto& [key, value] : setting.overrides) what += " " + key + "=" + value;
    INFO(what);
    Diagnostics diagnostics;
    const auto stages = prepare(std::string(SIM_SOURCE_DIR) + "/scenarios/" + setting.scenario,
                                default_data_roots(), setting.overrides, diagnostics);
    INFO(render(diagnostics));
    REQUIRE(stages.has_value());
    for (const Program& p : stages->lowered.workload.programs) check_order(p);
  }
}

}  // namespace
}  // namespace sim::study
