// Emulates asynchronous instructions, which a thread starts and waits for later. They read shared
// memory and add to registers. A write must be made visible to them by a fence first ("proxies" of
// the PTX ISA's memory consistency model). Invariant: a read is checked against writers from its
// start to the wait, and the thread's sums are NaN in between, so early use shows in the results.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "cuda/device/shared_memory.hpp"

namespace pw::cuda {

/// Starts a read of a word, which lasts until this thread waits; the word must be unchanged at both
/// ends.
void SharedMemory::read_async(Shared& array, long long i) {
  if (!inside(array, i)) return;
  alignas(16) unsigned char value[16];
  get(array, i, value);
  const Word& word = array.words[static_cast<std::size_t>(i)];
  const std::vector<Stamp>& shown = async_[static_cast<std::size_t>(word.writer)].shown_at;
  if (shown.size() <= word.shown || !before(word.writer, shown[word.shown]))
    fail_(fmt::format(
        "thread {} multiplies {}[{}], which thread {} wrote without a fence and a barrier between",
        self(), array.name, i, word.writer));
  Async& own = async_[static_cast<std::size_t>(self())];
  own.reads.emplace_back(own.groups, AsyncRead{&array, i, word.writes});
}

/// Returns the storage of the actual sums. The thread's own are NaN until it has waited.
void* SharedMemory::sum_async(void* sums, int bytes) {
  Async& own = async_[static_cast<std::size_t>(self())];
  auto found = std::find_if(own.sums.begin(), own.sums.end(),
                            [&](const AsyncSums& s) { return s.own == sums; });
  if (found == own.sums.end()) {
    const auto* const from = static_cast<const unsigned char*>(sums);
    own.sums.push_back({sums, std::vector<unsigned char>(from, from + bytes), 0});
    found = own.sums.end() - 1;
    std::memset(sums, 0xff, static_cast<std::size_t>(bytes));
  }
  found->group = own.groups;
  return found->sums.data();
}

void SharedMemory::show_async() {
  async_[static_cast<std::size_t>(self())].shown_at.push_back(now());
}

void SharedMemory::commit_async() { ++async_[static_cast<std::size_t>(self())].groups; }

void SharedMemory::wait_async(int groups) {
  Async& own = async_[static_cast<std::size_t>(self())];
  const auto left = static_cast<std::size_t>(groups);
  const auto done = [&](std::size_t group) { return group + left < own.groups; };
  std::size_t kept = 0;
  for (const auto& [group, read] : own.reads) {
    if (!done(group)) {
      own.reads[kept++] = {group, read};
      continue;
    }
    const Word& word = read.of->words[static_cast<std::size_t>(read.i)];
    if (word.writes != read.writes)
      return fail_(fmt::format("thread {} multiplies {}[{}], which thread {} writes meanwhile",
                               self(), read.of->name, read.i, word.writer));
    alignas(16) unsigned char value[16];
    get(*read.of, read.i, value);
  }
  own.reads.resize(kept);
  kept = 0;
  for (AsyncSums& sums : own.sums) {
    if (done(sums.group))
      std::memcpy(sums.own, sums.sums.data(), sums.sums.size());
    else if (AsyncSums& to = own.sums[kept++]; &to != &sums)
      to = std::move(sums);
  }
  own.sums.resize(kept);
}

}  // namespace pw::cuda
