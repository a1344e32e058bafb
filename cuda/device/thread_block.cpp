// Emulates a thread block on fibers with a randomised cooperative schedule. A fiber runs until a
// barrier or exchange; the next one is drawn among the ready threads. A barrier opens when all
// threads wait at the same source line, an exchange when all lanes of its mask have arrived. If no
// thread can proceed the block is divergent, and the waits are reported.
// Cost: two context switches for a barrier of a thread.
#include "cuda/device/thread_block.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace pw::cuda {
namespace {

thread_local ThreadBlock* active = nullptr;

constexpr unsigned kWarp = 32;
constexpr int kMostExchanged = 16;  // bytes of a thread

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
        return static_cast<void*>(active->memory_.shared(site, name, count, bytes));
      },
      [](void* array, long long i, void* value) {
        active->memory_.get(*static_cast<SharedMemory::Shared*>(array), i, value);
      },
      [](void* array, long long i, const void* value) {
        active->memory_.set(*static_cast<SharedMemory::Shared*>(array), i, value);
      },
      [](const char* what) { active->fail(fmt::format("thread {}: {}", active->self(), what)); },
      [](const void* mine, void* all, int bytes) { active->gather(mine, all, bytes); },
      [](void* array, long long i, const void* from) {
        active->memory_.copy_async(*static_cast<SharedMemory::Shared*>(array), i, from);
      },
      [] { active->memory_.commit(); },
      [](int groups) { active->memory_.wait(groups); },
      [](void* array, long long i) {
        const SharedMemory::Shared& shared = *static_cast<SharedMemory::Shared*>(array);
        return static_cast<const void*>(
            active->memory_.inside(shared, i) ? shared.data.data() + i * shared.bytes : nullptr);
      },
      [](void* array, long long i) {
        active->memory_.read_async(*static_cast<SharedMemory::Shared*>(array), i);
      },
      [](void* sums, int bytes) { return active->memory_.sum_async(sums, bytes); },
      [] { active->memory_.show_async(); },
      [] { active->memory_.commit_async(); },
      [](int groups) { active->memory_.wait_async(groups); },
      [](void* array, long long i, int warps) {
        active->memory_.prepare_phases(*static_cast<SharedMemory::Shared*>(array), i, warps);
      },
      [](void* array, long long i) {
        active->arrive(*static_cast<const SharedMemory::Shared*>(array), i);
      },
      [](void* array, long long i, unsigned parity) {
        active->await(*static_cast<const SharedMemory::Shared*>(array), i, parity);
      },
      [](long long accesses) { active->wait_for_earlier(accesses); },
      [](unsigned before) { active->wait_for_blocks(before); },
      [](long long accesses) {
        if (!active->ended_work_) active->ended_work_ = accesses;
      },
      [](long long accesses) {
        if (active->ended_work_) *active->ended_work_ += accesses;
      }};
  return table;
}

std::vector<unsigned> ThreadBlock::order(unsigned blocks, std::uint64_t seed) {
  Random random(mix(seed));
  std::vector<unsigned> out(blocks);
  std::iota(out.begin(), out.end(), 0u);
  for (std::size_t i = out.size(); i > 1; --i) std::swap(out[i - 1], out[random.below(i)]);
  return out;
}

std::string ThreadBlock::run(const Launch& launch, const std::function<void()>& kernel) {
  return run(launch, order(launch.blocks * launch.column_blocks, launch.seed), kernel);
}

std::string ThreadBlock::run(const Launch& launch, const std::vector<unsigned>& blocks,
                             const std::function<void()>& kernel) {
  random_ = Random(launch.seed);
  ThreadBlock* const before = active;
  active = this;
  launch_ = launch;
  fault_.clear();
  earlier_completed_ = false;
  has_run_.assign(std::size_t{launch.blocks} * launch.column_blocks, 1);
  for (unsigned block : blocks) has_run_[block] = 0;
  for (unsigned block : blocks) {
    if (std::exchange(has_run_[block], 1) != 0) continue;
    block_ = block;
    run_block(kernel);
    if (!fault_.empty()) break;
  }
  active = before;
  return fault_;
}

void ThreadBlock::run_block(const std::function<void()>& kernel) {
  threads_.assign(launch_.threads, {});
  early_.assign(launch_.complete_earlier ? launch_.threads : 0, {});
  ended_work_.reset();
  memory_.reset(launch_.threads, launch_.shared_bytes);
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
    if (!early_.empty() && !std::exchange(early_[thread].begun, true))
      early_[thread].accesses = launch_.accesses();
    fibers_.resume(thread);
    if (!fault_.empty()) return;
    if (fibers_.ended(thread)) {
      if (!early_.empty() && !early_[thread].waited)
        return fail(fmt::format("thread {} ends without a wait for the earlier kernel", thread));
      threads_[thread].state = State::ended;
      --left;
    } else if (threads_[thread].state == State::waiting) {
      release_wait(thread);
      ready.push_back(thread);
    } else if (threads_[thread].state == State::awaiting_blocks) {
      run_blocks_before(thread);
      ready.push_back(thread);
    } else if (threads_[thread].state == State::exchanging) {
      release_exchange(static_cast<unsigned>(thread) / kWarp);
    } else if (threads_[thread].state == State::gathering) {
      release_gather(static_cast<unsigned>(thread) / kWarp);
    } else if (ready.empty() && threads_[thread].state == State::at_barrier) {
      release_barrier();
    }
  }
  if (fault_.empty() && ended_work_ && launch_.accesses() != *ended_work_)
    fail("its threads access memory after they have announced their end");
}

/// Opens the barrier if all threads wait at the same one. Called when no thread is ready.
void ThreadBlock::release_barrier() {
  for (const Thread& t : threads_) {
    if (t.state != State::at_barrier || t.line != threads_.front().line) return;
  }
  for (Thread& t : threads_) t.state = State::ready;
  memory_.begin_epoch();
}

void ThreadBlock::release_exchange(unsigned warp) {
  const unsigned first = warp * kWarp;
  const auto lanes = std::min<std::size_t>(kWarp, threads_.size() - first);
  const Thread* leader = nullptr;
  for (std::size_t lane = lanes; lane-- > 0 && leader == nullptr;) {
    if (threads_[first + lane].state == State::exchanging) leader = &threads_[first + lane];
  }
  if (!leader) return;
  const unsigned mask = leader->mask;
  const int distance = leader->distance;
  // Nothing is copied until all have come: this is called for each of them.
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    if (!(mask >> lane & 1u)) continue;
    if (lane >= lanes) return;
    const Thread& t = threads_[first + lane];
    if (t.state != State::exchanging || t.mask != mask || t.distance != distance ||
        t.bytes != leader->bytes)
      return;
  }
  unsigned char values[kWarp][kMostExchanged] = {};
  for (unsigned lane = 0; lane < lanes; ++lane) {
    if (!(mask >> lane & 1u)) continue;
    const Thread& t = threads_[first + lane];
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

/// Completes the predecessor as late as possible: when the first thread waits.
void ThreadBlock::release_wait(std::size_t thread) {
  if (!std::exchange(earlier_completed_, true)) launch_.complete_earlier();
  threads_[thread].state = State::ready;
}

void ThreadBlock::stuck() {
  std::map<std::string, std::pair<std::size_t, std::size_t>> waits;  // count, first thread
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    const Thread& t = threads_[i];
    const std::string what =
        t.state == State::ended        ? "ended"
        : t.state == State::at_barrier ? fmt::format("wait at the barrier in line {}", t.line)
        : t.state == State::awaiting_phase
            ? fmt::format("await a phase of parity {} after {} complete ones", t.parity,
                          t.phases->completed)
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

void ThreadBlock::wait_for_earlier(long long accesses) {
  if (early_.empty()) return;
  const auto thread = static_cast<std::size_t>(self());
  if (accesses != early_[thread].accesses)
    fail(fmt::format("thread {} accesses memory before it waits for the earlier kernel", thread));
  early_[thread].waited = true;
  threads_[thread].state = State::waiting;
  fibers_.pause();
}

void ThreadBlock::arrive(const SharedMemory::Shared& array, long long i) {
  SharedMemory::Phases* const phases = memory_.phases(array, i);
  if (phases == nullptr || !memory_.arrive(*phases)) return;
  for (Thread& t : threads_)
    if (t.state == State::awaiting_phase && t.phases == phases && phases->passed(t.parity)) {
      t.state = State::ready;
      memory_.take_over(static_cast<std::size_t>(&t - threads_.data()), *phases);
    }
}

void ThreadBlock::await(const SharedMemory::Shared& array, long long i, unsigned parity) {
  const SharedMemory::Phases* const phases = memory_.phases(array, i);
  if (phases == nullptr) return;
  const auto thread = static_cast<std::size_t>(self());
  if (phases->passed(parity)) return memory_.take_over(thread, *phases);
  Thread& t = threads_[thread];
  t.state = State::awaiting_phase;
  t.phases = phases;
  t.parity = parity;
  fibers_.pause();
}

void ThreadBlock::wait_for_blocks(unsigned before) {
  awaited_ = before;
  threads_[static_cast<std::size_t>(self())].state = State::awaiting_blocks;
  fibers_.pause();
}

/// Runs the awaited blocks that have not run yet. They are in ascending order, in which none of
/// them waits for one that has not run.
void ThreadBlock::run_blocks_before(std::size_t thread) {
  std::vector<unsigned> blocks;
  for (unsigned block = 0; block < awaited_; ++block)
    if (std::exchange(has_run_[block], 1) == 0) blocks.push_back(block);
  threads_[thread].state = State::ready;
  if (blocks.empty()) return;
  if (const std::string fault = launch_.run_meanwhile(blocks); !fault.empty()) fault_ = fault;
}

void ThreadBlock::exchange(unsigned mask, int distance, const void* mine, void* other, int bytes) {
  if (bytes > kMostExchanged) fail(fmt::format("thread {} exchanges {} bytes", self(), bytes));
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

}  // namespace pw::cuda
