// The model of one micro-batch as PyTorch runs it: operators (one ATen call each) in execution
// order, the tensors between them, and the moments at which Python drops its references. What
// autograd keeps and what the backward of each operator allocates is written down with the
// operator, so forward, recomputation and backward all come from this one list.
//
// Built by GraphBuilder (graph_builder.h) from the architectures' own code; never changed
// afterwards.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/tensor.h"
#include "sim/base/units.h"
#include "sim/compute/kernel.h"

namespace sim::plan {

struct OpNodeTag;
struct ValueTag;
struct ParameterTag;
struct BufferTag;
struct BlockTag;
struct GraphKernelTag;
using OpNodeId = Id<OpNodeTag>;
using ValueId = Id<ValueTag>;
using ParameterId = Id<ParameterTag>;
using BufferId = Id<BufferTag>;
using BlockId = Id<BlockTag>;
using GraphKernelId = Id<GraphKernelTag>;

struct Scope {
  std::string path;  // dotted module path: model.layers.0.self_attn
};

struct Parameter {
  ScopeId scope;     // of its module
  std::string name;  // full dotted name: model.layers.0.self_attn.q_proj.weight
  TensorType type;   // as trained (master precision, or packed)
  bool trainable = true;
  // From the checkpoint; made by the script; a frozen copy of the checkpoint's.
  enum class Origin : std::uint8_t { checkpoint, adapter, reference } origin = Origin::checkpoint;
  DType loaded = DType::f32;  // before the script prepares it for training
  Shape matrix;               // the weight that a packed one stands for; else as `type`
  bool packed() const { return !(matrix == type.shape); }
  TensorType as_loaded() const { return {loaded, type.shape}; }
};

struct Buffer {
  ScopeId scope;
  std::string name;
  TensorType type;
  bool persistent = false;  // in the state dict
  std::uint32_t after = 0;  // parameters registered before it: its place among them
};

struct Value {
  TensorType type;
  ValueId storage;  // the value whose memory it shares (views), else itself
  bool needs_grad = false;
  bool input = false;  // made by the data loader, not by an operator
};

// What an operator reads.
struct Operand {
  enum class Kind : std::uint8_t { value, parameter, buffer } kind = Kind::value;
  std::uint32_t index = 0;

  ValueId value() const { return ValueId{index}; }
  ParameterId parameter() const { return ParameterId{index}; }
  friend bool operator==(const Operand&, const Operand&) = default;
};

// One step of an operator's backward. Temporaries are numbered from 0 within the node.
struct GradStep {
  enum class Kind : std::uint8_t {
    allocate,  // temporary `temp` of `type`
    release,   // temporary `temp`
    launch,    // `kernel`
    produce,   // gradient of input `operand` is a new tensor of `type` (`view`: a view of one)
    pass,      // gradient of input `operand` shares the memory of the incoming gradient `source`
    hand_over  // gradient of input `operand` is temporary `temp`
  } kind = Kind::launch;
  std::uint8_t operand = 0;
  std::uint8_t source = 0;
  std::uint8_t temp = 0;
  bool view = false;  // autograd cannot add to this gradient in place
  GraphKernelId kernel;
  TensorType type;
};

struct Range {
  std::uint32_t begin = 0, end = 0;
  std::uint32_t size() const { return end - begin; }
  bool contains(std::uint32_t i) const { return i >= begin && i < end; }
};

struct OpNode {
  std::string_view name;  // of its operator: silu, linear, ... (static storage)
  ScopeId scope;
  Range inputs;       // into LayerGraph::operands
  Range outputs;      // into LayerGraph::outputs (ValueIds)
  Range temporaries;  // into LayerGraph::temporaries: allocated before, freed after the kernel
  Range saved;        // into LayerGraph::saved: what autograd keeps until this node's backward
  Range dropped;      // into LayerGraph::dropped: values whose last Python reference goes after it
  Range backward;     // into LayerGraph::backward
  GraphKernelId kernel;     // none: a view, nothing is launched
  bool needs_grad = false;  // has a backward node
  bool workspace =
      false;  // runs on a library that takes a workspace per thread and stream (cuBLAS)
};

// A module that repeats (decoder layer): the unit that strategies wrap and checkpointing
// recomputes.
struct Block {
  ScopeId scope;
  std::string_view class_name;  // LlamaDecoderLayer: what wrap policies name
  Range nodes;                  // OpNodeIds
  Range parameters;             // ParameterIds, in module traversal order
  Range values;                 // ValueIds made inside
  bool no_grad = false;         // runs under torch.no_grad: neither recomputed nor run backward
  std::vector<ValueId> inputs;  // activations it reads from outside, the hidden state first
  ValueId output;
  std::vector<ValueId>
      late_drops;  // made inside, dropped by the caller later (autocast's weight cache)
};

struct LayerGraph {
  IdVector<ScopeId, Scope> scopes;
  IdVector<ParameterId, Parameter> parameters;  // in the order of model.parameters()
  IdVector<BufferId, Buffer> buffers;
  IdVector<ValueId, Value> values;
  IdVector<OpNodeId, OpNode> nodes;  // in execution order
  IdVector<BlockId, Block> blocks;   // in execution order, not nested
  IdVector<GraphKernelId, compute::Kernel> kernels;
  std::vector<Operand> operands;
  std::vector<ValueId> outputs;
  std::vector<TensorType> temporaries;
  std::vector<ValueId> saved;  // storages (parameters and buffers live anyway)
  std::vector<ValueId> dropped;
  std::vector<GradStep> backward;
  std::vector<ValueId> inputs;  // the batch: ids, labels, mask
  ValueId loss;
  Flops model_flops;  // forward and backward of its matrix products, no recompute

  template <class T>
  static std::span<const T> slice(const std::vector<T>& all, Range r) {
    return std::span<const T>(all).subspan(r.begin, r.size());
  }
};

}  // namespace sim::plan
