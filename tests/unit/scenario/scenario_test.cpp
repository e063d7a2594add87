#include "sim/scenario/scenario.h"

#include <algorithm>

#include "sim/scenario/config_reader.h"
#include "tests/support/catch.h"

using namespace sim;

namespace {

const std::string kRoot = SIM_SOURCE_DIR "/";
const DataRoots kRoots{kRoot + "models", kRoot + "hardware"};

Scenario shipped(const std::string& name, const std::vector<Override>& overrides = {}) {
  Diagnostics d;
  auto scenario = read_scenario(kRoot + "scenarios/" + name + ".yaml", kRoots, overrides, d);
  INFO(render(d));
  REQUIRE(scenario);
  return std::move(*scenario);
}

std::optional<Scenario> read(std::string text, Diagnostics& d) {
  return read_scenario(std::make_shared<SourceFile>(SourceFile{"dir/a.yaml", std::move(text)}),
                       kRoots, {}, d);
}

const Assumption* find(const Scenario& scenario, std::string_view key) {
  for (const Assumption& assumption : scenario.assumptions.all()) {
    if (assumption.key == key) return &assumption;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("the scenario of the first report reads in full", "[scenario]") {
  const Scenario s = shipped("vicuna-7b-fsdp-save");
  CHECK(s.name == "vicuna-7b-fsdp-save");
  CHECK(s.model.architecture.name == "LlamaForCausalLM");
  CHECK(s.cluster.node.product == "NVIDIA DGX A100 320GB");
  CHECK(s.cluster.node.interconnect == GpuInterconnect::nvswitch);
  CHECK(s.cluster.world_size() == 4);
  CHECK(s.cluster.visible_devices == std::vector<int>{7, 6, 5, 4, 3, 2});
  CHECK(s.software.releases.at("torch").value == Release{2, 0, 1, ""});
  CHECK(s.job.trainer.name == "fastchat");
  REQUIRE(s.job.strategies.size() == 1);
  CHECK(s.job.strategies[0].name.name == "fsdp");
  CHECK(s.job.strategies[0].options.find("wrap")->text == "LlamaDecoderLayer");
  CHECK(s.job.precision.weights.value == DType::f32);
  CHECK(s.job.precision.autocast->value == DType::bf16);
  CHECK(s.job.precision.tf32);
  CHECK(s.job.gradient_accumulation_steps.value == 16);
  CHECK(s.job.sequence_length.value == 258);
  CHECK(s.job.checkpointing == ActivationCheckpointing::full);
  CHECK(s.job.optimizer.name == "adamw");
  REQUIRE(s.job.save);
  CHECK(s.job.save->place.value == SaveSpec::Place::gpu);
  CHECK(s.observed.free == 58_MiB);
  CHECK(s.cluster.gpu.total_memory.count == 42294690447);  // observed, not the data file's
  REQUIRE(s.expect.size() == 8);
  CHECK(s.expect[0].value.text == "crashed");
  CHECK(find(s, "observed.total"));
  CHECK(find(s, "job.steps"));
  CHECK_FALSE(find(s, "job.micro_batch_size"));
}

TEST_CASE("an override is read like a line of the file", "[scenario]") {
  const Scenario s = shipped("vicuna-7b-fsdp-save", {{"job.micro_batch_size", "4"},
                                                     {"cluster.visible_devices", "[0, 1, 2, 3]"},
                                                     {"software.accelerate", "0.21.0"},
                                                     {"allocator.conf", "max_split_size_mb:64"},
                                                     {"job.save", ""}});
  CHECK(s.job.micro_batch_size.value == 4);
  CHECK(s.job.micro_batch_size.at.file->path == "command line");
  CHECK(s.cluster.visible_devices == std::vector<int>{0, 1, 2, 3});
  CHECK(s.software.releases.count("accelerate") == 1);
  CHECK(s.allocator.conf == "max_split_size_mb:64");
  CHECK_FALSE(s.job.save);
}

TEST_CASE("the shortest scenario lists all that it left out", "[scenario]") {
  Diagnostics d;
  const auto s = read(
      "model: llama-2-7b-hf\ncluster: {gpu: a100-sxm4-80gb}\njob: {sequence_length: 512}\n", d);
  INFO(render(d));
  REQUIRE(s);
  CHECK(s->cluster.node.gpus == 1);
  CHECK(s->cluster.world_size() == 1);
  CHECK(s->cluster.host_memory == 1024_GiB);
  CHECK(s->job.attention.name.empty());
  CHECK(s->job.strategies.empty());
  for (const char* key :
       {"cluster.nodes", "cluster.gpus", "cluster.host_memory", "cluster.interconnect",
        "cluster.processes_per_node", "job.trainer", "job.micro_batch_size",
        "job.gradient_accumulation_steps", "job.precision.weights", "job.precision.autocast",
        "job.precision.tf32", "job.optimizer", "job.activation_checkpointing", "job.weights"}) {
    INFO(key);
    CHECK(find(*s, key));
  }
}

TEST_CASE("allocator options may be a map", "[scenario]") {
  Diagnostics d;
  const auto s = read(
      "model: llama-2-7b-hf\ncluster: {gpu: a100-sxm4-80gb}\njob: {sequence_length: 512}\n"
      "allocator: {conf: {max_split_size_mb: 64, roundup_power2_divisions: [256:1, 512:2]}, "
      "memory_fraction: 0.5}\n",
      d);
  INFO(render(d));
  REQUIRE(s);
  CHECK(s->allocator.conf == "max_split_size_mb:64,roundup_power2_divisions:[256:1,512:2]");
  CHECK(s->allocator.memory_fraction == 0.5);
}

TEST_CASE("releases compare by their numbers", "[scenario]") {
  CHECK(parse_release("2.11.0+cu130") == parse_release("2.11"));
  CHECK(parse_release("2.10")->minor == 10);
  CHECK(*parse_release("2.9.1") < *parse_release("2.10.0"));
  CHECK(*parse_release("4.31.0") > *parse_release("4.28.1"));
  CHECK(parse_release("0.21.0.dev0"));
  CHECK(parse_release("2.0.0rc1"));
  CHECK(parse_release("2.0.0.post2")->text == "2.0.0.post2");
  for (const char* text :
       {"", "v2.0", "2.", ".2", "latest", "4.28.x", "2.0 ", "-1", "99999999999", "2.0+"}) {
    INFO(text);
    CHECK_FALSE(parse_release(text));
  }
}

TEST_CASE("a model is found by name, by its name on the hub and by path", "[scenario]") {
  Diagnostics d;
  const std::string models = kRoots.models;
  CHECK(read_model({"vicuna-7b-v1.5", {}}, models, d));
  CHECK(read_model({"lmsys/vicuna-7b-v1.5", {}}, models, d));
  CHECK(read_model({"meta-llama/Llama-2-7b-hf", {}}, models, d)->name ==
        "meta-llama/Llama-2-7b-hf");
  CHECK(read_model({models + "/yi-6b/config.json", {}}, models, d));
  CHECK(read_model({models + "/yi-6b", {}}, models, d));
  const auto beside = std::make_shared<SourceFile>(SourceFile{kRoot + "scenarios/x.yaml", ""});
  CHECK(read_model({"../models/yi-6b", {beside, 1, 1}}, models, d));
  CHECK_FALSE(d.has_errors());
  CHECK_FALSE(read_model({"../hardware", {}}, models, d));
  CHECK_FALSE(read_model({"lmsys/vicuna-7b-v9", {}}, models, d));
}

TEST_CASE("every shipped model says what it is and how large", "[scenario]") {
  Diagnostics d;
  const std::vector<std::string> names = model_names(kRoots.models);
  CHECK(names.size() >= 75);
  for (const std::string& name : names) {
    INFO(name);
    const auto model = read_model({name, {}}, kRoots.models, d);
    REQUIRE(model);
    CHECK(model->architecture.at.line > 0);
    CHECK(model->config.find("model_type"));
    CHECK((model->config.find("vocab_size") || model->config.find("padded_vocab_size")));
  }
  CHECK_FALSE(d.has_errors());
}

TEST_CASE("hardware figures are those of their sources", "[scenario]") {
  Diagnostics d;
  const auto h200 = read_gpu({"h200-sxm-141gb", {}}, kRoots.hardware, d);
  REQUIRE(h200);
  CHECK(h200->total_memory.count == 150109880320);
  CHECK(h200->compute_capability == 90);
  CHECK(h200->peak.at(DType::bf16) == 989_TFLOPS);
  const auto a100 = read_gpu({"a100-sxm4-40gb", {}}, kRoots.hardware, d);
  REQUIRE(a100);
  CHECK(a100->nvlink == 300_GBps);
  CHECK(a100->source.find("total_memory"));
  const auto node = read_node({"aws-p4d-24xlarge", {}}, kRoots.hardware, d);
  REQUIRE(node);
  CHECK(node->nic.count == 4);
  CHECK(node->nic.bandwidth == 100_Gbps);
  CHECK(node->gpus_per_pcie_switch == 2);
}

TEST_CASE("a hardware figure without a source is refused", "[scenario]") {
  Diagnostics d;
  ReadContext context{d};
  const auto file = std::make_shared<SourceFile>(SourceFile{
      "nodes/x.yaml",
      "product: X\ngpu: a\ngpus: 2\ninterconnect: pcie\nhost_memory: 1 TiB\ncpu_cores: 8\n"
      "source: {gpus: s, interconnect: s, host_memory: s, nic: s}\n"});
  CHECK_FALSE(read_node(file, context));
  REQUIRE(d.error_count() == 2);
  CHECK(d.all()[0].message == "'cpu_cores' has no source");
  CHECK(d.all()[1].message == "a source for 'nic', which the file does not set");
}
