// The folders of data that scenarios name by file: models/, hardware/gpus/, hardware/nodes/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostics.h"

namespace sim {

// Names of the entries of `folder` that have `suffix` behind them ("a100.yaml" with ".yaml" gives
// "a100"; "llama/config.json" with "/config.json" gives "llama"), sorted. Empty where the folder
// cannot be read.
std::vector<std::string> list_data_names(const std::string& folder, std::string_view suffix);

// True where `name` is a plain word that can name a file below a data folder: no separator, no
// "..".
bool is_data_name(std::string_view name);

bool file_exists(const std::string& path);

// `path` as meant by the file where it is written: relative to that file's folder.
std::string path_beside(const Span& at, const std::string& path);

}  // namespace sim
