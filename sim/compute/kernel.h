// What a GPU is asked to compute: a kind and the types of its tensors. Bytes moved, operations done
// and time all derive from this one description.
#pragma once

#include <string_view>
#include <vector>

#include "sim/base/catalog.h"
#include "sim/base/tensor.h"
#include "sim/base/units.h"

namespace sim::compute {

struct Kernel;

// What a launch must do at least: operations (multiply and add count two) and bytes of device
// memory.
struct Work {
  Flops flops;
  Bytes read;
  Bytes written;
};

// What a kind's operands must be at least, so that a program read from a file can be refused.
struct LeastOperands {
  int in = 0;    // number of inputs
  int out = 1;   // number of outputs
  int rank = 0;  // dimensions of those inputs
};
bool has_least_operands(const Kernel& kernel);

// One kind of kernel (kernels/*.cpp; listed in kernels/catalog.cpp).
struct KernelKind {
  std::string_view name;  // gemm, flash_attention_forward, elementwise, ...
  std::string_view description;
  bool matrix = false;  // runs on tensor cores at the rate of in[0]'s dtype
  Work (*work)(const Kernel&);
  double compute_fraction = 1;    // of the peak rate that large launches of this kind reach
  double bandwidth_fraction = 1;  // of the memory's peak bandwidth, likewise
  LeastOperands least{};
};

// gemm: in = {[.., m, k], [n, k]}, out = {[.., m, n]}. elementwise: any inputs, any outputs. Each
// kind's file states its own operands.
struct Kernel {
  const KernelKind* kind = nullptr;
  std::vector<TensorType> in;
  std::vector<TensorType> out;
  bool tf32 = false;    // fp32 matrix inputs may run as TF32
  bool causal = false;  // attention: a query sees only keys up to its own position

  friend bool operator==(const Kernel& a, const Kernel& b) {
    return a.kind == b.kind && a.in == b.in && a.out == b.out && a.tf32 == b.tf32 &&
           a.causal == b.causal;
  }
};

const Catalog<KernelKind>& kernel_catalog();

}  // namespace sim::compute
