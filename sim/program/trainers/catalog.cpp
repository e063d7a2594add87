#include "sim/program/trainers/trainer.h"

namespace sim::program {

extern const Trainer kHfTrainer, kFastchat, kPytorch, kXtuner;

const Catalog<Trainer>& trainer_catalog() {
  static constexpr const Trainer* kAll[] = {&kHfTrainer, &kFastchat, &kPytorch, &kXtuner};
  static constexpr Catalog<Trainer> kCatalog("trainer", kAll);
  return kCatalog;
}

}  // namespace sim::program
