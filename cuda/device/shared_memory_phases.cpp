// Phases of `mbarrier` objects in shared memory, which order accesses between some threads of a
// block. Invariant: a phase publishes what the phases before it have published, because it cannot
// complete earlier. Cost of an arrival or a wait: linear in the threads of the block.
#include <algorithm>

#include <fmt/format.h>

#include "cuda/device/shared_memory.hpp"

namespace pw::cuda {
namespace {

constexpr std::size_t kLanes = 32;

void raise(std::vector<std::uint32_t>& clocks, const std::vector<std::uint32_t>& to) {
  if (clocks.size() < to.size()) clocks.resize(to.size());
  for (std::size_t i = 0; i < to.size(); ++i) clocks[i] = std::max(clocks[i], to[i]);
}

}  // namespace

/// Prepares an element for phases of so many warps. This is a write, ordered like any other.
void SharedMemory::prepare_phases(Shared& array, long long i, int warps) {
  const unsigned char value[16] = {};
  set(array, i, value);
  Phases& made = phases_[{&array, i}];
  made = {};
  made.expected = kLanes * static_cast<std::size_t>(warps);
  known_.resize(clocks_.size());
}

SharedMemory::Phases* SharedMemory::phases(const Shared& array, long long i) {
  const auto found = phases_.find({&array, i});
  if (found == phases_.end()) {
    fail_(fmt::format("thread {} uses {}[{}] as a barrier before it is prepared", self(),
                      array.name, i));
    return nullptr;
  }
  const Word& word = array.words[static_cast<std::size_t>(i)];
  if (!before(word.writer, word.written))
    fail_(
        fmt::format("thread {} uses the barrier {}[{}], which thread {} prepares without a barrier "
                    "between",
                    self(), array.name, i, word.writer));
  return &found->second;
}

bool SharedMemory::arrive(Phases& phases) {
  std::uint32_t& clock = clocks_[fibers_.current()];
  phases.open.resize(clocks_.size());
  raise(phases.open, known_[fibers_.current()]);
  phases.open[fibers_.current()] = ++clock;
  if (++phases.arrived < phases.expected) return false;
  phases.published = phases.open;
  phases.arrived = 0;
  ++phases.completed;
  return true;
}

void SharedMemory::take_over(std::size_t thread, const Phases& phases) {
  raise(known_[thread], phases.published);
}

}  // namespace pw::cuda
