// The whole model on one device: parameters stay where they were loaded or move there, each
// gradient is the parameter's own.
#pragma once

#include <vector>

#include "sim/program/strategy.h"

namespace sim::program {

class WholeModel : public Strategy {
 public:
  explicit WholeModel(const Session& session);

  void wrap(Session& session, LoadedModel& model) override;
  std::vector<ParameterState>& state() override { return state_; }
  void clip_gradients(Session& session) override;
  void zero_grad(Session& session, bool to_none) override;
  StateDict state_dict(Session& session, const SaveSpec& save) override;
  void parameter_gradient(Walker&, plan::ParameterId, TensorId gradient) override;

 protected:
  const plan::LayerGraph& graph_;
  std::vector<ParameterState> state_;  // trainable parameters, in order
  std::vector<std::size_t> state_of_;  // by ParameterId

 private:
  void move(Session& session, LoadedModel& model, plan::ParameterId id);
  void move(Session& session, LoadedModel& model, plan::BufferId id);
};

}  // namespace sim::program
