#include "sim/engine/pending_frees.h"

#include <algorithm>

#include "sim/base/saturating.h"

namespace sim::engine {

void PendingFrees::add(memory::BlockId block, std::uint32_t used_on, Streams& streams) {
  Item item{block, {}, 0, {}};
  for (int role = 0; role < kStreamRoles; ++role) {
    if ((used_on >> role & 1) == 0) continue;
    const Mark mark = streams.record(static_cast<StreamRole>(role));
    if (mark.ticket.valid()) {
      item.open[static_cast<std::size_t>(item.tickets++)] = mark.ticket;
    } else {
      item.known = std::max(item.known, mark.at);
    }
  }
  if (items_.empty()) {
    earliest_ = item.known;
    open_ = false;
  }
  earliest_ = std::min(earliest_, item.known);
  open_ = open_ || item.tickets > 0;
  items_.push_back(item);
}

bool PendingFrees::undecided(const Streams& streams) const {
  if (!open_) return false;
  return std::any_of(items_.begin(), items_.end(), [&](const Item& item) {
    return std::any_of(item.open.begin(), item.open.begin() + item.tickets, [&](TicketId ticket) {
      return !streams.known({{}, ticket});
    });
  });
}

void PendingFrees::close(const Streams& streams) {
  for (Item& item : items_) close(item, streams);
}

void PendingFrees::hash_rest(Instant now, const memory::CachingAllocator& allocator,
                             Hash& hash) const {
  for (const Item& item : items_) {
    hash.add(allocator.address(item.block)).add(std::max(item.known - now, Duration{}).count());
  }
}

void PendingFrees::shift(Instant now, Duration by) {
  for (Item& item : items_) {
    if (item.known > now) item.known = saturating_add(item.known, by);
  }
}

// Replaces tickets that have become instants.
void PendingFrees::close(Item& item, const Streams& streams) {
  int left = 0;
  for (int i = 0; i < item.tickets; ++i) {
    const Mark mark{{}, item.open[static_cast<std::size_t>(i)]};
    if (streams.known(mark)) {
      item.known = std::max(item.known, streams.when(mark));
    } else {
      item.open[static_cast<std::size_t>(left++)] = mark.ticket;
    }
  }
  item.tickets = left;
}

void PendingFrees::scan(Instant now, const Streams& streams, memory::CachingAllocator& allocator) {
  open_ = false;
  earliest_ = Instant::max();
  std::size_t kept = 0;
  for (Item& item : items_) {
    close(item, streams);
    if (item.tickets == 0 && item.known <= now) {
      allocator.complete(item.block);
      continue;
    }
    open_ = open_ || item.tickets > 0;
    earliest_ = std::min(earliest_, item.known);
    items_[kept++] = item;
  }
  items_.resize(kept);
}

}  // namespace sim::engine
