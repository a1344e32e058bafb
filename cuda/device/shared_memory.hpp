// Emulates the shared memory of a thread block, with race detection. Each word records its writer
// and reader and their epochs; an epoch is the stretch between two barriers. Two accesses in one
// epoch by different threads, at least one a write, are a data hazard in any thread order
// (happens-before detection with barriers as the only synchronisation). The cost is constant per
// access.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cuda/device/fibers.hpp"

namespace pw::cuda {

/// Operations of the fiber that runs.
class SharedMemory {
 public:
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

  /// `fail` reports a hazard; in a fiber it does not return.
  SharedMemory(const Fibers& fibers, std::function<void(std::string)> fail)
      : fibers_(fibers), fail_(std::move(fail)) {}

  /// Forgets all arrays, for a block of so many threads and bytes of dynamic memory.
  void reset(std::size_t threads, std::int64_t bytes);
  void begin_epoch() { ++epoch_; }

  /// Returns the array of a declaration. `count` < 0: all dynamic memory.
  Shared* shared(const void* site, const char* name, long long count, int bytes);
  void get(Shared& array, long long i, void* value);
  void set(Shared& array, long long i, const void* value);
  bool inside(const Shared& array, long long i);

  /// Starts a copy; the destination belongs to the thread and is undefined until it has waited.
  void copy_async(Shared& array, long long i, const void* from);
  void commit();
  /// Waits until all but the last `groups` are complete.
  void wait(int groups);

  // Asynchronous reads, in shared_memory_async.cpp.
  void read_async(Shared& array, long long i);
  void* sum_async(void* sums, int bytes);
  void show_async();
  void commit_async();
  void wait_async(int groups);

 private:
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

  [[nodiscard]] int self() const { return static_cast<int>(fibers_.current()); }

  const Fibers& fibers_;
  std::function<void(std::string)> fail_;
  std::int64_t bytes_ = 0;      ///< of dynamic memory
  std::vector<Copies> copies_;  ///< by thread
  std::vector<Async> async_;    ///< by thread
  std::map<const void*, Shared> shared_;
  std::uint64_t epoch_ = 1;
};

}  // namespace pw::cuda
