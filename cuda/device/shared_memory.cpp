// Accesses and copies. Invariant: whether a race is detected is independent of the order of
// threads, because a word keeps its last write and all reads since, and each new access is compared
// with those that it conflicts with.
#include "cuda/device/shared_memory.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace pw::cuda {
namespace {

constexpr int kMostWord = 16;  // bytes of a word

}  // namespace

void SharedMemory::reset(std::size_t threads, std::int64_t bytes) {
  bytes_ = bytes;
  copies_.assign(threads, {});
  async_.assign(threads, {});
  shared_.clear();
  epoch_ = 1;
  clocks_.assign(threads, 0);
  known_.clear();
  phases_.clear();
}

bool SharedMemory::before(int thread, Stamp at) const {
  if (at.epoch < epoch_ || thread == self()) return true;
  if (known_.empty()) return false;
  const std::vector<std::uint32_t>& known = known_[fibers_.current()];
  return !known.empty() && at.clock < known[static_cast<std::size_t>(thread)];
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
  } else if (!before(word.writer, word.written)) {
    fail_(fmt::format("thread {} reads {}[{}], which thread {} writes without a barrier between",
                      self(), array.name, i, word.writer));
  }
  note_reader(word);
  std::memcpy(value, array.data.data() + i * array.bytes, static_cast<std::size_t>(array.bytes));
}

void SharedMemory::note_reader(Word& word) {
  std::vector<Reader>& all = word.readers;
  if (!all.empty() && all.front().at.epoch < epoch_) all.clear();
  const auto own =
      std::find_if(all.begin(), all.end(), [&](const Reader& r) { return r.thread == self(); });
  if (own != all.end())
    own->at = now();
  else if (all.size() < 2 || !phases_.empty())
    all.push_back({self(), now()});
}

void SharedMemory::set(Shared& array, long long i, const void* value) {
  if (!inside(array, i)) return;
  Word& word = array.words[static_cast<std::size_t>(i)];
  if (word.writer != -1 && !before(word.writer, word.written)) {
    fail_(fmt::format("threads {} and {} write {}[{}] without a barrier between", self(),
                      word.writer, array.name, i));
  }
  for (const Reader& reader : word.readers)
    if (!before(reader.thread, reader.at))
      fail_(fmt::format("thread {} writes {}[{}], which thread {} reads without a barrier between",
                        self(), array.name, i, reader.thread));
  word.readers.clear();
  word.writer = self();
  word.written = now();
  ++word.writes;
  word.shown = async_[static_cast<std::size_t>(self())].shown_at.size();
  std::memcpy(array.data.data() + i * array.bytes, value, static_cast<std::size_t>(array.bytes));
}

}  // namespace pw::cuda
