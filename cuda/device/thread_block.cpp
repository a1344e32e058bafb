// Emulates a thread block on fibers with a randomised cooperative schedule. A fiber runs until a
// barrier or exchange; the next one is drawn among the ready threads. A barrier opens when all
// threads wait at the same source line, an exchange when all lanes of its mask have arrived. If no
// thread can proceed the block is divergent, and the waits are reported.
//
// Race detection is epoch-based: barriers are the only synchronisation, so two accesses of a word
// by different threads conflict exactly if they are in the same epoch and one is a write.
// Invariant: a detected race is independent of the drawn order. Cost: O(1) for an access, and two
// context switches for a barrier of a thread.
#include "cuda/device/thread_block.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace pw::cuda {
namespace {

thread_local ThreadBlock* active = nullptr;

constexpr unsigned kWarp = 32;
constexpr int kSeveral = -2;
constexpr int kMostWord =
    16;  // maximum bytes that a thread exchanges, or of a word of shared memory

}  // namespace

const HostApi& ThreadBlock::api() {
  static const HostApi table{
      [] { return static_cast<unsigned>(active->self()); },
      [] { return active->block_ % active->launch_.blocks; },
      [] { return active->block_ / active->launch_.blocks; },
      [] { return active->launch_.threads; },
      [](int line) { active->barrier(line); },
      [](unsigned mask, int distance, const void* mine, void* other, int bytes) {
        active->exchange(mask, distance, mine, other, bytes);
      },
      [](const void* site, const char* name, long long count, int bytes) {
        return static_cast<void*>(active->shared(site, name, count, bytes));
      },
      [](void* array, long long i, void* value) {
        active->get(*static_cast<Shared*>(array), i, value);
      },
      [](void* array, long long i, const void* value) {
        active->set(*static_cast<Shared*>(array), i, value);
      },
      [](const char* what) { active->fail(fmt::format("thread {}: {}", active->self(), what)); },
      [](const void* mine, void* all, int bytes) { active->gather(mine, all, bytes); },
      [](void* array, long long i, const void* from) {
        active->copy_async(*static_cast<Shared*>(array), i, from);
      },
      [] { active->commit(); },
      [](int groups) { active->wait(groups); },
      [](void* array, long long i) {
        const Shared& shared = *static_cast<Shared*>(array);
        return static_cast<const void*>(
            active->inside(shared, i) ? shared.data.data() + i * shared.bytes : nullptr);
      },
      [](void* array, long long i) { active->read_async(*static_cast<Shared*>(array), i); },
      [](void* sums, int bytes) { return active->sum_async(sums, bytes); },
      [] { active->show_async(); },
      [] { active->commit_async(); },
      [](int groups) { active->wait_async(groups); }};
  return table;
}

/// The splitmix64 generator (Steele et al. 2014).
std::uint64_t ThreadBlock::draw() {
  std::uint64_t x = random_ += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

std::string ThreadBlock::run(const Launch& launch, const std::function<void()>& kernel) {
  ThreadBlock* const before = active;
  active = this;
  launch_ = launch;
  random_ = launch.seed;
  fault_.clear();
  std::vector<unsigned> order(std::size_t{launch.blocks} * launch.column_blocks);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<unsigned>(i);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[draw() % i]);
  for (unsigned block : order) {
    block_ = block;
    run_block(kernel);
    if (!fault_.empty()) break;
  }
  active = before;
  return fault_;
}

void ThreadBlock::run_block(const std::function<void()>& kernel) {
  threads_.assign(launch_.threads, {});
  copies_.assign(launch_.threads, {});
  async_.assign(launch_.threads, {});
  shared_.clear();
  epoch_ = 1;
  fibers_.start(launch_.threads, [&](std::size_t) { kernel(); });
  std::vector<std::size_t> ready(launch_.threads);
  for (std::size_t i = 0; i < ready.size(); ++i) ready[i] = i;
  std::size_t left = launch_.threads;
  while (left > 0 && fault_.empty()) {
    if (ready.empty()) {
      for (std::size_t i = 0; i < threads_.size(); ++i) {
        if (threads_[i].state == State::ready) ready.push_back(i);
      }
      if (ready.empty()) return stuck();
    }
    const std::size_t at = draw() % ready.size(), thread = ready[at];
    ready[at] = ready.back();
    ready.pop_back();
    fibers_.resume(thread);
    if (!fault_.empty()) return;
    if (fibers_.ended(thread)) {
      threads_[thread].state = State::ended;
      --left;
    } else if (threads_[thread].state == State::exchanging) {
      release_exchange(static_cast<unsigned>(thread) / kWarp);
    } else if (threads_[thread].state == State::gathering) {
      release_gather(static_cast<unsigned>(thread) / kWarp);
    } else if (ready.empty() && threads_[thread].state == State::at_barrier) {
      release_barrier();
    }
  }
}

/// Opens the barrier if all threads wait at the same one. Called when no thread is ready.
void ThreadBlock::release_barrier() {
  for (const Thread& t : threads_) {
    if (t.state != State::at_barrier || t.line != threads_.front().line) return;
  }
  for (Thread& t : threads_) t.state = State::ready;
  ++epoch_;
}

void ThreadBlock::release_exchange(unsigned warp) {
  const unsigned first = warp * kWarp;
  const Thread* leader = nullptr;
  const auto lanes = std::min<std::size_t>(kWarp, threads_.size() - first);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    if (threads_[first + lane].state == State::exchanging) leader = &threads_[first + lane];
  }
  if (!leader) return;
  const unsigned mask = leader->mask;
  const int distance = leader->distance;
  unsigned char values[kWarp][kMostWord] = {};
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    if (!(mask >> lane & 1u)) continue;
    if (lane >= lanes) return;
    const Thread& t = threads_[first + lane];
    if (t.state != State::exchanging || t.mask != mask || t.distance != distance ||
        t.bytes != leader->bytes)
      return;
    std::memcpy(values[lane], t.mine, static_cast<std::size_t>(t.bytes));
  }
  for (unsigned lane = 0; lane < lanes; ++lane) {
    if (!(mask >> lane & 1u)) continue;
    Thread& t = threads_[first + lane];
    const unsigned other = lane ^ static_cast<unsigned>(distance);
    if (other >= kWarp || !(mask >> other & 1u))
      return fail(fmt::format("thread {} reads the value of lane {}, which does not participate",
                              first + lane, other));
    std::memcpy(t.other, values[other], static_cast<std::size_t>(t.bytes));
    t.state = State::ready;
  }
}

void ThreadBlock::release_gather(unsigned warp) {
  const std::size_t first = std::size_t{warp} * kWarp;
  if (first + kWarp > threads_.size())
    return fail(
        fmt::format("warp {} has fewer than {} threads in an operation of all lanes", warp, kWarp));
  const auto bytes = static_cast<std::size_t>(threads_[first].bytes);
  for (std::size_t lane = 0; lane < kWarp; ++lane) {
    const Thread& t = threads_[first + lane];
    if (t.state != State::gathering || static_cast<std::size_t>(t.bytes) != bytes) return;
  }
  std::vector<unsigned char> all(kWarp * bytes);
  for (std::size_t lane = 0; lane < kWarp; ++lane)
    std::memcpy(all.data() + lane * bytes, threads_[first + lane].mine, bytes);
  for (std::size_t lane = 0; lane < kWarp; ++lane) {
    std::memcpy(threads_[first + lane].other, all.data(), all.size());
    threads_[first + lane].state = State::ready;
  }
}

void ThreadBlock::stuck() {
  std::map<std::string, std::pair<std::size_t, std::size_t>> waits;  // count, first thread
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    const Thread& t = threads_[i];
    const std::string what =
        t.state == State::ended        ? "ended"
        : t.state == State::at_barrier ? fmt::format("wait at the barrier in line {}", t.line)
        : t.state == State::gathering
            ? std::string("wait for all lanes of their warp")
            : fmt::format("wait to exchange {} lanes apart (mask {:08x})", t.distance, t.mask);
    auto& entry = waits.emplace(what, std::pair(std::size_t{0}, i)).first->second;
    ++entry.first;
  }
  std::string text = "divergent:";
  for (const auto& [what, count] : waits)
    text += fmt::format(" {} threads (thread {} …) {};", count.first, count.second, what);
  text.pop_back();
  fail(text);
}

/// Reports the first fault, which ends the block. The faulting thread does not continue, because it
/// lacks the requested value; its stack is not unwound.
void ThreadBlock::fail(std::string what) {
  if (fault_.empty()) fault_ = fmt::format("block {}, {}", block_, what);
  std::string().swap(what);  // frees its memory, since the stack is not unwound
  if (fibers_.inside()) fibers_.pause();
}

void ThreadBlock::barrier(int line) {
  Thread& t = threads_[static_cast<std::size_t>(self())];
  t.state = State::at_barrier;
  t.line = line;
  fibers_.pause();
}

void ThreadBlock::exchange(unsigned mask, int distance, const void* mine, void* other, int bytes) {
  if (bytes > kMostWord) fail(fmt::format("thread {} exchanges {} bytes", self(), bytes));
  Thread& t = threads_[static_cast<std::size_t>(self())];
  t = {State::exchanging, 0, mask, distance, bytes, mine, other};
  if (!(mask >> static_cast<unsigned>(self()) % kWarp & 1u))
    fail(fmt::format("thread {} is not in its own mask {:08x}", self(), mask));
  fibers_.pause();
}

void ThreadBlock::gather(const void* mine, void* all, int bytes) {
  threads_[static_cast<std::size_t>(self())] = {State::gathering, 0, 0, 0, bytes, mine, all};
  fibers_.pause();
}

void ThreadBlock::copy_async(Shared& array, long long i, const void* from) {
  unsigned char unknown[kMostWord];
  std::memset(unknown, 0xff, sizeof unknown);
  set(array, i, unknown);
  copies_[static_cast<std::size_t>(self())].open.push_back({&array, i, from});
}

void ThreadBlock::commit() {
  Copies& own = copies_[static_cast<std::size_t>(self())];
  own.groups.push_back(std::exchange(own.open, {}));
}

void ThreadBlock::wait(int groups) {
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

ThreadBlock::Shared* ThreadBlock::shared(const void* site, const char* name, long long count,
                                         int bytes) {
  if (bytes > kMostWord) fail(fmt::format("elements of {} have {} bytes", name, bytes));
  const auto [found, fresh] = shared_.try_emplace(site);
  Shared& array = found->second;
  if (fresh) {
    if (count < 0) count = launch_.shared_bytes / bytes;
    array.name = name;
    array.bytes = bytes;
    array.data.assign(static_cast<std::size_t>(count * bytes), 0xff);
    array.words.resize(static_cast<std::size_t>(count));
  }
  return &array;
}

bool ThreadBlock::inside(const Shared& array, long long i) {
  if (i >= 0 && i < static_cast<long long>(array.words.size())) return true;
  fail(fmt::format("thread {}: {}[{}] is out of range: {} elements", self(), array.name, i,
                   array.words.size()));
  return false;
}

void ThreadBlock::get(Shared& array, long long i, void* value) {
  std::memset(value, 0xff, static_cast<std::size_t>(array.bytes));
  if (!inside(array, i)) return;
  Word& word = array.words[static_cast<std::size_t>(i)];
  if (word.writer == -1) {
    fail(fmt::format("thread {} reads {}[{}], which no thread has written", self(), array.name, i));
  } else if (word.writer != self() && word.written == epoch_) {
    fail(fmt::format("thread {} reads {}[{}], which thread {} writes without a barrier between",
                     self(), array.name, i, word.writer));
  }
  word.reader = word.read == epoch_ && word.reader != self() ? kSeveral : self();
  word.read = epoch_;
  std::memcpy(value, array.data.data() + i * array.bytes, static_cast<std::size_t>(array.bytes));
}

void ThreadBlock::set(Shared& array, long long i, const void* value) {
  if (!inside(array, i)) return;
  Word& word = array.words[static_cast<std::size_t>(i)];
  if (word.writer != -1 && word.writer != self() && word.written == epoch_) {
    fail(fmt::format("threads {} and {} write {}[{}] without a barrier between", self(),
                     word.writer, array.name, i));
  } else if (word.read == epoch_ && word.reader != self()) {
    fail(fmt::format("thread {} writes {}[{}], which {} reads without a barrier between", self(),
                     array.name, i,
                     word.reader == kSeveral ? "another" : fmt::format("thread {}", word.reader)));
  }
  word.writer = self();
  word.written = epoch_;
  word.shown = async_[static_cast<std::size_t>(self())].shown_in.size();
  std::memcpy(array.data.data() + i * array.bytes, value, static_cast<std::size_t>(array.bytes));
}

}  // namespace pw::cuda
