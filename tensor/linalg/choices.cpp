#include "tensor/linalg/choices.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <sstream>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>

#include "tensor/parallel.hpp"

namespace pw {
namespace {

constexpr std::int64_t kWorthMeasuring = 1 << 20;  // multiplications, some ten microseconds
constexpr int kLeastRuns = 3, kMostRounds = 12;
constexpr double kLongCall = 3e-2;  // seconds: of longer calls one undisturbed run is enough

/// Clears all but the two leading binary digits.
std::int64_t leading_digits(std::int64_t size) {
  if (size < 4) return size;
  const int low = std::bit_width(static_cast<std::uint64_t>(size)) - 2;
  return size >> low << low;
}

using ClassKey = std::tuple<std::string_view, std::array<std::int64_t, 6>,
                            std::array<std::string_view, 2>, std::int64_t>;

ClassKey key_of(const KernelClass& operands) {
  auto sizes = operands.sizes;
  for (std::int64_t& size : sizes) size = leading_digits(size);
  return {operands.op, sizes, operands.notes, thread_limit()};
}

std::string words_of(const ClassKey& key) {
  const auto& [op, sizes, notes, threads] = key;
  std::string out(op);
  std::string_view between = " ";
  for (const std::int64_t size : sizes) {
    if (size > 0) out += fmt::format("{}{}", std::exchange(between, " × "), size);
  }
  for (const std::string_view note : notes)
    if (!note.empty()) out += fmt::format(", {}", note);
  return out + fmt::format(", {} thread{}", threads, threads == 1 ? "" : "s");
}

using Times = std::vector<KernelChoice::Time>;

std::string text_of(const Times& times) {
  std::string out;
  for (const auto& [kernel, seconds] : times) out += fmt::format("{:.3e}\t{}\n", seconds, kernel);
  return out;
}

/// Reads text_of(); nothing for another text.
std::optional<Times> read_times(const std::string& text) {
  Times out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    KernelChoice::Time time;
    if (!(words >> time.seconds) || words.get() != '\t' || !std::getline(words, time.kernel))
      return {};
    out.push_back(std::move(time));
  }
  return out;
}

/// Returns the place of the fastest kernel; nothing if the text is not about these kernels.
std::optional<std::size_t> fastest(const std::string& text,
                                   std::span<const std::string_view> kernels) {
  const auto times = read_times(text);
  if (!times || times->empty()) return {};
  const auto found = std::find(kernels.begin(), kernels.end(), times->front().kernel);
  if (found == kernels.end()) return {};
  return static_cast<std::size_t>(found - kernels.begin());
}

/// Returns how often another process took a core from a thread of this one.
long lost_cores() {
  rusage usage{};
  return ::getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

/// Times the runs of one kernel. A run that lost its cores to another process does not count.
class Timed {
 public:
  void run(const std::function<bool(std::size_t)>& kernels, std::size_t kernel) {
    constexpr double kBetweenLosses = 2e-2;  // seconds; a rival takes its share more often
    const long lost = lost_cores();
    const auto start = std::chrono::steady_clock::now();
    refused_ = !kernels(kernel);
    const double now =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const bool is_first = !std::exchange(ran_, true);  // it allocates, and loads code
    if (static_cast<double>(lost_cores() - lost) > now / kBetweenLosses) return;
    if (is_first && now < kLongCall) return;
    ++runs_;
    least_ = std::min(least_, now);
  }
  [[nodiscard]] bool is_refused() const { return refused_; }
  /// Returns true if no further run is needed, given the least time of any kernel.
  [[nodiscard]] bool is_done(double best) const {
    const bool hopeless = runs_ > 1 && least_ > 4 * std::max(best, 1e-4);
    return refused_ || hopeless || runs_ >= (least_ > kLongCall ? 1 : kLeastRuns);
  }
  [[nodiscard]] bool is_measured() const { return runs_ > 0; }
  [[nodiscard]] double least() const { return least_; }

 private:
  bool refused_ = false, ran_ = false;
  int runs_ = 0;
  double least_ = std::numeric_limits<double>::infinity();
};

/// Runs all kernels in rounds. Returns the times of those that take the operands, the least first;
/// nothing if the processor was too busy to compare them.
Times measured(std::span<const std::string_view> kernels,
               const std::function<bool(std::size_t)>& run) {
  std::vector<Timed> timed(kernels.size());
  const auto best = [&] {
    return std::min_element(timed.begin(), timed.end(),
                            [](const Timed& a, const Timed& b) { return a.least() < b.least(); })
        ->least();
  };
  for (int round = 0; round < kMostRounds; ++round)
    for (std::size_t i = 0; i < kernels.size(); ++i)
      if (!timed[i].is_done(best())) timed[i].run(run, i);
  Times out;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (timed[i].is_refused()) continue;
    if (!timed[i].is_measured()) return {};
    out.push_back({std::string(kernels[i]), timed[i].least()});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  return out;
}

thread_local bool measuring = false;  // a kernel may call run_fastest() itself
thread_local std::vector<std::string>* collected = nullptr;

struct Measuring {
  Measuring() { measuring = true; }
  ~Measuring() { measuring = false; }
  Measuring(const Measuring&) = delete;
  Measuring& operator=(const Measuring&) = delete;
};

/// The choices of this process. A class is measured by one thread, the others wait for it.
class Choices {
 public:
  Choices() = default;
  /// Copies the choices of `before`, whose readers are excluded.
  explicit Choices(const Choices& before, bool active) : active_(active), known_(before.known_) {}

  void use(MeasurementStore store) {
    const std::lock_guard<std::mutex> lock(measuring_);
    active_ = static_cast<bool>(store);
    store_ = std::move(store);
  }
  [[nodiscard]] bool active() const { return active_; }

  std::size_t of(const ClassKey& key, std::span<const std::string_view> kernels,
                 const std::function<bool(std::size_t)>& run) {
    if (const auto known = find(key)) return *known;
    const std::lock_guard<std::mutex> lock(measuring_);
    if (const auto known = find(key)) return *known;
    if (!store_) return 0;
    const std::string words = words_of(key);
    std::string text = store_(
        words,
        [&] {
          const Measuring here;
          return text_of(measured(kernels, run));
        },
        [&](const std::string& kept) { return fastest(kept, kernels).has_value(); });
    const std::size_t chosen = fastest(text, kernels).value_or(0);
    const std::unique_lock<std::shared_mutex> writing(reading_);
    known_[key] = {chosen, std::move(text)};
    return chosen;
  }

  void exclude_readers() { reading_.lock(); }
  void admit_readers() { reading_.unlock(); }

  [[nodiscard]] std::vector<KernelChoice> all() const {
    const std::shared_lock<std::shared_mutex> lock(reading_);
    std::map<std::string, Times> sorted;
    for (const auto& [key, one] : known_)
      sorted[words_of(key)] = read_times(one.text).value_or(Times());
    std::vector<KernelChoice> out;
    for (auto& [words, times] : sorted) out.push_back({words, std::move(times)});
    return out;
  }

 private:
  struct Known {
    std::size_t chosen = 0;
    std::string text;
  };
  [[nodiscard]] std::optional<std::size_t> find(const ClassKey& key) const {
    const std::shared_lock<std::shared_mutex> lock(reading_);
    const auto found = known_.find(key);
    if (found == known_.end()) return {};
    return found->second.chosen;
  }

  std::atomic<bool> active_ = false;
  mutable std::shared_mutex reading_;
  std::mutex measuring_;
  MeasurementStore store_;
  std::map<ClassKey, Known> known_;
};

std::atomic<Choices*>& choices_of_process() {
  static std::atomic<Choices*> one = nullptr;
  return one;
}

/// A forked process keeps what was measured, but not the thread that may hold the lock of
/// measurements. It measures again when it calls measure_kernels().
void replace_choices() {
  const Choices& before = *choices_of_process();
  choices_of_process() = new Choices(before, before.active());
}

Choices& choices() {
  static const bool made = [] {
    choices_of_process() = new Choices;  // calls may run until the process ends
    return ::pthread_atfork([] { choices_of_process().load()->exclude_readers(); },
                            [] { choices_of_process().load()->admit_readers(); },
                            replace_choices) == 0;
  }();
  (void)made;
  return *choices_of_process();
}

}  // namespace

bool run_fastest(const KernelClass& operands, std::span<const std::string_view> kernels,
                 const std::function<bool(std::size_t)>& run) {
  std::size_t chosen = 0;
  if (operands.work >= kWorthMeasuring && choices().active() && !measuring && !in_parallel_for()) {
    const ClassKey key = key_of(operands);
    chosen = choices().of(key, kernels, run);
    if (collected != nullptr) collected->push_back(words_of(key));
  }
  if (run(chosen)) return true;
  for (std::size_t i = 0; i < kernels.size(); ++i)
    if (i != chosen && run(i)) return true;
  return false;
}

CollectedChoices::CollectedChoices() { collected = &used; }
CollectedChoices::~CollectedChoices() { collected = nullptr; }

void measure_kernels(MeasurementStore store) { choices().use(std::move(store)); }

std::vector<KernelChoice> kernel_choices() { return choices().all(); }

bool is_intel() {
#if defined(__x86_64__)
  return __builtin_cpu_is("intel");
#else
  return false;
#endif
}

}  // namespace pw
