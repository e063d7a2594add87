#include "sim/program/phases/phases.h"

namespace sim::program {

void run_life(Session& session, Strategy& strategy, const TrainingLoop& loop,
              Assumptions& assumptions) {
  initialise(session, assumptions);
  LoadedModel model = load_model(session, strategy);
  copy_reference(session, model);
  prepare_adapters(session, model);
  session.builder.phase("wrap");
  strategy.wrap(session, model);
  session.builder.phase("optimizer_init");
  training_steps(session, strategy, loop);
  checkpoint_save(session, strategy, loop.cache_emptied_before_save, assumptions);
}

}  // namespace sim::program
