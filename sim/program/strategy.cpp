#include "sim/program/strategy.h"

#include "sim/program/optimizers/optimizer.h"

namespace sim::program {

void Strategy::update(Session& session) { session.optimizer->step(session, state()); }

}  // namespace sim::program
