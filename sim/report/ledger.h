// Who owns the memory at one moment: found by walking a program up to an op and adding up what is
// then alive. Internal to the report floor; analyse.cpp chooses the moment.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/report/report.h"

namespace sim::report {

// The module that owns a scope, layer numbers folded:
//   model.layers.22.self_attn.q_proj.weight -> model.layers.*.self_attn
//   lm_head.weight -> lm_head
// The model itself, whose path is empty, is "(root)".
std::string owner_of(std::string_view scope);

// Lines for the tensors alive before op `end`; those in `failed` were never allocated. Inside a
// loop the pass is the first or a later one, whichever comes nearer to `allocated`: a later pass
// finds what the one before it left.
std::vector<LedgerLine> alive_before(const program::Program& program, std::size_t end,
                                     const std::vector<std::uint32_t>& failed, Bytes allocated);

// The ledger at the worst moment of the run: the failure where there is one, else the highest
// allocated figure of any phase. Nothing where no rank reached a phase.
std::optional<Ledger> worst_ledger(const program::Workload& workload, const Timeline& timeline);

// What the processes of the host that ran out held; nothing for other verdicts.
std::optional<HostLedger> host_ledger(const program::Workload& workload, const Timeline& timeline,
                                      std::int64_t processes_per_node);

}  // namespace sim::report
