// Private to the importer: effects of statements beyond their nodes, tensors and values.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "import/fx/fx.hpp"

namespace pw::fx {

/// Values with a role that later statements, or the end of the import, depend on, and lines of the
/// report. Invariant: everything since begin_statement() is in trace(), or once() was called, so
/// that an equal statement can repeat it (calls/repeat.hpp).
class Effects {
 public:
  struct Trace {
    std::vector<ValueId> makers, dropped, caches;
    std::vector<std::string> opaque, reasons;
    bool repeatable = true;
  };

  explicit Effects(FxReport& report) : report_(report) {}

  void begin_statement() { trace_ = {}; }
  /// Marks the statement as having further effects, so that it is not repeated.
  void once() { trace_.repeatable = false; }
  [[nodiscard]] const Trace& trace() const { return trace_; }

  /// Adds a result of `full` and the like, whose literals may be counts that a symbol replaced.
  void add_maker(ValueId value) { add(makers_, trace_.makers, value); }
  [[nodiscard]] bool is_maker(ValueId value) const { return makers_.contains(value); }
  /// Adds a buffer that only receives results, which nothing reads any more.
  void drop(ValueId value) { add(dropped_, trace_.dropped, value); }
  [[nodiscard]] const std::set<ValueId>& dropped() const { return dropped_; }
  void add_rope_cache(ValueId value) { add(rope_caches_, trace_.caches, value); }
  [[nodiscard]] const std::set<ValueId>& rope_caches() const { return rope_caches_; }
  /// Adds an input that is only the name of a layer.
  void add_layer_name(ValueId value) {
    once();
    layer_names_.insert(value);
  }
  [[nodiscard]] const std::set<ValueId>& layer_names() const { return layer_names_; }

  /// Counts an opaque op in the report, and the reason if there is one.
  void add_opaque(std::string op, const std::string& why) {
    ++report_.opaque[op];
    if (!why.empty()) {
      trace_.reasons.push_back(fmt::format("{}: {}", op, why));
      ++report_.reasons[trace_.reasons.back()];
    }
    trace_.opaque.push_back(std::move(op));
  }
  /// Repeats the lines of another statement's trace.
  void repeat_lines(const std::vector<std::string>& opaque,
                    const std::vector<std::string>& reasons) {
    for (const std::string& op : opaque) ++report_.opaque[op];
    for (const std::string& reason : reasons) ++report_.reasons[reason];
  }
  /// Reports a literal or a symbol that was replaced.
  void note(std::string substitution) {
    once();
    report_.substitutions.push_back(std::move(substitution));
  }
  void undo_note() { report_.substitutions.pop_back(); }

 private:
  static void add(std::set<ValueId>& to, std::vector<ValueId>& trace, ValueId value) {
    to.insert(value);
    trace.push_back(value);
  }

  FxReport& report_;
  std::set<ValueId> makers_, dropped_, rope_caches_, layer_names_;
  Trace trace_;
};

}  // namespace pw::fx
