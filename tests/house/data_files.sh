#!/usr/bin/env bash
# data_files.sh REHEARSE: every model and hardware file can be read, with a scenario that names it.
rehearse=$1 broken=0
scratch=$(mktemp -d) && trap 'rm -r "$scratch"' EXIT

# try FILE MODEL CLUSTER...: a small job on that model and cluster has to pass `plan`.
try() {
  local file=$1 model=$2
  shift 2
  printf '%s\n' "model: $model" cluster: "$@" 'software: {torch: 2.6.0}' \
    'job: {trainer: hf_trainer, micro_batch_size: 1, sequence_length: 128, optimizer: adamw}' >"$scratch/small.yaml"
  "$rehearse" plan "$scratch/small.yaml" >"$scratch/out" 2>&1 || { broken=1; echo "$file:"; head -n 10 "$scratch/out"; }
}

"$rehearse" list >/dev/null || exit 1
some_model=$(basename "$(find models -mindepth 1 -maxdepth 1 | sort | head -n 1)" .yaml)
some_node=$(basename "$(find hardware/nodes -name '*.yaml' | sort | head -n 1)" .yaml)
for model in models/*; do try "$model" "$(basename "$model" .yaml)" "  node: $some_node"; done
for node in hardware/nodes/*.yaml; do try "$node" "$some_model" "  node: $(basename "$node" .yaml)"; done
for gpu in hardware/gpus/*.yaml; do try "$gpu" "$some_model" "  node: $some_node" "  gpu: $(basename "$gpu" .yaml)"; done
exit $broken
