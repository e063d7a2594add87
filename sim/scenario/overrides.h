// `key=value` of the command line laid over a parsed scenario, so that what follows reads, checks
// and blames it like any other line: its place is "command line:1:<column>".
#pragma once

#include "sim/base/diagnostics.h"
#include "sim/scenario/config_node.h"
#include "sim/scenario/scenario.h"

namespace sim {

// True where a value of the command line stands.
bool is_command_line(const Span& at);

// The key is dotted; maps on the way that are absent are made. The value is YAML: 4, [0, 1], {a:
// b}. An empty value takes the key away.
void lay_over(ConfigNode& root, const Override& override, Diagnostics& diagnostics);

}  // namespace sim
