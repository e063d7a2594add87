#include "sim/scenario/data_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace sim {

std::vector<std::string> list_data_names(const std::string& folder, std::string_view suffix) {
  std::vector<std::string> names;
  std::error_code error;
  const bool below_folder = suffix.starts_with('/');
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (below_folder) {
      if (file_exists(entry->path().string() + std::string(suffix))) names.push_back(name);
    } else if (name.ends_with(suffix)) {
      names.push_back(name.substr(0, name.size() - suffix.size()));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool is_data_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.size() <= 200 &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

bool file_exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) && !std::filesystem::is_directory(path, error);
}

std::string path_beside(const Span& at, const std::string& path) {
  const std::filesystem::path folder =
      at.file ? std::filesystem::path(at.file->path).parent_path() : std::filesystem::path();
  return (folder / path).string();
}

}  // namespace sim
