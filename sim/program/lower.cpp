#include "sim/program/lower.h"

#include <fmt/format.h>

#include "sim/base/check.h"
#include "sim/base/units_text.h"
#include "sim/program/libraries/facts.h"
#include "sim/program/trainers/trainer.h"

namespace sim::program {

const Release& Software::of(const std::string& library) const {
  const auto found = releases.find(library);
  CHECK(found != releases.end(), "every library of the catalog has a release");
  return found->second;
}

Software resolve_software(const Scenario& scenario, Assumptions& assumptions, Diagnostics&) {
  Software software;
  for (const auto& [name, release] : scenario.software.releases) {
    software.releases[name] = release.value;
    const Library* library = library_catalog().find(name);
    if (library == nullptr) {
      assumptions.add("software." + name, release.value.text,
                      "no effect of this library is modelled");
    } else if (*parse_release(library->newest) < release.value) {
      assumptions.add("software." + name, release.value.text,
                      fmt::format("newer than any that is known: taken as {}", library->newest));
    }
  }
  for (const Library* library : library_catalog().entries()) {
    const std::string name(library->name);
    if (software.releases.contains(name)) continue;
    if (library->used_by != nullptr && !library->used_by(scenario.job)) continue;
    std::string_view text = library->newest;
    std::string why = "no release is named: the newest that is known";
    if (library->beside_torch != nullptr) {
      text = library->beside_torch(software.of("torch"));
      why = fmt::format("the release of the month of torch {}", software.of("torch").text);
    }
    software.releases[name] = *parse_release(text);
    if (library->beside_torch != nullptr || name == "torch") {
      assumptions.add("software." + name, std::string(text), why);
    }
  }
  date_architecture(scenario, software, assumptions);
  return software;
}

namespace {

// `flash_attention_2`: what that word means in the trainer.
std::optional<plan::AttentionKind> choose_attention(const Named& name,
                                                    plan::AttentionKind flash_attention_2,
                                                    plan::AttentionKind sdpa,
                                                    Diagnostics& diagnostics) {
  using plan::AttentionKind;
  if (name.name == "eager") return AttentionKind::eager;
  if (name.name == "sdpa") return sdpa;
  if (name.name == "sdpa_flash") return AttentionKind::sdpa_flash;
  if (name.name == "sdpa_efficient") return AttentionKind::sdpa_efficient;
  if (name.name == "sdpa_math") return AttentionKind::sdpa_math;
  if (name.name == "flash_attention_2") return flash_attention_2;
  report_unknown_name(
      "attention", name,
      {"eager", "sdpa", "sdpa_flash", "sdpa_efficient", "sdpa_math", "flash_attention_2"},
      diagnostics);
  return std::nullopt;
}

}  // namespace

void check_names(const Scenario& scenario, Diagnostics& diagnostics) {
  const JobSpec& job = scenario.job;
  if (!job.trainer.name.empty()) trainer_catalog().find(job.trainer, diagnostics);
  const StrategySpec* spec = nullptr;
  choose_framework(scenario, spec, diagnostics);
  if (!job.attention.name.empty()) {
    choose_attention(job.attention, plan::AttentionKind::flash_attention_2,
                     plan::AttentionKind::sdpa_flash, diagnostics);
  }
  if (job.optimizer.name.empty()) return;
  const Optimizer* optimizer = optimizer_catalog().find(job.optimizer, diagnostics);
  if (optimizer != nullptr) optimizer->check(job.optimizer_options, diagnostics);
}

namespace {

// Packed weights, adapters, and what preparing the model for training makes of the rest.
bool choose_adapters(const Scenario& scenario, const Software& software, const Trainer& trainer,
                     plan::Implementations& f, Assumptions& assumptions, Diagnostics& diagnostics) {
  const std::size_t errors = diagnostics.error_count();
  f.packed = read_quantization(scenario, software, assumptions, diagnostics);
  f.adapters = read_adapters(scenario, software, f.packed, assumptions, diagnostics);
  if (f.packed && !f.adapters) {
    diagnostics.error(scenario.job.quantization->at, "packed weights cannot be trained",
                      "add job.lora, e.g. {rank: 16, targets: all-linear}");
  }
  if (!f.adapters || diagnostics.error_count() > errors) {
    return diagnostics.error_count() == errors;
  }
  f.input_embeddings_need_grad = scenario.job.checkpointing != ActivationCheckpointing::none;
  f.casts_unpacked = prepares_adapters(scenario, trainer.prepares_plain_models, assumptions);
  if (f.casts_unpacked) f.frozen = DType::f32;
  return true;
}

}  // namespace

std::optional<plan::Implementations> choose_implementations(const Scenario& scenario,
                                                            const Software& software,
                                                            Assumptions& assumptions,
                                                            Diagnostics& diagnostics) {
  const Trainer* trainer = trainer_catalog().find(scenario.job.trainer, diagnostics);
  const StrategySpec* spec = nullptr;
  const Framework* framework = choose_framework(scenario, spec, diagnostics);
  if (trainer == nullptr || framework == nullptr) return std::nullopt;
  plan::Implementations f;
  apply_modelling_code(software, scenario.model.architecture.name, f);
  if (!choose_adapters(scenario, software, *trainer, f, assumptions, diagnostics))
    return std::nullopt;
  Named attention = scenario.job.attention;
  if (attention.name.empty()) {
    attention.name = trainer->default_attention(software);
    assumptions.add("job.attention", attention.name, "what the trainer runs under these releases");
  }
  const auto kind = choose_attention(
      attention, trainer->flash_attention(),
      preferred_sdpa(software.of("torch"), scenario.cluster.gpu.compute_capability), diagnostics);
  if (!kind) return std::nullopt;
  f.attention = *kind;
  // Fused kernels mask inside; only the unfused path needs the square mask.
  const bool unfused =
      f.attention == plan::AttentionKind::eager || f.attention == plan::AttentionKind::sdpa_math;
  f.masks_materialised = unfused;
  const PrecisionSpec& precision = scenario.job.precision;
  if (precision.autocast) f.autocast = precision.autocast->value;
  f.tf32 = precision.tf32;
  f.batch = scenario.job.micro_batch_size.value;
  f.sequence = scenario.job.sequence_length.value;
  f.labels_are_ids = trainer->bare_batch;
  f.padding_mask = !trainer->bare_batch;
  f.multiprocessors = scenario.cluster.gpu.multiprocessors;
  if (scenario.job.objective == Objective::dpo) {
    f.preference_pairs = true;
    f.batch *= 2;  // chosen and rejected
    if (!f.adapters) f.reference = trainer->reference;
  }
  framework->precision(scenario, spec, trainer->wrapper(software), f);
  return f;
}

namespace {

// Reserved memory is made of whole 2 MiB pages (pytorch_memory, section A.2 of the caching
// allocator): of the figures that print alike, the nearest that can be.
Bytes whole_segments(Bytes printed) {
  const Bytes page = 2_MiB;
  const Bytes nearest = round_up(printed - page / 2, page);
  return to_text(nearest) == to_text(printed) ? nearest : printed;
}

// Device memory outside the allocator as the scenario's own report fixes it.
std::optional<Bytes> observed_outside(const Scenario& scenario, Assumptions& assumptions) {
  const ObservedSpec& o = scenario.observed;
  if (o.outside_allocator) {
    assumptions.add("device.outside_allocator", to_text(*o.outside_allocator),
                    "stated by the scenario");
    return o.outside_allocator;
  }
  if (!o.free || !o.reserved) return std::nullopt;
  const Bytes total = o.total.value_or(scenario.cluster.gpu.total_memory);
  const Bytes outside = total - whole_segments(*o.reserved) - *o.free;
  assumptions.add(
      "device.outside_allocator", to_text(outside),
      "observed total - reserved - free: context, NCCL and whatever else held device memory");
  return outside;
}

struct Recipe {
  const Trainer* trainer;
  const Framework* framework;
  const StrategySpec* spec;
  const Optimizer* optimizer;
};

std::optional<Recipe> choose_recipe(const Scenario& scenario, Diagnostics& diagnostics) {
  Recipe r{};
  r.trainer = trainer_catalog().find(scenario.job.trainer, diagnostics);
  r.framework = choose_framework(scenario, r.spec, diagnostics);
  r.optimizer = optimizer_catalog().find(scenario.job.optimizer, diagnostics);
  if (r.trainer == nullptr || r.framework == nullptr || r.optimizer == nullptr) return std::nullopt;
  if (!r.optimizer->check(scenario.job.optimizer_options, diagnostics)) return std::nullopt;
  return r;
}

std::optional<Program> lower_rank(const Scenario& scenario, const plan::Plan& plan,
                                  const Software& software, const TorchFacts& torch,
                                  const Recipe& recipe, bool first_rank,
                                  std::optional<Bytes> outside, Assumptions& assumptions,
                                  Diagnostics& diagnostics) {
  Builder builder;
  Session session{scenario,
                  plan,
                  software,
                  torch,
                  builder,
                  GroupId{0},
                  scenario.cluster.world_size(),
                  first_rank,
                  outside,
                  false,
                  {},
                  recipe.optimizer};
  auto strategy = recipe.framework->make(session, recipe.spec, recipe.trainer->wrapper(software),
                                         assumptions, diagnostics);
  if (!strategy) return std::nullopt;
  run_life(session, *strategy, recipe.trainer->loop(scenario.job, software, assumptions),
           assumptions);
  return builder.finish();
}

}  // namespace

std::optional<Lowered> lower(const Scenario& scenario, const plan::Plan& plan,
                             const Software& software, Assumptions& assumptions,
                             Diagnostics& diagnostics) {
  const auto recipe = choose_recipe(scenario, diagnostics);
  if (!recipe) return std::nullopt;
  const TorchFacts torch =
      torch_facts(software.of("torch"), scenario.cluster.gpu.compute_capability);
  const auto outside = observed_outside(scenario, assumptions);
  const std::int64_t world = scenario.cluster.world_size();

  Lowered out;
  // The first rank saves; the others are alike. Without a save all are.
  const std::int64_t kinds = scenario.job.save && world > 1 ? 2 : 1;
  for (std::int64_t kind = 0; kind < kinds; ++kind) {
    auto program = lower_rank(scenario, plan, software, torch, *recipe, kind == 0, outside,
                              assumptions, diagnostics);
    if (!program) return std::nullopt;
    out.workload.programs.push_back(std::move(*program));
  }
  Group everyone{"world", {}};
  for (std::int64_t r = 0; r < world; ++r) {
    out.workload.program_of.push_back(r == 0 ? 0u : static_cast<std::uint32_t>(kinds - 1));
    everyone.ranks.push_back(RankId{static_cast<std::uint32_t>(r)});
  }
  out.workload.groups.push_back(std::move(everyone));
  out.workload.watchdog = recipe->trainer->timeout.value_or(torch.watchdog);
  if (!scenario.job.save) assumptions.add("job.save", "none", "nothing is saved unless asked for");
  if (plan.recompute && !scenario.job.checkpoint_reentrant) {
    assumptions.add("job.checkpoint_reentrant", plan.recompute_reentrant ? "true" : "false",
                    "default of torch.utils.checkpoint");
  }
  const std::int64_t sequences =
      scenario.job.micro_batch_size.value * scenario.job.gradient_accumulation_steps.value * world;
  out.tokens_per_step = sequences * scenario.job.sequence_length.value;
  out.model_flops_per_step =
      plan.graph.model_flops *
      static_cast<double>(scenario.job.gradient_accumulation_steps.value * world);
  return out;
}

}  // namespace sim::program
