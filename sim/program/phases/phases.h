// The phases of a job's life, composed by trainers.
#pragma once

#include <optional>

#include "sim/program/optimizers/optimizer.h"
#include "sim/program/session.h"
#include "sim/program/strategy.h"

namespace sim::program {

// --- init.cpp: process group, CUDA context, other memory outside the allocator
void initialise(Session& session, Assumptions& assumptions);

// --- load.cpp: from_pretrained on the host or, packed, on the device; or random weights there
LoadedModel load_model(Session& session, Strategy& strategy);

// copy.deepcopy(model) on the host where the objective has a reference model.
void copy_reference(Session& session, LoadedModel& model);

// --- prepare.cpp: adapters beside frozen weights; no work where the job has none
// Whether 16-bit parameters that stay unpacked are made fp32 (`job.lora.prepare`).
bool prepares_adapters(const Scenario& scenario, bool trainer_always, Assumptions& assumptions);
void prepare_adapters(Session& session, LoadedModel& model);

// --- training_steps.cpp: micro-batches, clipping, optimizer; phases step0.*, step.1 .., step
struct TrainingLoop {
  bool reads_loss = true;  // the host waits for the loss of every micro-batch
  bool no_sync = true;     // gradients are reduced in the last micro-batch only
  bool clips = true;
  bool cache_emptied_before_save = false;  // see checkpoint_save.cpp
  std::optional<bool> gradients_to_none;   // zero_grad(set_to_none); none: torch's default
};
void training_steps(Session& session, Strategy& strategy, const TrainingLoop& loop);

// --- checkpoint_save.cpp: state_dict() by the callers, entries to the host and to disk by the
// first rank
void checkpoint_save(Session& session, Strategy& strategy, bool cache_emptied,
                     Assumptions& assumptions);

// --- life.cpp: all of the above in the order of a training script
void run_life(Session& session, Strategy& strategy, const TrainingLoop& loop,
              Assumptions& assumptions);

}  // namespace sim::program
