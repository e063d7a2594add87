#include <algorithm>
#include <string>

#include "sim/program/phases/phases.h"

namespace sim::program {

namespace {

// The first step's name parts; a later step is one phase: `step` for the steady one (the third, or
// the last of fewer), `step.N` for others.
std::string step_name(std::int64_t index, std::int64_t steps) {
  const std::int64_t steady = std::min<std::int64_t>(2, steps - 1);
  return index == steady ? "step" : "step." + std::to_string(index);
}

struct MicroBatches {
  Walker& walker;
  Session& session;
  std::int64_t micro_batches;
  bool no_sync;
  bool reads_loss;

  void micro_batch(std::int64_t index, bool named) const {
    const bool last = index == micro_batches - 1;
    const MicroBatch batch{index == 0, !no_sync || last, last};
    Builder& b = session.builder;
    if (named) b.phase("step0.forward");
    walker.forward(batch);
    if (named) b.phase("step0.backward");
    walker.backward(batch);
    if (reads_loss) b.synchronize();
  }

  // The first two and the last micro-batch differ from their neighbours in what they find and
  // leave; those between are alike and form a loop.
  void all(bool named) const {
    constexpr std::int64_t kDistinct = 2;
    std::int64_t i = 0;
    for (; i < std::min(kDistinct, micro_batches); ++i) micro_batch(i, named);
    if (const std::int64_t alike = micro_batches - 1 - i; alike > 1) {
      const std::size_t begun = session.builder.begin_loop();
      micro_batch(i, named);
      session.builder.end_loop(begun, alike);
      i += alike;
    }
    for (; i < micro_batches; ++i) micro_batch(i, named);
  }
};

}  // namespace

void training_steps(Session& session, Strategy& strategy, const TrainingLoop& options) {
  Builder& b = session.builder;
  const JobSpec& job = session.scenario.job;
  Walker walker(session.plan, b, strategy, {session.torch.matrix_workspace});
  const MicroBatches micro_batches{walker, session, job.gradient_accumulation_steps.value,
                                   job.no_sync.value_or(options.no_sync) && strategy.has_no_sync(),
                                   options.reads_loss};
  const auto run_step = [&](std::int64_t step) {
    const bool named = step == 0;
    if (!named) b.phase(step_name(step, job.steps.value));
    micro_batches.all(named);
    if (named) b.phase("step0.optimizer");
    if (options.clips) strategy.clip_gradients(session);
    strategy.update(session);
    strategy.zero_grad(session,
                       options.gradients_to_none.value_or(session.torch.zero_grad_to_none));
    b.synchronize();  // the trainer reads the loss or logs: the host catches up once a step
  };
  constexpr std::int64_t kDistinct = 3;  // the first makes the states; the third is the steady one
  for (std::int64_t step = 0; step < std::min(kDistinct, job.steps.value); ++step) run_step(step);
  if (job.steps.value > kDistinct) {
    const std::size_t begun = b.begin_loop();
    run_step(kDistinct);
    b.end_loop(begun, job.steps.value - kDistinct);
  }
}

}  // namespace sim::program
