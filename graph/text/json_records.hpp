// graph.json as short records. Names and words are numbered in tables that are freed with the
// records: a graph of a million nodes must not leave a million strings.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strings.hpp"
#include "graph/graph.hpp"
#include "graph/text/attribute_json.hpp"
#include "graph/text/json_checks.hpp"
#include "graph/text/numbered_names.hpp"

namespace pw {

// `name` is an id of GraphRecords::names, all else of GraphRecords::words.
struct InputRecord {
  NameId name, type;
  InputKind kind = InputKind::input;
  std::vector<NameId> replicated;
};
struct ResultRecord {
  NameId name, type;  // an invalid type is not stated
};
struct NodeRecord {
  NameId name, op, group, source;
  AttributesId attributes;                             // as they were given
  std::uint32_t first_operand = 0, operand_count = 0;  // of GraphRecords::operands
  std::uint32_t first_result = 0, result_count = 0;    // of GraphRecords::results
};

struct GraphRecords {
  NumberedNames names;
  Strings words;
  std::vector<InputRecord> inputs;
  std::vector<NodeRecord> nodes;
  std::vector<NameId> operands;  // invalid: null
  std::vector<ResultRecord> results;
  std::vector<NameId> outputs;
  std::vector<std::pair<NameId, NameId>> writes;  // input, value

  [[nodiscard]] std::string text(NameId name) const { return names.text(name); }
  [[nodiscard]] std::string_view word(NameId word) const { return words.text(word); }
  [[nodiscard]] std::span<const NameId> operands_of(const NodeRecord& node) const {
    return std::span(operands).subspan(node.first_operand, node.operand_count);
  }
  [[nodiscard]] std::span<const ResultRecord> results_of(const NodeRecord& node) const {
    return std::span(results).subspan(node.first_result, node.result_count);
  }
};

/// Reader of scanned elements into records; checks only their form.
class RecordReader {
 public:
  RecordReader(GraphRecords& records, AttributeReader& attributes, json::Checks& check)
      : records_(records), attributes_(attributes), check_(check) {}

  void input(const json::Tree& tree, const json::Pointer& pointer);
  void node(const json::Tree& tree, const json::Pointer& pointer);
  void outputs(const json::Tree& list, const json::Pointer& pointer);
  void writes(const json::Tree& object, const json::Pointer& pointer);
  /// Reads a non-empty string member as a word; an invalid id if it is absent and optional.
  bool word(const json::Tree& tree, std::string_view key, bool required,
            const json::Pointer& pointer, NameId& out) {
    return member(tree, key, required, pointer, records_.words, out);
  }

 private:
  bool name(const json::Tree& tree, const json::Pointer& pointer, NameId& out) {
    return member(tree, "name", true, pointer, records_.names, out);
  }
  template <class Table>
  bool member(const json::Tree& tree, std::string_view key, bool required,
              const json::Pointer& pointer, Table& table, NameId& out);
  bool replicated(const json::Tree& tree, const json::Pointer& pointer, InputRecord& record);
  bool operands(const json::Tree& tree, const json::Pointer& pointer);
  bool results(const json::Tree& tree, NameId node, const json::Pointer& pointer);

  GraphRecords& records_;
  AttributeReader& attributes_;
  json::Checks& check_;
};

}  // namespace pw
