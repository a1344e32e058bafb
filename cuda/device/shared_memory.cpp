// Detects races by epochs: barriers are the only synchronisation, so two accesses of a word by
// different threads conflict exactly if they are in the same epoch and one is a write. Invariant: a
// detected race is independent of the order of threads. Cost: O(1) for an access.
#include "cuda/device/shared_memory.hpp"

#include <cstring>

#include <fmt/format.h>

namespace pw::cuda {
namespace {

constexpr int kSeveral = -2;
constexpr int kMostWord = 16;  // bytes of a word

}  // namespace

void SharedMemory::reset(std::size_t threads, std::int64_t bytes) {
  bytes_ = bytes;
  copies_.assign(threads, {});
  async_.assign(threads, {});
  shared_.clear();
  epoch_ = 1;
}

void SharedMemory::copy_async(Shared& array, long long i, const void* from) {
  unsigned char unknown[kMostWord];
  std::memset(unknown, 0xff, sizeof unknown);
  set(array, i, unknown);
  copies_[static_cast<std::size_t>(self())].open.push_back({&array, i, from});
}

void SharedMemory::commit() {
  Copies& own = copies_[static_cast<std::size_t>(self())];
  own.groups.push_back(std::exchange(own.open, {}));
}

void SharedMemory::wait(int groups) {
  Copies& own = copies_[static_cast<std::size_t>(self())];
  while (own.groups.size() > static_cast<std::size_t>(groups)) {
    for (const Copy& copy : own.groups.front()) {
      unsigned char value[kMostWord] = {};
      if (copy.from != nullptr)
        std::memcpy(value, copy.from, static_cast<std::size_t>(copy.to->bytes));
      set(*copy.to, copy.i, value);
    }
    own.groups.erase(own.groups.begin());
  }
}

SharedMemory::Shared* SharedMemory::shared(const void* site, const char* name, long long count,
                                           int bytes) {
  if (bytes > kMostWord) fail_(fmt::format("elements of {} have {} bytes", name, bytes));
  const auto [found, fresh] = shared_.try_emplace(site);
  Shared& array = found->second;
  if (fresh) {
    if (count < 0) count = bytes_ / bytes;
    array.name = name;
    array.bytes = bytes;
    array.data.assign(static_cast<std::size_t>(count * bytes), 0xff);
    array.words.resize(static_cast<std::size_t>(count));
  }
  return &array;
}

bool SharedMemory::inside(const Shared& array, long long i) {
  if (i >= 0 && i < static_cast<long long>(array.words.size())) return true;
  fail_(fmt::format("thread {}: {}[{}] is out of range: {} elements", self(), array.name, i,
                    array.words.size()));
  return false;
}

void SharedMemory::get(Shared& array, long long i, void* value) {
  std::memset(value, 0xff, static_cast<std::size_t>(array.bytes));
  if (!inside(array, i)) return;
  Word& word = array.words[static_cast<std::size_t>(i)];
  if (word.writer == -1) {
    fail_(
        fmt::format("thread {} reads {}[{}], which no thread has written", self(), array.name, i));
  } else if (word.writer != self() && word.written == epoch_) {
    fail_(fmt::format("thread {} reads {}[{}], which thread {} writes without a barrier between",
                      self(), array.name, i, word.writer));
  }
  word.reader = word.read == epoch_ && word.reader != self() ? kSeveral : self();
  word.read = epoch_;
  std::memcpy(value, array.data.data() + i * array.bytes, static_cast<std::size_t>(array.bytes));
}

void SharedMemory::set(Shared& array, long long i, const void* value) {
  if (!inside(array, i)) return;
  Word& word = array.words[static_cast<std::size_t>(i)];
  if (word.writer != -1 && word.writer != self() && word.written == epoch_) {
    fail_(fmt::format("threads {} and {} write {}[{}] without a barrier between", self(),
                      word.writer, array.name, i));
  } else if (word.read == epoch_ && word.reader != self()) {
    fail_(fmt::format("thread {} writes {}[{}], which {} reads without a barrier between", self(),
                      array.name, i,
                      word.reader == kSeveral ? "another" : fmt::format("thread {}", word.reader)));
  }
  word.writer = self();
  word.written = epoch_;
  word.shown = async_[static_cast<std::size_t>(self())].shown_in.size();
  std::memcpy(array.data.data() + i * array.bytes, value, static_cast<std::size_t>(array.bytes));
}

}  // namespace pw::cuda
