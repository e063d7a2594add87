#!/usr/bin/env python3
"""Records the memory of one rank of a sharded job on one GPU: PyTorch's fake process group lets one
process be a rank of any world, whose collectives do nothing but whose allocations are the library's.

    python3 sharding.py OUT.csv

Needs one CUDA GPU, PyTorch, transformers, peft. A row is a setting, then allocated (peak and end)
and reserved (peak) bytes per phase: the columns of the validation set h200_sharding, after `world`,
`rank` and `arch`. Streams of collectives that do nothing finish early, so `reserved` may lie below
that of a real job.
"""
import contextlib
import csv
import functools
import gc
import sys
import warnings

import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

BASE = dict(framework="fsdp1", layers=8, batch=1, seq=2048, weights="fp32", mp="none",
            autocast=True, ckpt=True, accum=1, no_sync=False, strategy="full", prefetch="pre",
            limiter=True, orig_params=True, offload=False, reshard=True, bucket_mb=25, view=False,
            static=False, clip=False, opt="adamw-foreach", lora=0, save="none")
WORLD = dict(world=2, rank=0, arch="7b")
PHASES = "build wrap forward0 backward0 optimizer0 end0 step save".split()
BF16, FP32 = torch.bfloat16, torch.float32


def settings():
    plain, low = dict(), dict(mp="bf16", autocast=False)
    rows = []
    for mode in (plain, low, dict(mp="bf16-reduce32", autocast=False),
                 dict(weights="bf16", autocast=False)):
        rows += [dict(mode, **x) for x in (
            {}, dict(orig_params=False), dict(ckpt=False), dict(strategy="grad_op"),
            dict(strategy="no_shard"), dict(prefetch="post"), dict(prefetch="none"),
            dict(limiter=False), dict(accum=2), dict(accum=2, no_sync=True), dict(clip=True),
            dict(opt="adamw-loop"), dict(opt="adamw-fused"), dict(batch=2), dict(lora=16),
            dict(offload=True), dict(rank=1))]
        if mode is not plain:
            rows += [dict(mode, framework="fsdp2", **x) for x in (
                {}, dict(ckpt=False), dict(reshard=False), dict(accum=2),
                dict(accum=2, no_sync=True), dict(clip=True), dict(opt="adamw-loop"),
                dict(opt="adamw-fused"), dict(offload=True), dict(batch=2), dict(lora=16),
                dict(rank=1))]
    rows += [dict(framework="fsdp2", autocast=False), dict(framework="fsdp2")]
    for mode in (plain, dict(weights="bf16", autocast=False)):
        rows += [dict(mode, framework="ddp", **x) for x in (
            {}, dict(ckpt=False), dict(view=True), dict(static=True), dict(bucket_mb=100),
            dict(accum=2), dict(accum=2, no_sync=True), dict(clip=True), dict(opt="adamw-loop"),
            dict(lora=16))]
        rows += [dict(mode, framework="zero1"), dict(mode, framework="zero1", rank=1)]
    for framework in ("fsdp1", "fsdp2"):
        rows += [dict(low, framework=framework, world=64, arch="70b", layers=80, **x)
                 for x in ({}, dict(mp="bf16-reduce32"), dict(rank=63), dict(reshard=False,
                                                                             strategy="grad_op"))]
    return [({**WORLD, **{k: v for k, v in row.items() if k in WORLD}},
             {**BASE, **{k: v for k, v in row.items() if k in BASE}}) for row in rows]


def wrapped(model, s, device, layer):
    if s["framework"] == "fsdp1":
        from torch.distributed.fsdp import (BackwardPrefetch, CPUOffload,
                                            FullyShardedDataParallel, MixedPrecision,
                                            ShardingStrategy)
        from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy
        reduce = FP32 if s["mp"] == "bf16-reduce32" else BF16
        strategy = {"full": "FULL_SHARD", "grad_op": "SHARD_GRAD_OP", "no_shard": "NO_SHARD"}
        prefetch = {"pre": BackwardPrefetch.BACKWARD_PRE, "post": BackwardPrefetch.BACKWARD_POST}
        return FullyShardedDataParallel(
            model, device_id=device, use_orig_params=s["orig_params"],
            auto_wrap_policy=functools.partial(transformer_auto_wrap_policy,
                                               transformer_layer_cls={layer}),
            mixed_precision=None if s["mp"] == "none" else MixedPrecision(BF16, reduce, BF16),
            sharding_strategy=ShardingStrategy[strategy[s["strategy"]]],
            backward_prefetch=prefetch.get(s["prefetch"]), limit_all_gathers=s["limiter"],
            cpu_offload=CPUOffload(True) if s["offload"] else None,
            param_init_fn=lambda module: module.to_empty(device=device, recurse=False))
    if s["framework"] == "fsdp2":
        from torch.distributed.fsdp import (CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard)
        options = dict(reshard_after_forward=s["reshard"])
        if s["mp"] != "none":
            options["mp_policy"] = MixedPrecisionPolicy(
                param_dtype=BF16, reduce_dtype=FP32 if s["mp"] == "bf16-reduce32" else BF16)
        if s["offload"]:
            options["offload_policy"] = CPUOffloadPolicy()
        for module in model.modules():
            if isinstance(module, layer):
                fully_shard(module, **options)
        return fully_shard(model, **options)
    return torch.nn.parallel.DistributedDataParallel(
        model, device_ids=[device.index], bucket_cap_mb=s["bucket_mb"],
        gradient_as_bucket_view=s["view"], static_graph=s["static"])


def record(w, s, device):
    from transformers import AutoModelForCausalLM, LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaDecoderLayer
    torch.manual_seed(0)
    figures = {}

    def mark(phase):
        torch.cuda.synchronize(device)
        stats = torch.cuda.memory_stats(device)
        figures[phase] = [stats["allocated_bytes.all.peak"], stats["allocated_bytes.all.current"],
                          stats["reserved_bytes.all.peak"]]
        torch.cuda.reset_peak_memory_stats(device)

    torch.cuda.reset_peak_memory_stats(device)
    shape = {} if w["arch"] == "7b" else dict(hidden_size=8192, intermediate_size=28672,
                                              num_attention_heads=64, num_key_value_heads=8)
    config = LlamaConfig(num_hidden_layers=s["layers"], use_cache=False, **shape)
    large = w["arch"] != "7b"
    with torch.device("meta" if large else device):
        model = AutoModelForCausalLM.from_config(
            config, dtype=FP32 if s["weights"] == "fp32" else BF16, attn_implementation="sdpa")
    if s["lora"]:
        import peft
        names = "q k v o gate up down".split()
        model = peft.get_peft_model(
            model, peft.LoraConfig(r=s["lora"], lora_dropout=0.0, task_type="CAUSAL_LM",
                                   target_modules=[n + "_proj" for n in names]),
            autocast_adapter_dtype=s["framework"] == "ddp")
    if s["ckpt"]:
        model.gradient_checkpointing_enable(
            gradient_checkpointing_kwargs={"use_reentrant": False})
        if s["lora"]:
            model.enable_input_require_grads()
    model.train()
    mark("build")
    model = wrapped(model, s, device, LlamaDecoderLayer)
    if large and s["framework"] == "fsdp2":
        model.to_empty(device=device)
    mark("wrap")
    trained = [p for p in model.parameters() if p.requires_grad]
    options = {"adamw-loop": dict(foreach=False), "adamw-fused": dict(fused=True)}
    if s["framework"] == "zero1":
        from torch.distributed.optim import ZeroRedundancyOptimizer
        optimizer = ZeroRedundancyOptimizer(trained, torch.optim.AdamW)
    else:
        optimizer = torch.optim.AdamW(trained, **options.get(s["opt"], {}))
    for step in range(3):
        for i in range(s["accum"]):
            last = i == s["accum"] - 1
            skips = s["no_sync"] and not last
            ids = torch.randint(0, 32000, (s["batch"], s["seq"]), device=device)
            if s["framework"] == "fsdp2":
                model.set_requires_gradient_sync(not skips)
            quiet = model.no_sync() if skips and s["framework"] != "fsdp2" else None
            with quiet or contextlib.nullcontext():
                autocast = torch.autocast("cuda", dtype=BF16)
                with autocast if s["autocast"] else contextlib.nullcontext():
                    loss = model(input_ids=ids, labels=ids).loss
                if step == 0 and i == 0:
                    mark("forward0")
                loss.backward()
                del loss
                if step == 0 and i == 0:
                    mark("backward0")
        if s["clip"] and s["framework"] == "fsdp1":
            model.clip_grad_norm_(1.0)
        elif s["clip"]:
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        if step == 0:
            mark("optimizer0")
        optimizer.zero_grad(set_to_none=True)
        mark("end0" if step == 0 else "step")
    return figures


def main():
    warnings.simplefilter("ignore")
    device = torch.device("cuda", 0)
    torch.cuda.set_device(device)
    with open(sys.argv[1], "w", newline="") as file:
        writer = csv.writer(file)
        columns = ("alloc_peak", "alloc_end", "reserved_peak")
        writer.writerow([*WORLD, *BASE, *[f"{p}_{c}" for p in PHASES for c in columns]])
        for w, s in settings():
            dist.init_process_group("fake", rank=w["rank"], world_size=w["world"],
                                    store=FakeStore())
            try:
                figures = record(w, s, device)
                writer.writerow([*w.values(), *s.values(),
                                 *[x for p in PHASES for x in figures.get(p, [""] * 3)]])
            except Exception as error:
                print(w, s, type(error).__name__, str(error)[:200], file=sys.stderr, flush=True)
            file.flush()
            gc.collect()
            torch.cuda.empty_cache()
            dist.destroy_process_group()


main()
