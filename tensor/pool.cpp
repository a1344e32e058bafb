// The system returns large blocks at once and clears their pages at the next use, which costs more
// than most loops over them. The pool keeps the latest blocks, up to a share of the memory limit.
#include "tensor/pool.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <vector>

#include <sys/mman.h>

#include "tensor/memory.hpp"

namespace pw {
namespace {

constexpr std::align_val_t kAlign{64};
constexpr std::size_t kLarge = 1 << 20;  // smaller blocks stay with malloc
constexpr std::size_t kPage = 1 << 12;
constexpr std::size_t kMostBlocks = 256;
constexpr std::int64_t kShare = 32;  // of the memory limit

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kPooled = false;  // reused memory would hide faults
#else
constexpr bool kPooled = true;
#endif

struct Block {
  void* data;
  std::size_t bytes;
};

/// Blocks are mapped, so that they leave no holes between those of malloc.
void* mapped_block(std::size_t bytes) {
  void* const data =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return data == MAP_FAILED ? nullptr : data;
}
void release_block(const Block& block) { ::munmap(block.data, block.bytes); }

/// Nobody waits for the lock: a process that was forked while it was held goes without a pool.
class KeptBlocks {
 public:
  KeptBlocks() { kept_.reserve(kMostBlocks + 1); }

  /// Takes the smallest kept block that fits with little waste, else allocates one.
  Block take(std::size_t bytes) {
    const std::size_t whole = (bytes + kPage - 1) / kPage * kPage;
    if (const std::unique_lock lock(mutex_, std::try_to_lock); lock) {
      auto best = kept_.end();
      for (auto block = kept_.begin(); block != kept_.end(); ++block)
        if (block->bytes >= whole && block->bytes - whole <= whole / 4 &&
            (best == kept_.end() || block->bytes < best->bytes))
          best = block;
      if (best != kept_.end()) {
        const Block found = *best;
        kept_.erase(best);
        bytes_ -= found.bytes;
        return found;
      }
    }
    return {allocate(whole), whole};
  }

  void give(const Block& block) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || block.bytes > most_) return release_block(block);
    kept_.push_back(block);
    bytes_ += block.bytes;
    while (bytes_ > most_ || kept_.size() > kMostBlocks) drop_oldest();
  }

  PoolCounts counts() {
    const std::lock_guard lock(mutex_);
    return {kept_.size(), bytes_, most_};
  }

 private:
  void drop_oldest() {
    bytes_ -= kept_.front().bytes;
    release_block(kept_.front());
    kept_.erase(kept_.begin());
  }

  /// Without memory for another block, those that are kept are given up first.
  void* allocate(std::size_t bytes) {
    if (void* const data = mapped_block(bytes)) return data;
    if (const std::unique_lock lock(mutex_, std::try_to_lock); lock)
      while (!kept_.empty()) drop_oldest();
    if (void* const data = mapped_block(bytes)) return data;
    throw std::bad_alloc();
  }

  std::mutex mutex_;
  std::vector<Block> kept_;  // the oldest first; never grows
  std::size_t bytes_ = 0;
  const std::size_t most_ = static_cast<std::size_t>(memory_limit() / kShare);
};

/// Never destroyed: arrays in static objects outlive any other object.
KeptBlocks& kept_blocks() {
  static KeptBlocks* const one = new KeptBlocks;
  return *one;
}

}  // namespace

std::shared_ptr<void> pooled_memory(std::size_t bytes) {
  if (!kPooled || bytes < kLarge)
    return {::operator new(bytes + 1, kAlign), [](void* p) { ::operator delete(p, kAlign); }};
  const Block block = kept_blocks().take(bytes);
  return {block.data, [block](void*) { kept_blocks().give(block); }};
}

PoolCounts pool_counts() { return kept_blocks().counts(); }

}  // namespace pw
