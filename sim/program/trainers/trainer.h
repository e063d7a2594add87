// A trainer: the script people start, as an order of phases, with its own defaults.
#pragma once

#include <string_view>

#include "sim/base/catalog.h"
#include "sim/program/phases/phases.h"

namespace sim::program {

struct Trainer {
  std::string_view name;
  std::string_view description;
  WrapperSettings (*wrapper)(const Software& software);
  // Attention where the scenario names none: a word of choose_attention(), by release.
  std::string_view (*default_attention)(const Software& software);
  // Attention kernel that a word of the scenario means in this trainer.
  plan::AttentionKind (*flash_attention)();
  bool bare_batch = false;  // one tensor is both input_ids and labels, and no mask comes with it
  // How its loop treats gradients and the loss; files what it chose for the scenario.
  TrainingLoop (*loop)(const JobSpec& job, const Software& software, Assumptions& assumptions);
  // Process-group timeout that it passes; none: the library's own default.
  std::optional<Duration> timeout;
  bool prepares_plain_models = false;  // also what is not packed goes through phases/prepare.cpp
  std::string_view reference = "reference";  // DPO: prefix of the reference model's modules
};
const Catalog<Trainer>& trainer_catalog();

}  // namespace sim::program
