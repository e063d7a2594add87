// What one PyTorch release's CUDA caching allocator does differently from the others, and what its
// users may set: AllocatorProfile (constants and texts, by release) and AllocatorSettings (the
// value of PYTORCH_CUDA_ALLOC_CONF, parsed).
//
//   const AllocatorProfile* profile = find_allocator_profile({"2.0.1", at}, diagnostics);
//   auto settings = parse_allocator_settings({"max_split_size_mb:64", at}, *profile, diagnostics);
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/diagnostics.h"
#include "sim/base/units.h"

namespace sim::memory {

inline constexpr Bytes kUnlimited{std::numeric_limits<std::int64_t>::max()};

// How the out-of-memory exception is worded; see oom_message.h.
enum class OomWording : std::uint8_t {
  one_line,             // 1.13, 2.0: "(GPU 0; 39.39 GiB total capacity; ..."
  capacty,              // 2.1: per-process figures, "capacty", advice max_split_size_mb
  advice_expandable,    // 2.2-2.4: "capacity", advice expandable_segments
  allowed_printed,      // 2.5-2.8: "x allowed; " printed when a memory fraction is set
  generic_variable,     // 2.9, 2.10: the advice names PYTORCH_ALLOC_CONF
  documentation_moved,  // 2.11: docs.pytorch.org, and the advice names PYTORCH_CUDA_ALLOC_CONF
};

// One family of releases. All sizes are those of c10/cuda/CUDACachingAllocator.cpp, where they are
// the same from 1.13 to 2.11.
struct AllocatorProfile {
  std::string_view since;  // first release of the family: "2.1"
  int major = 0;
  int minor = 0;
  OomWording oom_wording = OomWording::one_line;
  bool oversize_slack_is_option = false;  // max_non_split_rounding_mb; a fixed 20 MiB before
  bool divisions_overwrite_last = false;  // ">:n" in a roundup list also replaces the last interval
  bool single_division_rounds = false;    // one division rounds to 512 bytes; left as it is before
  bool split_minimum_inclusive = false;   // max_split_size_mb may be 20 itself

  Bytes min_block{512};               // kMinBlockSize: quantum of requests
  Bytes small_size{1'048'576};        // kSmallSize: largest request of the small pool
  Bytes small_segment{2'097'152};     // kSmallBuffer: segment and page of the small pool
  Bytes min_large_alloc{10'485'760};  // kMinLargeAlloc: requests from here get their own segment
  Bytes round_large{2'097'152};       // kRoundLarge: such segments are multiples of this
};

// The family of `release` ("2.0.1", "2.11.0+cu130"). Null, with an error filed, for text that is no
// release and for releases before 1.13.
const AllocatorProfile* find_allocator_profile(const Named& release, Diagnostics& diagnostics);

const AllocatorProfile& newest_allocator_profile();

// PYTORCH_CUDA_ALLOC_CONF. The defaults are those of every release.
struct AllocatorSettings {
  Bytes max_split_size = kUnlimited;
  Bytes max_non_split_rounding{20'971'520};
  Bytes large_segment_size{20'971'520};
  Bytes roundup_bypass_threshold = kUnlimited;
  // Divisions per power of two: entry i is for sizes in [2^i MiB, 2^(i+1) MiB), the first one for
  // all smaller sizes too and the last one for all larger ones. 0: round to 512 bytes.
  std::array<std::int64_t, 16> roundup_power2_divisions{};
  double garbage_collection_threshold = 0;  // acts only together with a memory fraction
  bool expandable_segments = false;
  std::optional<double> per_process_memory_fraction;  // an option from 2.10 on

  friend bool operator==(const AllocatorSettings&, const AllocatorSettings&) = default;
};

// Parses "max_split_size_mb:64,garbage_collection_threshold:0.6" (':' and '=' mean the same here)
// on top of `base`. Options that the release does not know, values out of its range and syntax
// errors are filed with their place inside `conf`; then nullopt.
std::optional<AllocatorSettings> parse_allocator_settings(const Named& conf,
                                                          const AllocatorProfile& profile,
                                                          Diagnostics& diagnostics,
                                                          const AllocatorSettings& base = {});

// The settings that differ from the defaults, in the syntax of PYTORCH_CUDA_ALLOC_CONF.
std::string to_text(const AllocatorSettings& settings);

}  // namespace sim::memory
