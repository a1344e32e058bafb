// Resolves the names in the records of a graph.json: each is defined once, before its uses.
#pragma once

#include "graph/text/json_records.hpp"

namespace pw {

class Definitions {
 public:
  struct Definition {
    static constexpr std::int64_t kInput = -1, kNone = -2;
    std::int64_t node = kNone;
    ValueId value;  // once built
    [[nodiscard]] bool there() const { return node != kNone; }
  };

  Definitions(const GraphRecords& records, json::Checks& check) : records_(records), check_(check) {
    definitions_.resize(records.names.size());
  }

  /// Defines the results of all nodes; the inputs are defined by the caller, one by one.
  void define_results();
  void define_input(NameId name, const json::Pointer& pointer) {
    define(name, Definition::kInput, pointer);
  }
  /// Reports a value that is read before its definition. For a value on a cycle, reports the cycle
  /// once instead.
  void check_order() const;
  /// Checks the outputs and writes.
  void check_ends() const;

  /// Returns the value of a name, invalid if it is not built.
  ValueId& value(NameId name) { return definitions_[name].value; }

 private:
  void define(NameId name, std::int64_t node, const json::Pointer& pointer);
  void unknown_value(NameId name, const json::Pointer& pointer, std::string_view code,
                     const std::string& prefix) const;
  bool report_cycle() const;
  bool name_cycle(const std::vector<std::pair<std::size_t, std::size_t>>& stack,
                  std::size_t start) const;

  const GraphRecords& records_;
  json::Checks& check_;
  IdVec<NameId, Definition> definitions_{};  // by name
};

}  // namespace pw
