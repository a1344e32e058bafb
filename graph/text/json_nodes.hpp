// Builds graphs from the records of a graph.json.
#pragma once

#include <optional>
#include <vector>

#include "base/hash_index.hpp"
#include "graph/build.hpp"
#include "graph/foreign.hpp"
#include "graph/text/graph_json.hpp"
#include "graph/text/json_definitions.hpp"
#include "graph/text/json_records.hpp"

namespace pw {

/// The ops that a graph.json names, by word; some it declares itself.
class NamedOps {
 public:
  NamedOps(Context& context, GraphRecords& records, json::Checks& check)
      : context_(context), records_(records), check_(check) {}

  /// Declares an op: a text for `parse_op`, or an object for an op that the program lacks.
  void declare(const json::Tree& tree, const json::Pointer& pointer, const OpParser& parse_op,
               RecordReader& reader);
  /// Returns the op of a word; invalid if there is none.
  OpId find(NameId word);
  [[nodiscard]] bool any_imported() const { return !imported_.empty(); }

 private:
  Context& context_;
  GraphRecords& records_;
  json::Checks& check_;
  IdVec<NameId, OpId> ops_{};                        // by word; invalid: not looked up yet
  std::vector<std::pair<NameId, OpId>> imported_{};  // ops that the text declares unknown
  std::size_t imported_read_ = 0;                    // those that are in ops_
};

/// Builder of the node of each record, as any other front end builds it. Caches types, places, and
/// the types inferred for an op, attributes and operand types: regular graphs repeat them.
class RecordBuilder {
 public:
  RecordBuilder(Graph& graph, GraphRecords& records, NamedOps& ops, Definitions& definitions,
                json::Checks& check)
      : context_(graph.context()),
        graph_(graph),
        records_(records),
        ops_(ops),
        definitions_(definitions),
        check_(check) {}

  void build(const NodeRecord& record, const json::Pointer& pointer);
  /// Returns the type that a word spells; nothing after reporting an error.
  std::optional<TypeId> type(NameId spelt, const json::Pointer& pointer);

 private:
  /// Types inferred for this op, attributes and operand types.
  struct Known {
    OpId op;
    AttributesId given;
    std::size_t wanted = 0;  // results
    std::vector<TypeId> operands;
    AttributesId attributes;
    std::vector<TypeId> types;
  };

  void poison(const NodeRecord& record);
  NodeId add_known(const NodeRecord& record, OpId op, const Known& known);
  Result<NodeId> add_new(const NodeRecord& record, OpId op, const json::Pointer& pointer);
  void remember(const NodeRecord& record, NodeId node, std::uint64_t hash);
  void check_results(const NodeRecord& record, NodeId node, const json::Pointer& pointer);
  TextId place_text(NameId spelt);

  Context& context_;
  Graph& graph_;
  GraphRecords& records_;
  NamedOps& ops_;
  Definitions& definitions_;
  json::Checks& check_;
  IdVec<NameId, TypeId> types_{};        // by word; invalid: not parsed yet
  IdVec<NameId, TextId> place_texts_{};  // by word
  std::vector<Known> known_{};
  HashIndex known_index_{};
  // Data of the current node.
  std::vector<ValueId> operand_values_{};
  std::vector<TypeId> operand_types_{};
  std::vector<ValueNameId> result_names_{};
};

}  // namespace pw
