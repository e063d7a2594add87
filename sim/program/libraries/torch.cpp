#include "sim/program/libraries/facts.h"
#include "sim/program/libraries/since.h"

namespace sim::program {

const Library kTorch{"torch", "PyTorch: autograd, optimizers, FSDP, DDP", "2.11.0", nullptr};

TorchFacts torch_facts(const Release& torch, int compute_capability) {
  TorchFacts f;
  const Release r{torch.major, torch.minor, torch.patch, {}};
  // aten/src/ATen/cuda/CublasHandlePool.cpp: from 2.0 on the workspace is the allocator's, of the
  // size
  // ":4096:2:16:8" = 2 x 4096 KiB + 8 x 16 KiB, or 32 MiB on compute capability 9.0. In 1.13 cuBLAS
  // allocates its own.
  const bool inside = by_release<bool>(r, {{{1, 13, 0, {}}, false}, {{2, 0, 0, {}}, true}});
  f.matrix_workspace = !inside ? Bytes{0} : compute_capability == 90 ? 32_MiB : Bytes{8'519'680};
  // torch/nn/modules/module.py: zero_grad(set_to_none) became True with 2.0.
  f.zero_grad_to_none = by_release<bool>(r, {{{1, 13, 0, {}}, false}, {{2, 0, 0, {}}, true}});
  // torch/optim/optimizer.py _default_to_fused_or_foreach: foreach by default from 2.0 on, only for
  // parameters whose exact type is Tensor or Parameter. FSDP's FlatParameter was a subclass until
  // it became a Parameter that reports itself as one (torch 2.1,
  // torch/distributed/fsdp/flat_param.py).
  f.foreach_by_default = by_release<bool>(r, {{{1, 13, 0, {}}, false}, {{2, 0, 0, {}}, true}});
  f.foreach_on_flat_parameters =
      by_release<bool>(r, {{{1, 13, 0, {}}, false}, {{2, 1, 0, {}}, true}});
  // torch/optim/adamw.py _multi_tensor_adamw: 2.0 makes sqrt and then its quotient as new lists;
  // from 2.1 on the quotient is in place.
  f.foreach_temporary_sets = by_release<int>(r, {{{1, 13, 0, {}}, 2}, {{2, 1, 0, {}}, 1}});
  // torch/distributed/fsdp/fully_sharded_data_parallel.py: defaults of the constructor.
  f.limit_all_gathers = by_release<bool>(r, {{{1, 13, 0, {}}, false}, {{2, 1, 0, {}}, true}});
  f.backward_prefetch = by_release<bool>(r, {{{1, 13, 0, {}}, false}, {{2, 0, 0, {}}, true}});
  // 1.13 pads the gradient in every case; later releases only where the world does not divide it.
  f.gradient_always_copied = by_release<bool>(r, {{{1, 13, 0, {}}, true}, {{2, 0, 0, {}}, false}});
  // _state_dict_utils.py appeared with 2.0: the pre-hooks unshard on the current stream; 1.13
  // summons the parameters on its own streams.
  f.state_dict_on_compute_stream =
      by_release<bool>(r, {{{1, 13, 0, {}}, false}, {{2, 0, 0, {}}, true}});
  f.warning_names_rank = f.state_dict_on_compute_stream;
  // torch/csrc/distributed/c10d: NCCL's default timeout is 30 minutes until 2.1, 10 minutes
  // from 2.2 on.
  f.watchdog = by_release<Duration>(
      r, {{{1, 13, 0, {}}, std::chrono::minutes(30)}, {{2, 2, 0, {}}, std::chrono::minutes(10)}});
  return f;
}

// aten/src/ATen/native/transformers/cuda/sdp_utils.cpp, check_prefer_cudnn_attention: 2.5.0 put
// cuDNN first on Hopper, 2.5.1 took that back (release notes); it came back with cuDNN 9.15 on
// compute capability 9.0 and 10.0 (recorded with 2.11; 2.9.1 still takes flash).
plan::AttentionKind preferred_sdpa(const Release& torch, int compute_capability) {
  const Release r{torch.major, torch.minor, torch.patch, {}};
  const bool cudnn = by_release<bool>(r, {{{2, 0, 0, {}}, false},
                                          {{2, 5, 0, {}}, true},
                                          {{2, 5, 1, {}}, false},
                                          {{2, 11, 0, {}}, true}});
  const bool suits = compute_capability == 90 || compute_capability == 100;
  return cudnn && suits ? plan::AttentionKind::sdpa_cudnn : plan::AttentionKind::sdpa_flash;
}

}  // namespace sim::program
