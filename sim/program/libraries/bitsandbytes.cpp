#include "sim/program/libraries/facts.h"
#include "sim/program/libraries/since.h"
#include "sim/scenario/config_reader.h"

namespace sim::program {

namespace {

using plan::PackedWeights;

std::string_view beside(const Release& torch) {
  return by_release<std::string_view>({torch.major, torch.minor, torch.patch, {}},
                                      {{{1, 13, 0, {}}, "0.38.0"},
                                       {{2, 0, 0, {}}, "0.41.1"},
                                       {{2, 2, 0, {}}, "0.42.0"},
                                       {{2, 3, 0, {}}, "0.43.1"},
                                       {{2, 4, 0, {}}, "0.43.3"},
                                       {{2, 5, 0, {}}, "0.44.1"},
                                       {{2, 6, 0, {}}, "0.45.2"},
                                       {{2, 7, 0, {}}, "0.46.0"},
                                       {{2, 8, 0, {}}, "0.47.0"},
                                       {{2, 9, 0, {}}, "0.48.2"},
                                       {{2, 10, 0, {}}, "0.49.1"}});
}

bool used_by(const JobSpec& job) {
  const std::string& optimizer = job.optimizer.name;
  return job.quantization.has_value() || optimizer.ends_with("_8bit") ||
         optimizer.starts_with("paged_");
}

constexpr Choice<PackedWeights::Code> kMethods[] = {{"nf4", PackedWeights::Code::nf4},
                                                    {"fp4", PackedWeights::Code::fp4},
                                                    {"int8", PackedWeights::Code::int8}};
constexpr Choice<DType> kComputeTypes[] = {
    {"fp32", DType::f32}, {"fp16", DType::f16}, {"bf16", DType::bf16}};
constexpr Choice<DType> kStorageTypes[] = {
    {"uint8", DType::u8}, {"fp16", DType::f16}, {"bf16", DType::bf16}, {"fp32", DType::f32}};

}  // namespace

const Library kBitsandbytes{"bitsandbytes", "4-bit and 8-bit weights and optimizers", "0.50.1",
                            beside, used_by};

std::optional<PackedWeights> read_quantization(const Scenario& scenario, const Software& software,
                                               Assumptions& assumptions, Diagnostics& diagnostics) {
  if (!scenario.job.quantization) return std::nullopt;
  ReadContext context{diagnostics, &assumptions};
  ConfigReader reader(*scenario.job.quantization, "job.quantization", context);
  const Release& release = software.of("bitsandbytes");
  PackedWeights p;
  p.code = reader
               .choice<PackedWeights::Code>("method", kMethods,
                                            "bnb_4bit_quant_type of the published recipes")
               .value;
  const bool four_bits = p.code != PackedWeights::Code::int8;
  if (four_bits) {
    // transformers BitsAndBytesConfig: bnb_4bit_use_double_quant=False,
    // bnb_4bit_compute_dtype=float32, bnb_4bit_quant_storage=uint8.
    p.nested = reader.optional<bool>("double_quant", false, "default of BitsAndBytesConfig").value;
    p.compute =
        reader.choice<DType>("compute", kComputeTypes, "default of BitsAndBytesConfig").value;
    p.storage =
        reader.choice<DType>("storage", kStorageTypes, "default of BitsAndBytesConfig").value;
  }
  reader.finish();
  // nn/modules.py Params4bit: up to 0.42 .cuda() makes the weight fp16 first; since 0.43 it keeps
  // the type that the checkpoint is loaded in.
  p.unpacked = release < Release{0, 43, 0, {}} || !four_bits ? DType::f16
                                                             : scenario.job.precision.weights.value;
  // MatMul8bitLt since 0.45 works on row-major operands alone.
  p.transposed_copies = release < Release{0, 45, 0, {}};
  return p;
}

// optim/optimizer.py init_state: blocks of 2048 until 0.43, of 256 since 0.44.
std::int64_t optimizer_block(const Software& software) {
  return software.of("bitsandbytes") < Release{0, 44, 0, {}} ? 2048 : 256;
}

}  // namespace sim::program
