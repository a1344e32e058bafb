// Emulates a kernel's thread block on the host: threads, barriers, and warp exchanges. The thread
// order is drawn from a seed; shared_memory.hpp detects data hazards in any order.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "cuda/device/shared_memory.hpp"

namespace pw::cuda {

/// Functions that the compiled text calls.
struct HostApi {
#include "cuda/device/host_api.def"
};

struct Launch {
  unsigned blocks = 0, column_blocks = 1, threads = 0;  ///< blocks: x; column_blocks: y
  std::int64_t shared_bytes = 0;                        ///< dynamic shared memory
  std::uint64_t seed = 1;
  std::function<long long()> accesses;  ///< returns the accesses so far
  /// For a launch that starts early: completes its predecessor.
  std::function<void()> complete_earlier;
  /// Runs blocks of this launch in the given order, while another of its blocks waits for them.
  std::function<std::string(const std::vector<unsigned>&)> run_meanwhile;
};

class ThreadBlock {
 public:
  [[nodiscard]] static const HostApi& api();
  /// Runs `kernel` as each thread of each block, with blocks and threads in an order drawn from the
  /// seed. Returns the first fault, or an empty text.
  std::string run(const Launch& launch, const std::function<void()>& kernel);
  /// Returns the order in which such a run starts the blocks; a block that another awaits starts
  /// earlier.
  [[nodiscard]] static std::vector<unsigned> order(unsigned blocks, std::uint64_t seed);
  /// Runs some of the launch's blocks, in the given order.
  std::string run(const Launch& launch, const std::vector<unsigned>& blocks,
                  const std::function<void()>& kernel);

 private:
  enum class State : std::uint8_t {
    ready,
    at_barrier,
    exchanging,
    gathering,
    waiting,
    awaiting_blocks,
    awaiting_phase,
    ended
  };
  struct Thread {
    State state = State::ready;
    int line = 0;       ///< source line of the barrier
    unsigned mask = 0;  ///< mask of the exchange, and its other arguments
    int distance = 0, bytes = 0;
    const void* mine = nullptr;
    void* other = nullptr;
    const SharedMemory::Phases* phases = nullptr;  ///< of an awaited phase, and its parity
    unsigned parity = 0;
  };
  /// A thread of a launch that starts early: whether it has waited for the predecessor, and the
  /// accesses of all threads when it first ran.
  struct EarlyStart {
    bool begun = false, waited = false;
    long long accesses = 0;
  };
  void run_block(const std::function<void()>& kernel);
  void release_barrier();
  void release_exchange(unsigned warp);
  void release_gather(unsigned warp);
  void stuck();
  void fail(std::string what);
  std::uint64_t draw() { return random_.next(); }
  [[nodiscard]] int self() const { return static_cast<int>(fibers_.current()); }

  void barrier(int line);
  void exchange(unsigned mask, int distance, const void* mine, void* other, int bytes);
  /// Gives every lane of a warp the values of all lanes, in lane order.
  void gather(const void* mine, void* all, int bytes);
  void wait_for_earlier(long long accesses);
  void release_wait(std::size_t thread);
  void wait_for_blocks(unsigned before);
  void arrive(const SharedMemory::Shared& array, long long i);
  void await(const SharedMemory::Shared& array, long long i, unsigned parity);
  void run_blocks_before(std::size_t thread);

  Fibers fibers_;
  SharedMemory memory_{fibers_, [this](std::string what) { fail(std::move(what)); }};
  Launch launch_;
  std::vector<Thread> threads_;
  std::vector<EarlyStart> early_;  ///< empty in a launch that starts after its predecessors
  bool earlier_completed_ = false;
  /// Accesses of all threads when the block announced its end, and those of counters since.
  std::optional<long long> ended_work_;
  unsigned block_ = 0;
  std::vector<char> has_run_;  ///< by block
  unsigned awaited_ = 0;       ///< blocks below this number
  Random random_{1};
  std::string fault_;
};

}  // namespace pw::cuda
