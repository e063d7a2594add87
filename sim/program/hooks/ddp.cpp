#include "sim/program/hooks/ddp.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>

#include "sim/compute/kernels/kinds.h"

namespace sim::program {

namespace {

constexpr Bytes kBroadcastGroup = 250_MiB;      // distributed.py broadcast_bucket_size
constexpr std::size_t kBroadcastsInFlight = 2;  // comm.cpp broadcast_coalesced
constexpr Bytes kFirstBucket = 1_MiB;           // reducer.hpp kDefaultFirstBucketBytes
constexpr Bytes kNoLimit{std::numeric_limits<std::int64_t>::max()};

struct TensorGroup {
  DType dtype = DType::f32;
  Bytes bytes{0};
  std::vector<std::size_t> members;
};

// reducer.cpp compute_bucket_assignment_by_size: tensors of one type fill a group until it reaches
// the limit that is next in the list; groups stand in the order of their first members.
std::vector<TensorGroup> assign(const std::vector<TensorType>& types,
                                const std::vector<Bytes>& limits) {
  std::vector<TensorGroup> done;
  struct Open {
    TensorGroup group;
    std::size_t limit = 0;
  };
  std::map<DType, Open> open;
  for (std::size_t i = 0; i < types.size(); ++i) {
    Open& o = open[types[i].dtype];
    o.group.dtype = types[i].dtype;
    o.group.members.push_back(i);
    o.group.bytes += types[i].bytes();
    if (o.group.bytes < limits[o.limit]) continue;
    done.push_back(std::move(o.group));
    o.group = {};
    o.limit = std::min(o.limit + 1, limits.size() - 1);
  }
  for (auto& [dtype, o] : open) {
    if (!o.group.members.empty()) done.push_back(std::move(o.group));
  }
  std::ranges::sort(done, {}, [](const TensorGroup& g) { return g.members.front(); });
  return done;
}

}  // namespace

// _sync_module_states: all parameters, frozen ones too, then all buffers. A group of one tensor is
// that tensor's own memory (flatten_dense_tensors of one makes a view).
void Ddp::broadcast_model(Session& session) {
  Builder& b = session.builder;
  std::vector<TensorType> types;
  for (const plan::Parameter& p : graph_.parameters) types.push_back(p.type);
  for (const plan::Buffer& buffer : graph_.buffers) types.push_back(buffer.type);
  const Purpose purpose{MemoryClass::temporaries, b.scope(""), b.label("broadcast of the model")};
  b.set_scope(b.scope(""));
  std::deque<TensorId> in_flight;
  const auto finish = [&] {
    if (in_flight.front().valid()) b.release(in_flight.front());
    in_flight.pop_front();
  };
  for (const TensorGroup& group : assign(types, {kBroadcastGroup})) {
    if (in_flight.size() >= kBroadcastsInFlight) finish();
    in_flight.push_back(group.members.size() > 1 ? b.allocate(group.bytes, purpose) : TensorId{});
    b.collective(CollectiveKind::broadcast, session.world, group.bytes, StreamRole::communication);
    b.wait_stream(StreamRole::compute, StreamRole::communication);
  }
  while (!in_flight.empty()) finish();
}

void Ddp::make_buckets(Builder& b, const std::vector<std::size_t>& order,
                       const std::vector<Bytes>& limits) {
  for (Bucket& bucket : buckets_) b.release(bucket.memory);
  buckets_.clear();
  bucket_of_.assign(state_.size(), 0);
  std::vector<TensorType> types;
  for (std::size_t i : order) types.push_back({state_[i].dtype, {state_[i].elements}});
  for (const TensorGroup& group : assign(types, limits)) {
    Bucket bucket;
    bucket.dtype = group.dtype;
    for (std::size_t member : group.members) {
      bucket.members.push_back(order[member]);
      bucket.elements += state_[order[member]].elements;
      bucket_of_[order[member]] = buckets_.size();
    }
    bucket.memory =
        b.allocate(group.bytes, {MemoryClass::gradients, b.scope(""), b.label("gradient bucket")});
    buckets_.push_back(std::move(bucket));
  }
}

void Ddp::wrap(Session& session, LoadedModel& model) {
  session_ = &session;
  WholeModel::wrap(session, model);
  session.use_communicator();
  broadcast_model(session);
  // _ddp_init_helper: [sys.maxsize] where every parameter gets a gradient, else a small first
  // bucket.
  std::vector<std::size_t> order(state_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const bool all_used = options_.static_graph || !options_.find_unused_parameters;
  make_buckets(session.builder, order,
               all_used ? std::vector<Bytes>{kNoLimit}
                        : std::vector<Bytes>{kFirstBucket, options_.bucket_cap});
}

// Reducer::rebuild_buckets: once, in the forward after the first reduced backward, in the order in
// which the gradients came.
void Ddp::before_forward(Walker& w, MicroBatch batch) {
  batch_ = batch;
  const bool rebuilds = options_.static_graph || !options_.find_unused_parameters;
  if (!rebuilt_ && rebuilds && arrival_.size() == state_.size()) {
    rebuilt_ = true;
    w.builder().set_scope(w.builder().scope(""));
    make_buckets(w.builder(), arrival_, {kFirstBucket, options_.bucket_cap});
  }
  for (Bucket& bucket : buckets_) bucket.missing = bucket.members.size();
}

void Ddp::parameter_gradient(Walker& w, plan::ParameterId p, TensorId gradient) {
  WholeModel::parameter_gradient(w, p, gradient);
  if (!batch_.last) return;
  Builder& b = w.builder();
  const std::size_t index = state_of_[p.value];
  if (!rebuilt_) arrival_.push_back(index);
  Bucket& bucket = buckets_[bucket_of_[index]];
  const TensorType type{bucket.dtype, {state_[index].elements}};
  b.launch({&compute::kCopy, {type}, {type}});
  if (--bucket.missing > 0) return;
  b.wait_stream(StreamRole::communication, StreamRole::compute);
  b.collective(CollectiveKind::all_reduce, session_->world,
               TensorType{bucket.dtype, {bucket.elements}}.bytes(), StreamRole::communication);
}

// finalize_backward: each bucket is copied back into the gradients, or these become its views.
void Ddp::after_backward(Walker& w, MicroBatch batch) {
  if (!batch.last) return;
  Builder& b = w.builder();
  b.wait_stream(StreamRole::compute, StreamRole::communication);
  for (const Bucket& bucket : buckets_) {
    const TensorType type{bucket.dtype, {bucket.elements}};
    if (!options_.gradient_as_bucket_view) {
      b.launch({&compute::kCopy, {type}, {type}});
      continue;
    }
    for (std::size_t member : bucket.members) {
      TensorId& gradient = state_[member].gradient;
      if (gradient == bucket.memory) continue;
      b.release(gradient);
      b.retain(bucket.memory);
      gradient = bucket.memory;
    }
  }
}

}  // namespace sim::program
