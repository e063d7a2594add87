// Writes a LayerGraph the way the Python modelling code runs: a Var is a Python variable. Copying
// it is another reference; when the last one goes (end of scope, reset, overwritten), the graph
// records that Python drops the tensor after the operator issued last. So an architecture written
// in the order of its Python source gets Python's lifetimes.
//
//   Var h = norm(g, residual, weights.input_layernorm);
//   h = attention(g, std::move(h), ...);       // the argument dies in the callee
//   Var out = add(g, std::move(residual), std::move(h));
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/plan/implementation.h"
#include "sim/plan/layer_graph.h"

namespace sim::plan {

class GraphBuilder;

// One entry of the operator catalog (operators/*.cpp).
struct Operator {
  std::string_view name;
  std::string_view description;
};

class Var {
 public:
  Var() = default;
  Var(const Var& other);
  Var(Var&& other) noexcept : graph_(other.graph_), id_(other.id_) { other.graph_ = nullptr; }
  Var& operator=(Var other) noexcept;
  ~Var() { reset(); }

  void reset();
  explicit operator bool() const { return graph_ != nullptr; }
  ValueId id() const { return id_; }
  const TensorType& type() const;
  const Shape& shape() const { return type().shape; }
  DType dtype() const { return type().dtype; }
  bool needs_grad() const;

 private:
  friend class GraphBuilder;
  friend class Node;
  Var(GraphBuilder* graph, ValueId id) : graph_(graph), id_(id) {}
  GraphBuilder* graph_ = nullptr;
  ValueId id_;
};

// A parameter as operators see it: in the compute dtype (FSDP's low precision, or as loaded).
struct Weight {
  ParameterId id;
  TensorType type;
  bool needs_grad = true;
};

class GraphBuilder {
 public:
  explicit GraphBuilder(const Implementations& implementations, DType weights);
  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;

  const Implementations& facts() const { return facts_; }
  DType weights() const { return weights_; }  // the type that they are loaded in

  // Full paths of the linear layers: what adapters can stand beside.
  void add_linear_module(std::string path) { linear_modules_.push_back(std::move(path)); }
  const std::vector<std::string>& linear_modules() const { return linear_modules_; }

  // Modules. `path` is the full dotted path; scopes nest by RAII.
  class ScopeGuard {
   public:
    explicit ScopeGuard(GraphBuilder& g, ScopeId previous) : graph_(g), previous_(previous) {}
    ~ScopeGuard() { graph_.scope_ = previous_; }
    ScopeGuard(const ScopeGuard&) = delete;
    ScopeGuard& operator=(const ScopeGuard&) = delete;

   private:
    GraphBuilder& graph_;
    ScopeId previous_;
  };
  [[nodiscard]] ScopeGuard scope(const std::string& path);

  // A parameter of the checkpoint; frozen where adapters are trained.
  // Switches that hold until the guard goes.
  class SwitchGuard {
   public:
    SwitchGuard(bool& flag, bool value) : flag_(flag), previous_(flag) { flag = value; }
    ~SwitchGuard() { flag_ = previous_; }
    SwitchGuard(const SwitchGuard&) = delete;
    SwitchGuard& operator=(const SwitchGuard&) = delete;

   private:
    bool& flag_;
    bool previous_;
  };
  [[nodiscard]] SwitchGuard no_grad() { return {grad_enabled_, false}; }
  [[nodiscard]] SwitchGuard without_adapters() { return {adapters_enabled_, false}; }
  // Parameters registered meanwhile are a frozen copy of the checkpoint's.
  [[nodiscard]] SwitchGuard frozen_copy() { return {frozen_copy_, true}; }
  bool grad_enabled() const { return grad_enabled_; }
  bool adapters_enabled() const { return adapters_enabled_; }

  Weight parameter(const std::string& module, std::string_view name, Shape shape);
  // The same, packed as facts().packed says.
  Weight packed_parameter(const std::string& module, std::string_view name, Shape shape);
  Weight adapter_parameter(const std::string& module, std::string_view name, Shape shape);
  BufferId buffer(const std::string& module, std::string_view name, TensorType type,
                  bool persistent);
  Var input(TensorType type);  // of the batch; never needs grad
  void require_grad(
      const Var& value);  // Tensor.requires_grad_ of what no operator gives a gradient

  // A block's parameters are those registered between begin_ and end_block_parameters; its nodes
  // those between begin_ and end_block.
  BlockId begin_block_parameters(const std::string& path, std::string_view class_name);
  void end_block_parameters(BlockId block);
  void begin_block(BlockId block);
  BlockId repeat_block(BlockId block);  // the same module, called once more
  void end_block(BlockId block, const Var& output);

  // The weight as autocast hands it to a matrix product: cast once per forward and kept in
  // autocast's cache where the release does so.
  Var autocast_weight(const Weight& weight);

  // Sets the loss, drops autocast's cache and checks that no Var is left. The builder is spent.
  LayerGraph finish(Var loss);

 private:
  friend class Var;
  friend class Node;
  void retain(ValueId id) { ++references_[id]; }
  void release(ValueId id);
  GraphKernelId intern(compute::Kernel kernel);
  Weight add_parameter(const std::string& module, std::string_view name, Parameter parameter);

  std::vector<std::string> linear_modules_;
  Implementations facts_;
  DType weights_;
  LayerGraph graph_;
  ScopeId scope_;
  bool grad_enabled_ = true, adapters_enabled_ = true, frozen_copy_ = false;
  IdVector<ValueId, int> references_;
  std::unordered_map<std::string, ScopeId> scope_ids_;
  std::unordered_multimap<std::size_t, GraphKernelId> kernel_ids_;
  std::vector<std::pair<ParameterId, Var>> autocast_cache_;
};

// One operator being written. Inputs are moved in and die (for Python) once the node is complete,
// at the end of the Node's life. Temporaries of the backward are numbered by allocate().
class Node {
 public:
  Node(GraphBuilder& graph, const Operator& op);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Operand numbers count from 0 in the order of these calls.
  int in(Var x);
  int in(const Weight& w);
  void in(BufferId b);
  void temporary(TensorType type);
  Var out(TensorType type);           // new memory
  Var view(int of, TensorType type);  // shares the memory of input `of`
  void launch(const compute::KernelKind& kind, std::initializer_list<TensorType> in,
              std::initializer_list<TensorType> out);
  void save(const Var& value);  // autograd keeps it until this node's backward
  void workspace();

  // Backward, in the order in which PyTorch does it. Only meaningful where `needs(operand)`.
  bool needs(int operand) const { return operand_needs_[static_cast<std::size_t>(operand)]; }
  bool needs_any() const;
  int allocate(TensorType type);
  void release(int temp);
  void launch_backward(const compute::KernelKind& kind, std::initializer_list<TensorType> in,
                       std::initializer_list<TensorType> out);
  void produce(int operand, TensorType type);
  void produce_view(int operand, TensorType type);  // a reshape of the new tensor is handed on
  void pass(int operand, int source = 0);           // the incoming gradient itself
  void pass_view(int operand, int source = 0);      // a view of the incoming gradient
  void hand_over(int operand, int temp);

 private:
  OpNode& node();
  GraphBuilder& graph_;
  OpNodeId id_;
  std::vector<Var> inputs_;
  std::vector<bool> operand_needs_;
  int temps_ = 0;
};

}  // namespace sim::plan
