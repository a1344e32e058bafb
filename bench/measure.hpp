// Measurement utilities of the benchmarks: processor time, medians, resident memory, Markdown
// tables, and checked limits.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "graph/context.hpp"

namespace pw::bench {

/// Returns the processor time of the thread, which other load disturbs less than wall time.
[[nodiscard]] double seconds(const std::function<void()>& body);
/// Returns the processor time of all threads: the time on one core.
[[nodiscard]] double all_threads_seconds(const std::function<void()>& body);
/// Returns the thread's time from cold caches, so that a small graph does not profit from the
/// previous run.
[[nodiscard]] double cold_seconds(const std::function<void()>& body);
/// Returns the processor's name and numbers, because clouds give several models one name. Equal to
/// processor() of peers/environment.py.
[[nodiscard]] std::string processor();
/// Describes the machine: cores, processor, load.
[[nodiscard]] std::string machine();
[[nodiscard]] double median(std::vector<double> values);
void give_back_free_memory();  ///< returned to the system
/// Returns the bytes of this process after free memory is returned to the system.
[[nodiscard]] std::size_t resident_bytes();

/// Returns the value, or exits with code 3 after printing the diagnostics.
template <class T>
T need(const ContextPtr& context, Result<T> result);
[[noreturn]] void die(const std::string& message);

/// Cells of a Markdown table; the first column is text, the others are right-aligned.
class Table {
 public:
  explicit Table(std::vector<std::string> head) : rows_{std::move(head)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] std::string print() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

[[nodiscard]] std::string milliseconds(double seconds);
[[nodiscard]] std::string grouped(std::size_t number);  ///< 1 234 567

/// Measured values that must stay within limits.
class Promises {
 public:
  void at_most(const std::string& what, double measured, double limit, const std::string& unit);
  void at_least(const std::string& what, double measured, double limit, const std::string& unit);
  [[nodiscard]] bool kept() const { return kept_; }
  [[nodiscard]] std::string print() const { return table_.print(); }

 private:
  void add(const std::string& what, double measured, double limit, const std::string& unit, bool ok,
           const char* otherwise);

  Table table_{{"must hold", "measured", "limit", ""}};
  bool kept_ = true;
};

template <class T>
T need(const ContextPtr& context, Result<T> result) {
  if (!result) die(render(result.error(), context->sources));
  return std::move(*result);
}

}  // namespace pw::bench
