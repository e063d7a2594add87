#include <set>

#include "sim/compute/kernel_timer.h"
#include "sim/compute/kernels/kinds.h"
#include "tests/support/catch.h"

namespace sim::compute {
namespace {

GpuSpec a100() {
  GpuSpec gpu;
  gpu.peak[DType::bf16] = 312_TFLOPS;
  gpu.peak[DType::tf32] = 156_TFLOPS;
  gpu.peak[DType::f32] = FlopRate{19.5e12};
  gpu.memory_bandwidth = 1555_GBps;
  return gpu;
}

TensorType bf16(Shape shape) { return {DType::bf16, shape}; }
TensorType fp32(Shape shape) { return {DType::f32, shape}; }

TEST_CASE("a gemm does two operations per product and moves each operand once") {
  const Kernel kernel{
      &kGemm, {bf16({2, 1024, 4096}), bf16({11008, 4096})}, {bf16({2, 1024, 11008})}};
  const Work work = kernel.kind->work(kernel);
  CHECK(work.flops.count == 2.0 * 2048 * 4096 * 11008);
  CHECK(work.read == Bytes{2 * (2048 * 4096 + 11008 * 4096)});
  CHECK(work.written == Bytes{2 * 2048 * 11008});
}

TEST_CASE("causal attention does half the work, its backward two and a half times the forward's") {
  const TensorType q = bf16({1, 2048, 32, 128});
  const TensorType kv = bf16({1, 2048, 8, 128});
  const TensorType statistics = fp32({1, 32, 2048});
  Kernel forward{&kFlashAttentionForward, {q, kv, kv}, {q, statistics}};
  const double full = forward.kind->work(forward).flops.count;
  CHECK(full == 4.0 * 32 * 2048 * 2048 * 128);
  forward.causal = true;
  CHECK(forward.kind->work(forward).flops.count == full / 2);
  const Kernel backward{
      &kFlashAttentionBackward, {q, q, kv, kv, q, statistics}, {q, kv, kv}, false, true};
  CHECK(backward.kind->work(backward).flops.count == full / 2 * 2.5);
}

TEST_CASE("an embedding reads only the rows it is asked for") {
  const Kernel kernel{
      &kEmbedding, {bf16({32000, 4096}), {DType::i64, {1, 512}}}, {bf16({1, 512, 4096})}};
  const Work work = kernel.kind->work(kernel);
  CHECK(work.read == Bytes{512 * 4096 * 2 + 512 * 8});
}

TEST_CASE("the roofline takes the slower of arithmetic and memory") {
  const KernelTimer timer(a100());
  const Kernel product{&kGemm, {bf16({8192, 8192}), bf16({8192, 8192})}, {bf16({8192, 8192})}};
  CHECK(to_seconds(timer.time(product).duration) ==
        Approx(2.0 * 8192 * 8192 * 8192 / (0.83 * 312e12) + 1.4e-6));
  const Kernel sum{&kElementwise, {bf16({1 << 28})}, {bf16({1 << 28})}};
  CHECK(to_seconds(timer.time(sum).duration) ==
        Approx(4.0 * (1 << 28) / (0.86 * 1555e9)).epsilon(0.01));
  const KernelEstimate estimate = timer.time(sum);
  CHECK(estimate.low < estimate.duration);
  CHECK(estimate.duration < estimate.high);
  CHECK(estimate.basis == EstimateBasis::roofline);
}

TEST_CASE("fp32 products run as TF32 only where the script allows it") {
  const KernelTimer timer(a100());
  Kernel product{&kGemm, {fp32({4096, 4096}), fp32({4096, 4096})}, {fp32({4096, 4096})}};
  const double plain = to_seconds(timer.time(product).duration);
  product.tf32 = true;
  CHECK(plain / to_seconds(timer.time(product).duration) == Approx(8).epsilon(0.05));
}

TEST_CASE("kernel names are unique and operands are checked") {
  std::set<std::string_view> names;
  for (const KernelKind* kind : kernel_catalog().entries()) {
    CHECK(names.insert(kind->name).second);
    CHECK(kernel_catalog().find(kind->name) == kind);
    CHECK_FALSE(kind->description.empty());
  }
  CHECK_FALSE(has_least_operands({&kGemm, {bf16({4, 4})}, {bf16({4, 4})}}));
  CHECK_FALSE(has_least_operands({&kGemm, {bf16({}), bf16({})}, {bf16({})}}));
  CHECK(has_least_operands({&kFill, {}, {bf16({4})}}));
}

}  // namespace
}  // namespace sim::compute
