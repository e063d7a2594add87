// A Program as stable text, one op a line; golden files hold it and it reads back.
//
// First what the ops name, each with its id (ids count up from 0), then the ops in host order, with
// the stream and scope where they are not compute and none. A blank separates words, '#' begins a
// comment; sizes and times carry units.
//
//   scope s0 "model.layers.0"
//   label l0 "weight"
//   message m0 "Failed to clone: {}"
//   phase p0 "load"
//   events 1
//   crash_message "CUDA error: invalid argument"
//   tensor t0 64MiB parameters scope s0 label l0
//   tensor t1 64MiB temporaries warn m0 saved_by l0
//   kernel k0 gemm bf16[2048,4096] bf16[4096,4096] -> bf16[2048,4096] tf32 causal
//   collective c0 all_gather group 0 400MiB scope s0
//   buffer b0 pinned 1GiB scope s0 label l0
//   external x0 500MiB label l0
//   begin_phase p0
//   external_alloc x0
//   alloc t0 on unshard in s0
//   launch k0
//   call c0 on communication
//   copy 65536KiB device_to_host blocking pinned from t1
//   record_stream t0 compute
//   record_event e0 on unshard
//   wait_event e0
//   synchronize e0             (synchronize alone: the whole device)
//   host_work 12000ps
//   host_alloc b0
//   host_free b0
//   loop 2 times 10            (the next 2 ops)
//   alloc t1
//   free t1
//   empty_cache
//   external_free x0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "sim/base/diagnostics.h"
#include "sim/program/program.h"

namespace sim::program {

std::string to_text(const Program& program);

// Files every line that cannot be read, with its place; nullopt if there is any. A program that was
// read has no reference to something undeclared, and its kernels have the operands they need; the
// groups that it names are for the caller to check.
std::optional<Program> parse_program(std::shared_ptr<const SourceFile> file,
                                     Diagnostics& diagnostics);

}  // namespace sim::program
