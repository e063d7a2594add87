#include "sim/engine/slice_labels.h"

#include <map>
#include <string>

namespace sim::engine {

namespace {

class Names {
 public:
  explicit Names(Timeline& timeline) : timeline_(&timeline) {}

  std::uint32_t label(std::string name) {
    const auto next = static_cast<std::uint32_t>(timeline_->labels.size());
    const auto [entry, is_new] = labels_.try_emplace(name, next);
    if (is_new) timeline_->labels.push_back(std::move(name));
    return entry->second;
  }
  ScopeId scope(const std::string& name) {
    const auto [entry, is_new] = scopes_.try_emplace(name, timeline_->scopes.next_id());
    if (is_new) timeline_->scopes.push_back(name);
    return entry->second;
  }

 private:
  Timeline* timeline_;
  std::map<std::string, std::uint32_t> labels_;
  std::map<std::string, ScopeId> scopes_;
};

}  // namespace

std::vector<SliceLabels> make_slice_labels(const program::Workload& workload, Timeline& timeline) {
  Names names(timeline);
  std::vector<SliceLabels> all;
  for (const program::Program& program : workload.programs) {
    SliceLabels labels;
    for (const compute::Kernel& kernel : program.kernels) {
      labels.kernels.push_back(names.label(std::string(kernel.kind->name)));
    }
    for (const program::CollectiveCall& call : program.collectives) {
      labels.collectives.push_back(names.label(std::string(to_text(call.kind))));
    }
    labels.copy = names.label("copy");
    labels.host_work = names.label("host work");
    labels.waiting = names.label("wait for the device");
    labels.allocator = names.label("device memory");
    for (const std::string& scope : program.scopes) labels.scopes.push_back(names.scope(scope));
    all.push_back(std::move(labels));
  }
  return all;
}

}  // namespace sim::engine
