// Emulates a kernel's thread block on the host: barriers, warp exchanges, and shared memory with
// race detection. Each word records its writer and reader and their epochs; an epoch is the stretch
// between two barriers. Two accesses in one epoch by different threads, at least one a write, are a
// data hazard in any thread order (happens-before detection with barriers as the only
// synchronisation). The thread order is drawn from a seed. The cost is constant per access.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cuda/device/fibers.hpp"

namespace pw::cuda {

/// Functions that the compiled text calls.
struct HostApi {
#include "cuda/device/host_api.def"
};

struct Launch {
  unsigned blocks = 0, column_blocks = 1, threads = 0;  ///< blocks: x; column_blocks: y
  std::int64_t shared_bytes = 0;                        ///< dynamic shared memory
  std::uint64_t seed = 1;
};

class ThreadBlock {
 public:
  [[nodiscard]] static const HostApi& api();
  /// Runs `kernel` as each thread of each block, with blocks and threads in an order drawn from the
  /// seed. Returns the first fault, or an empty text.
  std::string run(const Launch& launch, const std::function<void()>& kernel);

 private:
  enum class State : std::uint8_t { ready, at_barrier, exchanging, gathering, ended };
  struct Thread {
    State state = State::ready;
    int line = 0;       ///< source line of the barrier
    unsigned mask = 0;  ///< mask of the exchange, and its other arguments
    int distance = 0, bytes = 0;
    const void* mine = nullptr;
    void* other = nullptr;
  };
  struct Word {
    int writer = -1, reader = -1;         ///< the last; -2: several readers
    std::uint64_t written = 0, read = 0;  ///< their epochs
    std::size_t shown = 0;                ///< how often the writer had fenced (shown) its writes
  };
  struct Shared {
    std::string name;
    int bytes = 0;
    std::vector<unsigned char> data;
    std::vector<Word> words;
  };

  /// Asynchronous copies to shared memory that a thread has started; null: zeros.
  struct Copy {
    Shared* to = nullptr;
    long long i = 0;
    const void* from = nullptr;
  };
  struct Copies {
    std::vector<Copy> open;                 ///< not yet committed to a group
    std::vector<std::vector<Copy>> groups;  ///< pending groups, oldest first
  };

  /// An asynchronous read of shared memory that adds to the thread's own sums until a wait
  /// (`wgmma`). It may read a word and change a sum at any time in between.
  struct AsyncRead {
    Shared* of = nullptr;
    long long i = 0;
    std::uint64_t begun = 0;  ///< epoch of its start
  };
  struct AsyncSums {
    void* own = nullptr;  ///< the thread's sums, unusable until it has waited
    std::vector<unsigned char> sums;
    std::size_t group = 0;  ///< the last group that adds to them
  };
  struct Async {
    std::vector<std::pair<std::size_t, AsyncRead>> reads;  ///< with their groups
    std::vector<AsyncSums> sums;
    std::size_t groups = 0;               ///< completed groups
    std::vector<std::uint64_t> shown_in;  ///< epochs in which the thread fenced its writes
  };

  void run_block(const std::function<void()>& kernel);
  void release_barrier();
  void release_exchange(unsigned warp);
  void release_gather(unsigned warp);
  void stuck();
  void fail(std::string what);
  std::uint64_t draw();
  [[nodiscard]] int self() const { return static_cast<int>(fibers_.current()); }

  void barrier(int line);
  void exchange(unsigned mask, int distance, const void* mine, void* other, int bytes);
  /// Gives every lane of a warp the values of all lanes, in lane order.
  void gather(const void* mine, void* all, int bytes);
  /// Starts a copy; the destination belongs to the thread and is undefined until it has waited.
  void copy_async(Shared& array, long long i, const void* from);
  void commit();
  /// Waits until all but the last `groups` are complete.
  void wait(int groups);
  Shared* shared(const void* site, const char* name, long long count, int bytes);
  void get(Shared& array, long long i, void* value);
  void set(Shared& array, long long i, const void* value);
  bool inside(const Shared& array, long long i);
  // In thread_block_async.cpp.
  void read_async(Shared& array, long long i);
  void* sum_async(void* sums, int bytes);
  void show_async();
  void commit_async();
  void wait_async(int groups);

  Fibers fibers_;
  Launch launch_;
  std::vector<Thread> threads_;
  std::vector<Copies> copies_;  ///< by thread
  std::vector<Async> async_;    ///< by thread
  std::map<const void*, Shared> shared_;
  unsigned block_ = 0;
  std::uint64_t epoch_ = 1, random_ = 1;
  std::string fault_;
};

}  // namespace pw::cuda
