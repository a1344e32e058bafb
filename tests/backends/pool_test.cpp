// Memory that is reused for later arrays.
#include "tensor/pool.hpp"

#include <cstring>
#include <thread>
#include <vector>

#include "tensor/array.hpp"
#include "tests/catch.hpp"

namespace {

using namespace pw;

constexpr std::size_t kSize = 3 << 20;

bool is_pooled() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#else
  return true;
#endif
}

}  // namespace

TEST_CASE("pool: a large block serves the next request of about its size") {
  void* first = pooled_memory(kSize).get();
  const PoolCounts before = pool_counts();
  const auto again = pooled_memory(kSize - 100);
  if (!is_pooled()) return;
  CHECK(again.get() == first);
  CHECK(pool_counts().kept_blocks + 1 == before.kept_blocks);
  CHECK(pooled_memory(kSize / 2).get() != first);
  CHECK(pooled_memory(2 * kSize).get() != first);
}

TEST_CASE("pool: blocks in use are distinct, aligned and whole") {
  std::vector<std::shared_ptr<void>> blocks;
  for (std::size_t i = 0; i < 8; ++i) {
    blocks.push_back(pooled_memory(kSize));
    std::memset(blocks.back().get(), static_cast<int>(i), kSize);
  }
  for (std::size_t i = 0; i < 8; ++i) {
    const auto* const bytes = static_cast<const unsigned char*>(blocks[i].get());
    CHECK(reinterpret_cast<std::uintptr_t>(bytes) % 64 == 0);
    CHECK((bytes[0] == i && bytes[kSize - 1] == i));
  }
  CHECK(pooled_memory(0) != nullptr);
}

TEST_CASE("pool: it keeps no more than its share of the memory") {
  const std::size_t most = pool_counts().most_bytes, size = most / 4 + 1;
  {
    std::vector<std::shared_ptr<void>> blocks(6);  // reserved only: nothing is written
    for (auto& block : blocks) block = pooled_memory(size);
  }
  CHECK(pool_counts().kept_bytes <= most);
  (void)pooled_memory(most + kSize);
  CHECK(pool_counts().kept_bytes <= most);
}

TEST_CASE("pool: threads take and return blocks at once") {
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t, &wrong] {
      for (int i = 0; i < 200; ++i) {
        const Array x = make_array(DType::u8, {(1 << 20) + i});
        std::memset(x.data, t, 4096);
        std::this_thread::yield();
        for (int k = 0; k < 4096; ++k)
          wrong[static_cast<std::size_t>(t)] += x.data[k] != std::byte(t);
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (int count : wrong) CHECK(count == 0);
}
