#include "sim/memory/free_blocks.h"

#include "sim/base/check.h"

namespace sim::memory {
namespace {

// Half a run of 24-byte entries is moved per insertion; measured best between 32 and 128.
constexpr std::size_t kRun = 64;

bool precedes(const FreeBlocks::Entry& a, Bytes size, Address address) {
  return a.size < size || (a.size == size && a.address < address);
}

// First index in [0, n) for which `at(index)` does not precede the key; n if all do.
template <class At>
std::size_t search(std::size_t n, Bytes size, Address address, At at) {
  std::size_t first = 0;
  while (n > 0) {
    const std::size_t half = n / 2;
    const bool right = precedes(at(first + half), size, address);
    first += right ? half + 1 : 0;
    n = right ? n - half - 1 : half;
  }
  return first;
}

}  // namespace

FreeBlocks::Position FreeBlocks::lower_bound(Bytes size, Address address) const {
  const std::size_t run = search(runs_.size(), size, address,
                                 [&](std::size_t i) -> const Entry& { return runs_[i].back(); });
  if (run == runs_.size()) return end();
  const std::vector<Entry>& entries = runs_[run];
  return {run, search(entries.size(), size, address,
                      [&](std::size_t i) -> const Entry& { return entries[i]; })};
}

void FreeBlocks::insert(const Entry& entry) {
  Position at = lower_bound(entry.size, entry.address);
  if (at == end()) {
    if (runs_.empty()) runs_.emplace_back().reserve(kRun);
    at = {runs_.size() - 1, runs_.back().size()};
  }
  if (runs_[at.run].size() == kRun) {
    std::vector<Entry> upper;
    upper.reserve(kRun);
    std::vector<Entry>& lower = runs_[at.run];
    upper.assign(lower.begin() + kRun / 2, lower.end());
    lower.resize(kRun / 2);
    runs_.insert(runs_.begin() + static_cast<std::ptrdiff_t>(at.run) + 1, std::move(upper));
    if (at.slot > kRun / 2) at = {at.run + 1, at.slot - kRun / 2};
  }
  std::vector<Entry>& run = runs_[at.run];
  run.insert(run.begin() + static_cast<std::ptrdiff_t>(at.slot), entry);
}

void FreeBlocks::erase(Bytes size, Address address) {
  const Position at = lower_bound(size, address);
  CHECK(at != end() && (*this)[at].address == address && (*this)[at].size == size,
        "a free block is missing from its list");
  erase(at);
}

void FreeBlocks::erase(Position at) {
  std::vector<Entry>& run = runs_[at.run];
  run.erase(run.begin() + static_cast<std::ptrdiff_t>(at.slot));
  if (run.empty()) runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(at.run));
}

FreeBlocks::Position FreeBlocks::next(Position at) const {
  if (at.slot + 1 < runs_[at.run].size()) return {at.run, at.slot + 1};
  return {at.run + 1, 0};
}

FreeBlocks::Position FreeBlocks::previous(Position at) const {
  if (at.slot > 0) return {at.run, at.slot - 1};
  return {at.run - 1, runs_[at.run - 1].size() - 1};
}

}  // namespace sim::memory
