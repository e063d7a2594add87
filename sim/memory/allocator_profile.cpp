#include "sim/memory/allocator_profile.h"

#include <charconv>
#include <iterator>

#include <fmt/format.h>

namespace sim::memory {
namespace {

struct Release {
  int major = 0;
  int minor = 0;
  friend auto operator<=>(const Release&, const Release&) = default;
};

// Read in the sources of 1.13.1, 2.6.0 and copies of the main branch from 2023 to 2026; where the
// first release with a change was not seen, the family starts where reports first show it.
constexpr AllocatorProfile family(std::string_view since, int major, int minor,
                                  OomWording wording) {
  AllocatorProfile profile;
  profile.since = since;
  profile.major = major;
  profile.minor = minor;
  profile.oom_wording = wording;
  const Release release{major, minor};
  profile.oversize_slack_is_option = release >= Release{2, 4};
  profile.single_division_rounds = release >= Release{2, 5};
  profile.divisions_overwrite_last = release < Release{2, 9};
  profile.split_minimum_inclusive = release >= Release{2, 9};
  return profile;
}

constexpr AllocatorProfile kFamilies[] = {
    family("1.13", 1, 13, OomWording::one_line),
    family("2.0", 2, 0, OomWording::one_line),
    family("2.1", 2, 1, OomWording::capacty),
    family("2.2", 2, 2, OomWording::advice_expandable),
    family("2.4", 2, 4, OomWording::advice_expandable),
    family("2.5", 2, 5, OomWording::allowed_printed),
    family("2.9", 2, 9, OomWording::generic_variable),
    family("2.11", 2, 11, OomWording::documentation_moved),
};

std::optional<Release> parse_release(std::string_view text) {
  Release release;
  const char* end = text.data() + text.size();
  auto [after_major, major_error] = std::from_chars(text.data(), end, release.major);
  if (major_error != std::errc{} || after_major == end || *after_major != '.') return std::nullopt;
  auto [after, minor_error] = std::from_chars(after_major + 1, end, release.minor);
  if (minor_error != std::errc{}) return std::nullopt;
  const bool ends = after == end || *after == '.' || *after == '+' || *after == 'a' ||
                    *after == 'r' || *after == 'd';  // 2.1.0, 2.1+cu121, 2.1a0, 2.1rc1, 2.1dev
  if (!ends || release.major < 0 || release.minor < 0) return std::nullopt;
  return release;
}

}  // namespace

const AllocatorProfile* find_allocator_profile(const Named& release, Diagnostics& diagnostics) {
  const auto wanted = parse_release(release.name);
  if (!wanted) {
    diagnostics.error(release.at, fmt::format("'{}' is no PyTorch release", release.name),
                      "write for example 2.0.1");
    return nullptr;
  }
  const AllocatorProfile* found = nullptr;
  for (const AllocatorProfile& profile : kFamilies) {
    if (Release{profile.major, profile.minor} <= *wanted) found = &profile;
  }
  if (found == nullptr) {
    diagnostics.error(release.at, fmt::format("PyTorch {} is older than 1.13, the first modelled "
                                              "release",
                                              release.name));
  }
  return found;
}

const AllocatorProfile& newest_allocator_profile() { return kFamilies[std::size(kFamilies) - 1]; }

}  // namespace sim::memory
