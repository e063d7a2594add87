// The closed words that every floor uses. Open sets (architectures, trainers, collectives'
// algorithms, ...) are catalogs instead.
#pragma once

#include <cstdint>
#include <string_view>

namespace sim {

enum class DType : std::uint8_t { f64, f32, tf32, f16, bf16, f8, i64, i32, i8, u8, b1, nf4 };
constexpr std::int64_t bits(DType t) {
  switch (t) {
    case DType::f64:
    case DType::i64:
      return 64;
    case DType::f32:
    case DType::tf32:
    case DType::i32:
      return 32;
    case DType::f16:
    case DType::bf16:
      return 16;
    case DType::f8:
    case DType::i8:
    case DType::u8:
    case DType::b1:
      return 8;  // bool takes a byte
    case DType::nf4:
      return 4;
  }
  return 0;
}
constexpr std::string_view to_text(DType t) {
  constexpr std::string_view names[] = {"fp64",  "fp32",  "tf32", "fp16",  "bf16", "fp8",
                                        "int64", "int32", "int8", "uint8", "bool", "nf4"};
  return names[static_cast<int>(t)];
}

// What a device allocation is for. The ledger and `peak_by_class` use these words.
enum class MemoryClass : std::uint8_t {
  parameters,
  gradients,
  optimizer_states,
  activations,
  buffers,
  workspace,
  temporaries
};
constexpr int kMemoryClasses = 7;
constexpr std::string_view to_text(MemoryClass c) {
  constexpr std::string_view names[] = {"parameters",  "gradients", "optimizer_states",
                                        "activations", "buffers",   "workspace",
                                        "temporaries"};
  return names[static_cast<int>(c)];
}

enum class HostMemoryKind : std::uint8_t { anonymous, pinned, file_backed };
constexpr std::string_view to_text(HostMemoryKind k) {
  constexpr std::string_view names[] = {"anonymous", "pinned", "file_backed"};
  return names[static_cast<int>(k)];
}

enum class CollectiveKind : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  all_to_all,
  barrier
};
constexpr std::string_view to_text(CollectiveKind k) {
  constexpr std::string_view names[] = {"all_reduce", "all_gather", "reduce_scatter",
                                        "broadcast",  "all_to_all", "barrier"};
  return names[static_cast<int>(k)];
}

// Streams of one rank. The allocator pools memory by stream, so their identity matters.
enum class StreamRole : std::uint8_t {
  compute,        // PyTorch's default stream
  unshard,        // FSDP all-gathers ("all_gather" in 1.13)
  pre_unshard,    // FSDP low-precision shards
  post_backward,  // FSDP reduce-scatter and its casts
  communication,  // the process group's own stream (c10d NCCL)
  copy_in,        // host to device
  copy_out        // device to host
};
constexpr int kStreamRoles = 7;
constexpr std::string_view to_text(StreamRole r) {
  constexpr std::string_view names[] = {"compute",       "unshard", "pre_unshard", "post_backward",
                                        "communication", "copy_in", "copy_out"};
  return names[static_cast<int>(r)];
}

}  // namespace sim
