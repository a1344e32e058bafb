// A signal handler can read the list of ranges at any time.
#include "tensor/mapped_range.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>

#include <sys/mman.h>
#include <unistd.h>

namespace pw {

/// An entry of the list. It is reused, and never freed.
struct MappedPlace {
  std::atomic<std::uintptr_t> begin{0};  ///< 0: free
  std::atomic<std::uintptr_t> end{0};
  std::atomic<bool> lost{false};
  MappedPlace* next = nullptr;
};

namespace {

static_assert(std::atomic<std::uintptr_t>::is_always_lock_free, "a signal handler reads them");

std::mutex range_mutex;  // of what writes the list, and of what replaces the handler
std::atomic<MappedPlace*> mapped_places{nullptr};
std::atomic<const struct sigaction*> earlier_handler{nullptr};
volatile std::sig_atomic_t passed_fault = 0;

const auto kPageBytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));

/// The kernel reports a failed access; other signals are sent by programs.
bool is_fault(const siginfo_t& info) { return info.si_code > 0; }

/// Returns true if the address is in one of the ranges and can be read from now on.
bool survive(std::uintptr_t at) {
  for (MappedPlace* place = mapped_places; place != nullptr; place = place->next) {
    const std::uintptr_t begin = place->begin, end = place->end;
    if (begin == 0 || at < begin || at >= end || place->begin != begin) continue;
    place->lost = true;
    // A file is cut off at its end, so all pages that follow are lost: one signal for all of them.
    const std::uintptr_t first = at / kPageBytes * kPageBytes;
    return ::mmap(reinterpret_cast<void*>(first), end - first, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED;
  }
  return false;
}

/// Ends the process as the default does: a failed access is repeated after the handler returns, and
/// a signal that was sent is sent again.
void end_by(int signal, bool fault) {
  std::signal(signal, SIG_DFL);
  if (!fault) ::raise(signal);
}

void pass_signal_on(int signal, siginfo_t* info, void* context) {
  const struct sigaction& before = *earlier_handler;
  const bool fault = is_fault(*info);
  const bool ignored = before.sa_handler == SIG_IGN;
  if (ignored && !fault) return;
  // A handler that raises the signal after a fault has given up on it.
  const bool given_up = !fault && passed_fault != 0;
  if (ignored || given_up || before.sa_handler == SIG_DFL) return end_by(signal, fault);
  if (fault) passed_fault = 1;
  if ((before.sa_flags & SA_SIGINFO) != 0)
    before.sa_sigaction(signal, info, context);
  else
    before.sa_handler(signal);
}

void handle_bus_error(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  if (!is_fault(*info) || !survive(reinterpret_cast<std::uintptr_t>(info->si_addr)))
    pass_signal_on(signal, info, context);
  errno = error;
}

/// Makes `handle_bus_error` the handler, under the mutex. Another library may have replaced it
/// since.
void take_over() {
  struct sigaction now{};
  ::sigaction(SIGBUS, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == handle_bus_error) return;
  earlier_handler =
      new struct sigaction(now);  // never freed: a handler may be reading the last one
  struct sigaction own{};
  own.sa_sigaction = handle_bus_error;
  own.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&own.sa_mask);
  ::sigaction(SIGBUS, &own, nullptr);
}

/// An entry that nothing uses, under the mutex.
MappedPlace& free_place() {
  for (MappedPlace* place = mapped_places; place != nullptr; place = place->next)
    if (place->begin == 0) return *place;
  auto* const place = new MappedPlace;
  place->next = mapped_places;
  mapped_places = place;
  return *place;
}

MappedPlace& note_range(std::byte* begin, std::size_t size) {
  const std::lock_guard lock(range_mutex);
  take_over();
  MappedPlace& place = free_place();
  const auto at = reinterpret_cast<std::uintptr_t>(begin);
  place.lost = false;
  place.end = at + (size + kPageBytes - 1) / kPageBytes * kPageBytes;
  place.begin = at;  // last: the entry is valid from here on
  return place;
}

}  // namespace

MappedRange::MappedRange(std::byte* begin, std::size_t size) : place_(note_range(begin, size)) {}

MappedRange::~MappedRange() {
  const std::lock_guard lock(range_mutex);
  place_.begin = 0;
}

bool MappedRange::lost() const { return place_.lost; }

}  // namespace pw
