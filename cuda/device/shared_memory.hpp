// Emulates the shared memory of a thread block, with race detection by happens-before. Two accesses
// of a word by different threads, at least one of them a write, are a hazard unless a barrier of
// the block or a phase of an `mbarrier` orders them, whatever the order of the threads in this run.
//
// * Barriers of the block divide a run into epochs; accesses in different epochs are ordered.
// * Within an epoch, vector clocks order accesses (FastTrack, Flanagan and Freund 2009): an arrival
//   publishes the clocks of its thread, and a wait takes them over.
//
// Cost: constant per access, linear in the threads per arrival or wait.
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
  /// When a thread did something.
  struct Stamp {
    std::uint64_t epoch = 0;
    std::uint32_t clock = 0;  ///< of the thread: its arrivals so far
  };
  struct Reader {
    int thread = -1;
    Stamp at;
  };
  struct Word {
    int writer = -1;
    Stamp written;
    std::uint64_t writes = 0;
    std::size_t shown = 0;  ///< how often the writer had fenced (shown) its writes
    /// Since the last write and the last barrier of the block; without phases two of them suffice.
    std::vector<Reader> readers;
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

  /// An `mbarrier`: a phase is complete when a number of warps have arrived, and the next begins.
  struct Phases {
    std::size_t expected = 0, arrived = 0;  ///< threads
    unsigned completed = 0;
    std::vector<std::uint32_t> open;       ///< clocks of all arrivals so far, by thread
    std::vector<std::uint32_t> published;  ///< of those when the last phase was completed
    /// Returns true if the last phase of this parity is complete (`mbarrier.test_wait.parity`).
    [[nodiscard]] bool passed(unsigned parity) const { return (completed & 1u) != parity; }
  };

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

  // Phases, in shared_memory_phases.cpp.
  void prepare_phases(Shared& array, long long i, int warps);
  /// Returns the phases of an element, or null after a report that it has none.
  Phases* phases(const Shared& array, long long i);
  /// The thread arrives; returns true if that completes the phase.
  bool arrive(Phases& phases);
  /// A thread takes over what the last complete phase has published.
  void take_over(std::size_t thread, const Phases& phases);

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
    std::uint64_t writes = 0;  ///< of the word at its start
  };
  struct AsyncSums {
    void* own = nullptr;  ///< the thread's sums, unusable until it has waited
    std::vector<unsigned char> sums;
    std::size_t group = 0;  ///< the last group that adds to them
  };
  struct Async {
    std::vector<std::pair<std::size_t, AsyncRead>> reads;  ///< with their groups
    std::vector<AsyncSums> sums;
    std::size_t groups = 0;       ///< completed groups
    std::vector<Stamp> shown_at;  ///< when the thread fenced its writes
  };

  [[nodiscard]] int self() const { return static_cast<int>(fibers_.current()); }
  [[nodiscard]] Stamp now() const { return {epoch_, clocks_[fibers_.current()]}; }
  void note_reader(Word& word);
  /// Returns true if what a thread did then happened before what the running thread does now.
  [[nodiscard]] bool before(int thread, Stamp at) const;

  const Fibers& fibers_;
  std::function<void(std::string)> fail_;
  std::int64_t bytes_ = 0;      ///< of dynamic memory
  std::vector<Copies> copies_;  ///< by thread
  std::vector<Async> async_;    ///< by thread
  std::map<const void*, Shared> shared_;
  std::uint64_t epoch_ = 1;
  std::vector<std::uint32_t> clocks_;              ///< by thread
  std::vector<std::vector<std::uint32_t>> known_;  ///< by thread: clocks taken over, by thread
  std::map<std::pair<const Shared*, long long>, Phases> phases_;
};

}  // namespace pw::cuda
