// How one rank holds a model while it trains: what wrapping does, the hooks around layers, and what
// the optimizer and a save see. Strategies are written in hooks/; frameworks/ choose and configure
// them.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "sim/base/catalog.h"
#include "sim/program/session.h"
#include "sim/program/training_hook.h"

namespace sim::program {

class Strategy : public TrainingHook {
 public:
  // Whether packed weights go back to the host as they are packed, and wait there for wrap().
  virtual bool packed_waits_on_host() const { return false; }
  // Whether it takes each module over as it is built; then the two calls below.
  virtual bool takes_modules() const { return false; }
  // Parameters of one module, built without values; and once their values are in an open file.
  virtual void take(Session&, std::span<const plan::ParameterId>) {}
  virtual void load(Session&, std::span<const plan::ParameterId>) {}

  // Takes the loaded weights over, as the wrapper's constructor does.
  virtual void wrap(Session& session, LoadedModel& model) = 0;
  virtual std::vector<ParameterState>& state() = 0;
  virtual void clip_gradients(Session& session) = 0;
  // optimizer.step()
  virtual void update(Session& session);
  virtual void zero_grad(Session& session, bool to_none) = 0;
  // model.state_dict() on this rank; a rank that does not take part must not call it.
  virtual StateDict state_dict(Session& session, const SaveSpec& save) = 0;
  // Copies the batch's gradients only in the last micro-batch of a step where the trainer asks so.
  virtual bool has_no_sync() const { return false; }
};

// What a trainer hands to the wrapper instead of leaving it to the wrapper's own defaults.
struct WrapperSettings {
  bool sets_mixed_precision = false;  // MixedPrecision from the autocast dtype
  std::optional<bool> limit_all_gathers = {};
  std::optional<bool> backward_prefetch = {};
  std::optional<bool> find_unused_parameters = {};
  bool builds_sharded = false;  // the model is built inside the sharding engine's own context
};

// A framework: which strategy under which options. One file each in frameworks/.
struct Framework {
  std::string_view name;  // as the scenario's `strategy` names it
  std::string_view description;
  // Compute dtype of parameters and whether autocast caches their casts, once precision is known.
  void (*precision)(const Scenario& scenario, const StrategySpec* spec,
                    const WrapperSettings& trainer, plan::Implementations& implementations);
  // Refuses options and combinations in its own words; nullptr and diagnostics then.
  std::unique_ptr<Strategy> (*make)(const Session& session, const StrategySpec* spec,
                                    const WrapperSettings& trainer, Assumptions& assumptions,
                                    Diagnostics& diagnostics);
};
const Catalog<Framework>& framework_catalog();

// The framework that the scenario asks for; `none` where it names no strategy. nullptr and
// diagnostics for several or unknown ones.
const Framework* choose_framework(const Scenario& scenario, const StrategySpec*& spec,
                                  Diagnostics& diagnostics);

}  // namespace sim::program
