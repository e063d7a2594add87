#!/usr/bin/env python3
"""Records the memory of a steady training step of a few decoder layers, one setting at a time.

    python3 features.py OUT.csv [PART PARTS]

Needs one CUDA GPU, PyTorch, transformers and (for LoRA) peft. A row is a setting and what
torch.cuda counted in its fifth step: allocated bytes after forward, backward and step, and the
peaks of forward, backward, optimizer and evaluation. The table is one of the validation set
h200_features; recorded several at a time, so it holds no times.
"""
import contextlib
import csv
import gc
import sys

import torch
import transformers as T

BASE = dict(arch="llama3-8b", layers=4, batch=2, seq=2048, attn="sdpa", ckpt="none", mode="bf16",
            opt="adamw-foreach", clip=False, accum=1, lora=0, lora_targets="all", dropout=0.0,
            eval=False)

# Shapes from the models' published config.json, with four layers.
SHAPES = {
    "llama3-8b": (T.LlamaConfig, dict(hidden_size=4096, intermediate_size=14336,
                  num_attention_heads=32, num_key_value_heads=8, vocab_size=128256)),
    "mistral-7b": (T.MistralConfig, dict(hidden_size=4096, intermediate_size=14336,
                   num_attention_heads=32, num_key_value_heads=8, vocab_size=32000,
                   sliding_window=None)),
    "qwen2-7b": (T.Qwen2Config, dict(hidden_size=3584, intermediate_size=18944,
                 num_attention_heads=28, num_key_value_heads=4, vocab_size=152064)),
    "qwen3-8b": (T.Qwen3Config, dict(hidden_size=4096, intermediate_size=12288,
                 num_attention_heads=32, num_key_value_heads=8, head_dim=128,
                 vocab_size=151936)),
    "gemma-7b": (T.GemmaConfig, dict(hidden_size=3072, intermediate_size=24576,
                 num_attention_heads=16, num_key_value_heads=16, head_dim=256,
                 vocab_size=256000)),
    "gemma2-9b": (T.Gemma2Config, dict(hidden_size=3584, intermediate_size=14336,
                  num_attention_heads=16, num_key_value_heads=8, head_dim=256,
                  vocab_size=256000)),
    "phi3-mini": (T.Phi3Config, dict(hidden_size=3072, intermediate_size=8192,
                  num_attention_heads=32, num_key_value_heads=32, vocab_size=32064,
                  pad_token_id=0)),
    "gpt2-xl": (T.GPT2Config, dict(n_embd=1600, n_head=25, vocab_size=50257, n_positions=2048,
                resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)),
    "opt-6.7b": (T.OPTConfig, dict(hidden_size=4096, ffn_dim=16384, num_attention_heads=32,
                 vocab_size=50272, word_embed_proj_dim=4096, max_position_embeddings=4096,
                 dropout=0.0)),
    "falcon-7b": (T.FalconConfig, dict(hidden_size=4544, num_attention_heads=71,
                  vocab_size=65024, multi_query=True, parallel_attn=True, bias=False,
                  new_decoder_architecture=False, alibi=False)),
    "bloom-7b1": (T.BloomConfig, dict(hidden_size=4096, n_head=32, vocab_size=250880)),
    "mpt-7b": (T.MptConfig, dict(d_model=4096, n_heads=32, vocab_size=50432, expansion_ratio=4,
               max_seq_len=4096)),
    "olmo2-7b": (T.Olmo2Config, dict(hidden_size=4096, intermediate_size=11008,
                 num_attention_heads=32, num_key_value_heads=32, vocab_size=100352)),
    "granite-8b": (T.GraniteConfig, dict(hidden_size=4096, intermediate_size=12800,
                   num_attention_heads=32, num_key_value_heads=8, vocab_size=49155)),
    "gpt-neox-20b": (T.GPTNeoXConfig, dict(hidden_size=6144, intermediate_size=24576,
                     num_attention_heads=64, vocab_size=50432, max_position_embeddings=4096)),
    "mixtral-8x7b": (T.MixtralConfig, dict(hidden_size=4096, intermediate_size=14336,
                     num_attention_heads=32, num_key_value_heads=8, vocab_size=32000,
                     num_local_experts=8, num_experts_per_tok=2, sliding_window=None)),
}
TARGETS = {"all": "q k v o gate up down".split(), "qv": ["q", "v"], "mlp": "gate up down".split()}
FIGURES = ("after_forward peak_forward after_backward peak_backward peak_optimizer after_step "
           "peak_eval").split()


def settings():
    rows = []
    for arch in SHAPES:
        rows += [dict(arch=arch), dict(arch=arch, attn="eager", seq=1024),
                 dict(arch=arch, mode="autocast", ckpt="nonreentrant"),
                 dict(arch=arch, ckpt="reentrant"), dict(arch=arch, mode="autocast", seq=1024),
                 dict(arch=arch, attn="eager", seq=1024, mode="autocast", ckpt="nonreentrant")]
    for opt in ("adamw-loop", "adamw-fused", "sgd", "sgd-momentum", "adafactor", "adagrad",
                "amsgrad"):
        rows += [dict(opt=opt), dict(opt=opt, mode="fp32", seq=512)]
    rows += [dict(clip=True), dict(clip=True, mode="autocast"), dict(accum=2), dict(accum=4),
             dict(accum=2, mode="autocast"), dict(eval=True), dict(eval=True, mode="autocast"),
             dict(mode="fp32", seq=512), dict(mode="tf32", seq=512), dict(batch=1, seq=777),
             dict(batch=1, seq=8000), dict(batch=3, seq=1000), dict(batch=7, seq=129),
             dict(batch=1, seq=16384, ckpt="nonreentrant"), dict(batch=8, seq=2048)]
    for arch in ("llama3-8b", "mistral-7b", "qwen2-7b"):
        for lora in (dict(lora=16), dict(lora=64, lora_targets="mlp", dropout=0.1),
                     dict(lora=8, lora_targets="qv", dropout=0.05), dict(lora=256)):
            rows += [dict(arch=arch, **lora), dict(arch=arch, mode="autocast", **lora),
                     dict(arch=arch, ckpt="nonreentrant", **lora)]
    return [{**BASE, **row} for row in rows]


def build(s, device):
    cls, shape = SHAPES[s["arch"]]
    config = cls(**shape)
    for name in ("num_hidden_layers", "n_layer", "n_layers"):
        with contextlib.suppress(Exception):
            setattr(config, name, s["layers"])
    config.use_cache = False
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:s["layers"]]
    dtype = torch.bfloat16 if s["mode"] == "bf16" else torch.float32
    with torch.device(device):
        model = T.AutoModelForCausalLM.from_config(config, dtype=dtype,
                                                   attn_implementation=s["attn"])
    if s["lora"]:
        import peft
        model = peft.get_peft_model(model, peft.LoraConfig(
            r=s["lora"], lora_alpha=16, lora_dropout=s["dropout"], task_type="CAUSAL_LM",
            target_modules=[t + "_proj" for t in TARGETS[s["lora_targets"]]]))
    if s["ckpt"] != "none":
        model.gradient_checkpointing_enable(
            gradient_checkpointing_kwargs={"use_reentrant": s["ckpt"] == "reentrant"})
        if s["lora"]:
            model.enable_input_require_grads()
    return model.train()


def make_optimizer(name, parameters):
    O = torch.optim
    return {"adamw-foreach": lambda: O.AdamW(parameters, foreach=True),
            "adamw-loop": lambda: O.AdamW(parameters, foreach=False),
            "adamw-fused": lambda: O.AdamW(parameters, fused=True),
            "amsgrad": lambda: O.AdamW(parameters, amsgrad=True),
            "sgd": lambda: O.SGD(parameters, lr=1e-3),
            "sgd-momentum": lambda: O.SGD(parameters, lr=1e-3, momentum=0.9),
            "adafactor": lambda: O.Adafactor(parameters),
            "adagrad": lambda: O.Adagrad(parameters)}[name]()


def record(s, device):
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = s["mode"] == "tf32"
    model = build(s, device)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = make_optimizer(s["opt"], trained)
    memory = torch.cuda
    built = memory.memory_allocated(device)
    figures = {}
    for _ in range(5):
        for _ in range(s["accum"]):
            ids = torch.randint(0, 1000, (s["batch"], s["seq"]), device=device)
            memory.reset_peak_memory_stats(device)
            autocast = torch.autocast("cuda", dtype=torch.bfloat16)
            with autocast if s["mode"] == "autocast" else contextlib.nullcontext():
                out = model(input_ids=ids, labels=ids)
            figures["after_forward"] = memory.memory_allocated(device)
            figures["peak_forward"] = memory.max_memory_allocated(device)
            memory.reset_peak_memory_stats(device)
            loss = out.loss
            del out
            loss.backward()
            figures["after_backward"] = memory.memory_allocated(device)
            figures["peak_backward"] = memory.max_memory_allocated(device)
            del loss
        memory.reset_peak_memory_stats(device)
        if s["clip"]:
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        figures["peak_optimizer"] = memory.max_memory_allocated(device)
        optimizer.zero_grad(set_to_none=True)
        figures["after_step"] = memory.memory_allocated(device)
        if s["eval"]:
            model.eval()
            memory.reset_peak_memory_stats(device)
            with torch.no_grad():
                kept = [model(input_ids=ids, labels=ids).logits for _ in range(2)]
            figures["peak_eval"] = memory.max_memory_allocated(device)
            del kept
            model.train()
    counts = [sum(p.numel() for p in ps) for ps in (model.parameters(), trained)]
    return [*counts, built, *[figures.get(name, "") for name in FIGURES]]


def main():
    out = sys.argv[1]
    part, parts = (int(x) for x in sys.argv[2:4]) if len(sys.argv) > 2 else (0, 1)
    device = torch.device("cuda", 0)
    every = settings()
    share = every[part * len(every) // parts:(part + 1) * len(every) // parts]
    with open(out, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*BASE, "params", "trainable", "built", *FIGURES])
        for s in share:
            try:
                writer.writerow([*s.values(), *record(s, device)])
            except Exception as error:
                print(s, type(error).__name__, str(error)[:200], file=sys.stderr, flush=True)
            file.flush()
            gc.collect()
            torch.cuda.empty_cache()


main()
