// The phases of a job's life, composed by trainers.
#pragma once

#include "sim/program/optimizers/optimizer.h"
#include "sim/program/session.h"
#include "sim/program/strategy.h"

namespace sim::program {

// --- init.cpp: process group, CUDA context, other memory outside the allocator
void initialise(Session& session, Assumptions& assumptions);

// --- load.cpp: from_pretrained on the host, or random weights on the device
LoadedModel load_model(Session& session);

// --- training_steps.cpp: micro-batches, clipping, optimizer; phases step0.*, step.1 .., step
struct TrainingLoop {
  bool reads_loss = true;  // the host waits for the loss of every micro-batch
  bool no_sync = true;     // gradients are reduced in the last micro-batch only
  bool clips = true;
};
void training_steps(Session& session, Strategy& strategy, const Optimizer& optimizer,
                    const TrainingLoop& loop);

// --- checkpoint_save.cpp: state_dict() by the callers, entries to the host and to disk by the
// first rank
void checkpoint_save(Session& session, Strategy& strategy);

}  // namespace sim::program
