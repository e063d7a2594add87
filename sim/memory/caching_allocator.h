// PyTorch's native CUDA caching allocator (c10/cuda/CUDACachingAllocator.cpp,
// DeviceCachingAllocator) for one process on one device: the same block for every request, the same
// counters after it.
//
//   DeviceMemory device(total, external);
//   ModelDriver driver(device);
//   CachingAllocator allocator(profile, settings, driver, device.total());
//   AllocResult r = allocator.allocate(Bytes{1 << 20}, 0);
//   if (!r.ok) ...  // oom_message() words it
//   allocator.free(r.block);
//
// A pure numeric core: it knows no tensor, rank or clock, and acts in the order it is called, as
// PyTorch acts in the order of the Python thread.
//
// Cross-stream use. A block that record_stream() marked stays active when it is freed: free()
// returns false, and the caller must say complete(block) once the work queued on those streams at
// that moment is done. PyTorch looks for passed events only at the start of malloc, so the caller
// completes blocks just before allocate(). When cached memory has to be returned to the driver, all
// waiting blocks are completed at once (PyTorch synchronises): `AllocResult::synchronized` and the
// result of empty_cache() say so, and the caller forgets its own list.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/units.h"
#include "sim/memory/allocator_profile.h"
#include "sim/memory/device_memory.h"
#include "sim/memory/free_blocks.h"
#include "sim/timeline/allocator_trace.h"

namespace sim::memory {

// A current value and its highest since the last reset_peaks().
template <class T>
struct Peaked {
  T current{};
  T peak{};
  void add(T amount) {
    current += amount;
    if (current > peak) peak = current;
  }
  void remove(T amount) { current -= amount; }
};

// torch.cuda.memory_stats(), the aggregate of both pools (".all").
struct MemoryStats {
  Peaked<Bytes> allocated;           // blocks in use, with their rounding and unsplit slack
  Peaked<Bytes> active;              // allocated, and freed blocks that still wait for an event
  Peaked<Bytes> reserved;            // segments and mapped pages held from the driver
  Peaked<Bytes> requested;           // bytes as asked for, of active blocks (absent in 1.13)
  Peaked<Bytes> inactive_split;      // free parts of partly used segments; expandable ones excluded
  Peaked<std::int64_t> segments;     // cudaMalloc segments; expandable ones excluded
  Peaked<std::int64_t> allocations;  // blocks in use
  std::int64_t num_alloc_retries = 0;
  std::int64_t num_ooms = 0;
};

struct AllocResult {
  BlockId block;  // valid if ok
  bool ok = false;
  bool retried = false;  // all cached blocks were given back first (cudaFree waits for the GPU)
  bool synchronized = false;  // all waiting blocks were completed
  bool new_segment = false;   // the driver was asked for memory, and gave it
  Bytes segment_size;         // what "Tried to allocate" prints
};

class CachingAllocator {
 public:
  // `device_total` is what cudaMemGetInfo reports. The driver must outlive the allocator.
  CachingAllocator(const AllocatorProfile& profile, const AllocatorSettings& settings,
                   Driver& driver, Bytes device_total);
  // A copy, block ids included, that asks another driver.
  CachingAllocator(const CachingAllocator& other, Driver& driver) : CachingAllocator(other) {
    driver_ = &driver;
  }

  // torch.cuda.set_per_process_memory_fraction(). `allow` sets the same limit in bytes.
  void set_memory_fraction(double fraction);
  void allow(Bytes limit) { allowed_ = limit; }
  std::optional<Bytes> allowed() const { return allowed_; }

  // `requested` > 0 (PyTorch never asks for empty tensors) and at most kLargestRequest.
  AllocResult allocate(Bytes requested, Stream stream);
  static constexpr Bytes kLargestRequest{std::int64_t{1} << 60};  // kOneExaByte: refused above

  // The block is used on `stream` too; its own stream needs no mark.
  void record_stream(BlockId block, Stream stream);

  // true: the memory is free, the id is dead. false: the block waits for complete().
  bool free(BlockId block);
  void complete(BlockId block);

  // torch.cuda.empty_cache(). Every waiting block is completed.
  void empty_cache();

  Address address(BlockId block) const { return blocks_[block].address; }
  Bytes size(BlockId block) const { return blocks_[block].size; }
  Bytes requested(BlockId block) const { return blocks_[block].requested; }
  Stream stream(BlockId block) const { return blocks_[block].stream; }

  const MemoryStats& stats() const { return stats_; }
  void reset_peaks();

  // Every event from now on is appended to `sink`, in PyTorch's order; null: none is. Copies write
  // to the same one.
  void record(std::vector<TraceEvent>* sink) { trace_ = sink; }

  // What a request occupies at least, and the segment that it would need.
  Bytes round_size(Bytes requested) const;
  Bytes segment_size(Bytes rounded) const;

  // Everything held from the driver, by address.
  std::vector<SegmentView> snapshot() const;
  // A hash of all that the answers to further calls depend on, but the driver; counters are not.
  std::uint64_t fingerprint() const;

 private:
  static constexpr std::uint32_t kNotExpandable = 0xffffffffu;

  struct Block {
    Address address = 0;
    Bytes size;
    Bytes requested;
    std::uint64_t used_on = 0;   // bit per stream: record_stream
    std::int64_t cached_at = 0;  // Pool::searches when it became free
    BlockId previous, next;      // neighbours in the segment
    std::uint32_t range = kNotExpandable;
    Stream stream = 0;
    bool small = false;
    bool allocated = false;
    bool waiting = false;  // freed, events outstanding
    bool mapped = true;    // false: address space without pages
    bool alive = false;
  };

  struct Pool {
    bool small = false;
    std::vector<FreeBlocks> free;                // by stream
    std::vector<std::vector<BlockId>> unmapped;  // by stream, in address order
    std::int64_t searches = 0;                   // counted only where garbage collection is on
  };

  struct Range {  // the address space of one expandable segment
    Address address = 0;
    Bytes size;
    Bytes page;
  };

  struct Request {
    Bytes size;  // rounded
    Bytes segment_size;
    Stream stream = 0;
  };

  // caching_allocator.cpp
  BlockId take_best_fit(Pool& pool, const Request& request);
  BlockId obtain_memory(Pool& pool, const Request& request, AllocResult& result);
  BlockId allocate_segment(Pool& pool, const Request& request);
  void hand_out(Pool& pool, BlockId block, const Request& request, Bytes requested);
  bool should_split(const Block& block, Bytes size) const;
  void make_free(BlockId block);
  Bytes merge(BlockId into, BlockId neighbour);
  void cache(Pool& pool, BlockId block);
  void uncache(Pool& pool, BlockId block);
  BlockId new_block(const Block& block);
  void drop_block(BlockId block);
  Pool& pool_of(const Block& block) { return pools_[block.small ? 0 : 1]; }
  bool collects_garbage() const { return allowed_ && settings_.garbage_collection_threshold > 0; }
  bool is_split(const Block& b) const { return b.previous.valid() || b.next.valid(); }
  void note(AllocatorAction action, Address at, Bytes size, Stream stream) {
    if (trace_ == nullptr) [[likely]]
      return;
    TraceEvent& event = trace_->emplace_back();
    event.action = action;
    event.stream = stream;
    event.address = at;
    event.size = size;
  }
  void note(AllocatorAction action, const Block& b) { note(action, b.address, b.size, b.stream); }

  // cache_release.cpp
  void collect_garbage();
  bool release_oversize(Pool& pool, const Request& request);
  void release_cached();
  void release_pool(Pool& pool);
  void release_segment(BlockId block);

  // expandable_segments.cpp
  BlockId grow_expandable(Pool& pool, const Request& request);
  BlockId find_room(Pool& pool, const Request& request);
  bool has_room(BlockId first, Bytes size) const;
  bool map(Pool& pool, BlockId block, Bytes size);
  void unmap(BlockId block);
  void release_range(BlockId block);
  void add_unmapped(Pool& pool, BlockId block);
  void remove_unmapped(Pool& pool, BlockId block);
  Bytes expandable_size(const Block& block) const;

  AllocatorProfile profile_;
  AllocatorSettings settings_;
  Driver* driver_;
  std::vector<TraceEvent>* trace_ = nullptr;
  Bytes device_total_;
  std::optional<Bytes> allowed_;
  MemoryStats stats_;
  std::array<Pool, 2> pools_;  // small, large
  IdVector<BlockId, Block> blocks_;
  std::vector<BlockId> vacant_;   // dead entries of blocks_
  std::vector<BlockId> waiting_;  // freed blocks with outstanding events, oldest first
  std::vector<Range> ranges_;
};

}  // namespace sim::memory
