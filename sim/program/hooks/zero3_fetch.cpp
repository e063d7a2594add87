// Gathering and releasing (PartitionedParameterCoordinator and Init.all_gather_coalesced).
#include <algorithm>
#include <utility>

#include "sim/base/check.h"
#include "sim/compute/kernels/kinds.h"
#include "sim/program/hooks/zero3.h"

namespace sim::program {

using plan::ParameterId;

namespace {
TensorType flat(DType dtype, std::int64_t elements) { return {dtype, {elements}}; }
constexpr std::size_t kFetchEvents = 2;  // __max_ongoing_fetch_events
// Calls into torch that the hooks around one module make on the host, counted in fetch_sub_module,
// release_sub_module and the two autograd functions of parameter_offload.py.
constexpr std::int64_t kOperatorsPerModule = 16;
}  // namespace

// Those that are neither here nor on their way, by their ids: one alone is gathered into its own
// memory; several of a type into one flat tensor, from which wait() makes each parameter's.
void Zero3::gather(Builder& b, std::vector<ParameterId> wanted) {
  std::erase_if(wanted, [&](ParameterId p) {
    return sharded_[p].whole.valid() || sharded_[p].gather != kNone;
  });
  if (wanted.empty()) return;
  std::ranges::sort(wanted);
  for (ParameterId p : wanted) available_ += sharded_[p].elements;
  const StreamRole stream = gather_stream();
  b.set_scope(sharded_[wanted.front()].scope);
  // A piece that lives on the host is brought over first.
  const auto bring = [&](ParameterId p, std::vector<TensorId>& brought) {
    const Sharded& s = sharded_[p];
    if (s.swapped) b.host_work(swap_time(piece_bytes(s)));
    if (!s.host_piece.valid() && !s.swapped) return;
    brought.push_back(
        gpu(b, piece_bytes(s), MemoryClass::temporaries, s.scope, "piece of a parameter", stream));
    b.copy(piece_bytes(s), CopyDirection::host_to_device, true, options_.parameters.pinned, {},
           stream);  // .to() without non_blocking
  };
  if (wanted.size() == 1) {
    Sharded& s = sharded_[wanted.front()];
    const Bytes padded = flat(s.dtype, s.piece * world_).bytes();
    s.whole = gpu(b, padded, MemoryClass::parameters, s.scope, "gathered parameter", stream);
    std::vector<TensorId> brought;
    bring(wanted.front(), brought);
    b.collective(CollectiveKind::all_gather, session_ != nullptr ? session_->world : GroupId{0},
                 padded, stream);
    for (TensorId t : brought) b.release(t, stream);
    s.gather = gathers_.size();
    gathers_.push_back({{}, {wanted.front()}, 1, true});
    return;
  }
  while (!wanted.empty()) {
    const DType dtype = sharded_[wanted.front()].dtype;
    Gather g;
    std::int64_t pieces = 0;
    for (ParameterId p : wanted) {
      if (sharded_[p].dtype != dtype) continue;
      g.members.push_back(p);
      pieces += sharded_[p].piece;
      sharded_[p].gather = gathers_.size();
    }
    std::erase_if(wanted, [&](ParameterId p) { return sharded_[p].dtype == dtype; });
    g.waiting = g.members.size();
    const Bytes all = flat(dtype, pieces * world_).bytes();
    g.flat = gpu(b, all, MemoryClass::temporaries, sharded_[g.members.front()].scope,
                 "coalesced gather", stream);
    std::vector<TensorId> brought;
    for (ParameterId p : g.members) bring(p, brought);
    b.launch({&compute::kCopy, {flat(dtype, pieces)}, {flat(dtype, pieces)}}, stream);
    for (TensorId t : brought) b.release(t, stream);
    b.collective(CollectiveKind::all_gather, session_ != nullptr ? session_->world : GroupId{0},
                 all, stream);
    gathers_.push_back(std::move(g));
  }
}

void Zero3::wait(Builder& b, ParameterId p) {
  Sharded& s = sharded_[p];
  if (s.gather == kNone) return;
  Gather& g = gathers_[s.gather];
  const StreamRole stream = gather_stream();
  if (fetch_events_.size() > kFetchEvents) {
    b.synchronize(fetch_events_.front());
    fetch_events_.pop_front();
  }
  if (!g.unpacked) {
    for (ParameterId member : g.members) {
      Sharded& m = sharded_[member];
      m.whole = gpu(b, bytes(m), MemoryClass::parameters, m.scope, "gathered parameter", stream);
      b.launch({&compute::kCopy, {flat(m.dtype, m.elements)}, {flat(m.dtype, m.elements)}}, stream);
    }
    g.unpacked = true;
  }
  s.gather = kNone;
  if (--g.waiting == 0 && g.flat.valid()) b.release(std::exchange(g.flat, TensorId{}), stream);
  if (options_.overlaps) {
    if (event_of_position_.size() <= position_) event_of_position_.push_back(b.new_event());
    const EventId event = event_of_position_[position_++];
    b.record_event(event, stream);
    fetch_events_.push_back(event);
    b.wait_stream(StreamRole::compute, stream);
  }
}

// reset_step: the first micro-batch is recorded; later ones follow its trace.
void Zero3::before_forward(Walker& w, MicroBatch batch) {
  batch_ = batch;
  (void)w;
  if (trace_ == Trace::recording && !order_.empty()) {
    trace_ = Trace::complete;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      for (ParameterId p : order_[i]) uses_.push_back({p, static_cast<std::int64_t>(i)});
    }
  }
  for (Sharded& s : sharded_) s.last_use = -1;
  next_use_ = 0;
  step_ = 0;
  available_ = 0;
  position_ = 0;
  gathers_.clear();
}

// fetch_sub_module: what the module needs, the wait for it, then what comes next in the trace.
void Zero3::before_operator(Walker& w, plan::OpNodeId node, Pass) {
  const std::vector<ParameterId>& own = parameters_of(node);
  if (own.empty()) return;
  Builder& b = w.builder();
  b.host_work(session_->scenario.cluster.node.operator_overhead * kOperatorsPerModule);
  gather(b, own);
  for (ParameterId p : own) wait(b, p);
  if (trace_ == Trace::recording) {
    order_.push_back(own);
  } else {
    std::size_t expected = 0;
    for (ParameterId p : own) expected += sharded_[p].last_use < step_ ? 1u : 0u;
    for (; expected > 0 && next_use_ < uses_.size(); --expected, ++next_use_) {
      sharded_[uses_[next_use_].parameter].last_use = uses_[next_use_].step;
    }
    prefetch(b);
  }
  ++step_;
}

void Zero3::prefetch(Builder& b) {
  const std::int64_t most = std::min(options_.max_live - available_, options_.prefetch_bucket);
  std::vector<ParameterId> wanted;
  std::int64_t elements = 0;
  for (; next_use_ < uses_.size() && elements < most; ++next_use_) {
    const Use& use = uses_[next_use_];
    Sharded& s = sharded_[use.parameter];
    s.last_use = std::max(s.last_use, use.step);
    const bool away = !s.whole.valid() && s.gather == kNone;
    if (!away || std::ranges::find(wanted, use.parameter) != wanted.end()) continue;
    wanted.push_back(use.parameter);
    elements += s.elements;
  }
  gather(b, std::move(wanted));
}

// __params_to_release: not what is fetched for later already, nor what the next modules use.
bool Zero3::is_reused_soon(ParameterId p) const {
  if (sharded_[p].last_use > step_) return true;
  std::int64_t traversed = 0;
  for (auto i = static_cast<std::size_t>(step_);
       i < order_.size() && traversed < options_.max_reuse_distance; ++i) {
    for (ParameterId q : order_[i]) {
      if (q == p) return true;
      traversed += sharded_[q].elements;
    }
  }
  return false;
}

void Zero3::release(Builder& b, ParameterId p) {
  Sharded& s = sharded_[p];
  if (!s.whole.valid() || s.gather != kNone) return;
  available_ -= s.elements;
  if (options_.overlaps) b.record_stream(s.whole, StreamRole::compute);
  b.release(std::exchange(s.whole, TensorId{}), gather_stream());
}

// release_sub_module. In backward it hangs on the inputs' gradients: a module whose inputs ask for
// none (the embedding) keeps its parameters until the step.
void Zero3::after_operator(Walker& w, plan::OpNodeId node, Pass pass) {
  const std::vector<ParameterId>& own = parameters_of(node);
  if (own.empty()) return;
  if (pass == Pass::backward) {
    const auto inputs = plan::LayerGraph::slice(graph_.operands, graph_.nodes[node].inputs);
    const bool reached = std::ranges::any_of(inputs, [&](const plan::Operand& o) {
      return o.kind == plan::Operand::Kind::value && graph_.values[o.value()].needs_grad;
    });
    if (!reached) return;
  }
  for (ParameterId p : own) {
    const bool stays = trace_ == Trace::complete && (sharded_[p].persists || is_reused_soon(p));
    if (!stays) release(w.builder(), p);
  }
}

// partition_all_parameters
void Zero3::release_everything(Builder& b) {
  for (ParameterId p{0}; p.value < sharded_.size(); ++p.value) {
    wait(b, p);
    release(b, p);
  }
}

}  // namespace sim::program
