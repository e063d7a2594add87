// The verdict in words: its name in the contract, and the one sentence that answers "what happened,
// where, and why". Everything in the sentence comes from the report's data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/report/report.h"

namespace sim::report {

// fits, cuda_out_of_memory, host_out_of_memory, hang, crashed
std::string_view kind_of(const Verdict& verdict);
std::vector<std::string> verdict_kinds();

// "Hangs in save: ranks 1-3 wait in all_gather of model.norm for rank 0, ..."
std::string verdict_sentence(const Report& report);

// The phase that the job failed in; empty where it fits.
std::string_view phase_of(const Verdict& verdict);

// Whether `phase` is `name` or one of its sub-phases: save.clone is in save.
bool is_in(std::string_view phase, std::string_view name);

// The literal message of the failing program; empty where the job fits.
std::string_view message_of(const Verdict& verdict);

// {0, 1, 2, 5} -> "0-2, 5"
std::string ranges(const std::vector<std::uint32_t>& numbers);
std::string ranges(const std::vector<RankId>& ranks);

// "rank 0", "ranks 1-3"
std::string ranks_text(const std::vector<RankId>& ranks);

// What the processes of the host held before the request that ended one of them. `used` counts that
// request where it goes over the capacity.
Bytes held_before(const HostOutOfMemory& oom);

// The number of the innermost repeated module of a dotted path; -1 where it has none.
//   model.layers.22.self_attn.q_proj.weight -> 22
std::int64_t layer_of(std::string_view scope);

}  // namespace sim::report
