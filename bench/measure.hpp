// What the benchmarks measure with: processor time, medians, resident memory, Markdown tables, and
// the list of what must hold.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "graph/context.hpp"

namespace pw::bench {

/// Processor time of the thread, which other work on the machine disturbs less than the clock.
[[nodiscard]] double seconds(const std::function<void()>& body);
/// Processor time of all threads: what one core needs.
[[nodiscard]] double all_threads_seconds(const std::function<void()>& body);
/// The thread's from cold caches: a small graph is not helped by the run before it.
[[nodiscard]] double cold_seconds(const std::function<void()>& body);
/// The processor as the system calls it, and, as clouds give one name to several models, its
/// numbers. As processor() of peers/environment.py.
[[nodiscard]] std::string processor();
/// What is measured on, in words: cores, processor, load.
[[nodiscard]] std::string machine();
[[nodiscard]] double median(std::vector<double> values);
/// Of this process, in bytes, after what is free has been given back.
[[nodiscard]] std::size_t resident_bytes();

/// The value, or the end of the program with its diagnostics and exit code 3.
template <class T>
T need(const ContextPtr& context, Result<T> result);
[[noreturn]] void die(const std::string& message);

/// Cells of a Markdown table; the first column is text, the others stand to the right.
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

/// What a benchmark promises: measured against a limit.
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
