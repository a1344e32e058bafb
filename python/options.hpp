// Keyword options of a Python call.
#pragma once

#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "pipeline/plan.hpp"

namespace pw::python {

/// Tracks the options that the callee reads, to detect unknown ones.
class Given {
 public:
  Given(std::string function, const pybind11::dict& options)
      : function_(std::move(function)), options_(options) {}
  template <class T>
  void take(const char* name, T& into) {
    known_.insert(name);
    if (!options_.contains(name)) return;
    try {
      into = options_[name].cast<T>();
    } catch (const pybind11::cast_error&) {
      throw pybind11::type_error(fmt::format(
          "{}(): option '{}' cannot be {}", function_, name,
          pybind11::repr(pybind11::object(options_[name])).template cast<std::string>()));
    }
  }
  [[nodiscard]] pybind11::object object(const char* name) {
    known_.insert(name);
    return options_.contains(name) ? pybind11::object(options_[name])
                                   : pybind11::object(pybind11::none());
  }
  /// Raises TypeError if an unread option remains.
  void end() const {
    for (const auto& [key, value] : options_)
      if (const auto name = key.cast<std::string>(); !known_.contains(name))
        throw pybind11::type_error(fmt::format("{}() has no option '{}'; its options are {}",
                                               function_, name, fmt::join(known_, ", ")));
  }

 private:
  std::string function_;
  const pybind11::dict& options_;
  std::set<std::string> known_;
};

/// Reads the options of the splitter and the planner.
inline void take_plan(Given& given, PlanRequest& plan) {
  given.take("split_at", plan.at);
  given.take("fold", plan.fold);
  given.take("split", plan.split);
  given.take("max_tokens", plan.max_tokens);
  given.take("ranges", plan.range_ends);
  given.take("sizes", plan.capture_sizes);
  given.take("size_cap", plan.size_cap);
  given.take("compile_sizes", plan.compile_sizes);
  given.take("max_requests", plan.max_requests);
  given.take("speculative_tokens", plan.speculative_tokens);
  given.take("sequence_parallel", plan.sequence_parallel);
  given.take("loras", plan.loras);
  given.take("mode", plan.mode);
}

}  // namespace pw::python
