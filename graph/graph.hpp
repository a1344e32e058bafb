// The dataflow graph: structure of arrays, 32-bit ids that rise and are never reused, doubly linked
// uses, an order list that is always topological, and an undo journal with one inverse record a
// mutation. Dead nodes keep their data.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graph/context.hpp"

namespace pw {

using NodeId = Id<struct NodeTag>;
using ValueId = Id<struct ValueTag>;
using UseId = Id<struct UseTag>;

enum class InputKind : std::uint8_t { input, weight, buffer };
[[nodiscard]] std::string_view name(InputKind kind);

struct ResultSpec {
  TypeId type;
  std::string name;  ///< empty: a fresh one
};

struct NodeSpec {
  OpId op;
  std::vector<ValueId> operands;  ///< an invalid id is an absent operand
  AttributesId attributes = Attributes::empty();
  std::vector<ResultSpec> results;
  std::string name;    ///< empty: the first result's
  std::string group;   ///< "layers.0.mlp"
  std::string source;  ///< "model.py:88"
};

class Graph {
 public:
  explicit Graph(ContextPtr context, std::string name = "graph");

  std::string name;
  Facts facts;

  [[nodiscard]] Context& context() const { return *context_; }
  [[nodiscard]] const ContextPtr& context_ptr() const { return context_; }

  // ---- building
  ValueId add_input(std::string_view name, TypeId type, InputKind kind);
  /// At the insertion point (the end unless set).
  NodeId add_node(const NodeSpec& spec);
  void add_output(ValueId value);
  /// New nodes go directly before this node; an invalid id means the end.
  void insert_before(NodeId node) { insertion_ = node; }
  [[nodiscard]] NodeId insertion_point() const { return insertion_; }
  /// `base` if it is free, else base_1, base_2, …
  std::string fresh_name(std::string_view base);

  // ---- reading
  [[nodiscard]] std::size_t node_bound() const {
    return nodes_.size();
  }  ///< ids ever made, dead ones too
  [[nodiscard]] std::size_t value_bound() const { return values_.size(); }
  [[nodiscard]] std::size_t node_count() const { return live_; }
  [[nodiscard]] bool alive(NodeId n) const { return nodes_[n].alive; }
  [[nodiscard]] NodeId first() const { return head_; }
  [[nodiscard]] NodeId last() const { return tail_; }
  [[nodiscard]] NodeId next(NodeId n) const { return nodes_[n].next; }
  [[nodiscard]] NodeId previous(NodeId n) const { return nodes_[n].previous; }
  /// Rises along the order list; changes when the list is renumbered.
  [[nodiscard]] std::uint64_t label(NodeId n) const { return nodes_[n].label; }
  /// How often the whole list was renumbered; labels kept from before are stale when it changed.
  [[nodiscard]] std::uint64_t renumberings() const { return renumberings_; }
  /// Rises with every mutation, an undone one too: what was derived at the same edition still
  /// holds.
  [[nodiscard]] std::uint64_t edition() const { return edition_; }
  /// All live nodes in order; a snapshot.
  [[nodiscard]] std::vector<NodeId> order() const;

  [[nodiscard]] OpId op(NodeId n) const { return nodes_[n].op; }
  [[nodiscard]] const Op& op_of(NodeId n) const { return context_->ops[nodes_[n].op]; }
  [[nodiscard]] AttributesId attributes(NodeId n) const { return nodes_[n].attributes; }
  [[nodiscard]] const Attribute* attribute(NodeId n, std::string_view name) const;
  [[nodiscard]] std::string_view node_name(NodeId n) const {
    return context_->strings.text(nodes_[n].name);
  }
  [[nodiscard]] std::string_view group(NodeId n) const { return text_or_empty(nodes_[n].group); }
  [[nodiscard]] std::string_view source(NodeId n) const { return text_or_empty(nodes_[n].source); }
  [[nodiscard]] std::size_t operand_count(NodeId n) const { return nodes_[n].operand_count; }
  [[nodiscard]] ValueId operand(NodeId n, std::size_t i) const {
    return uses_[UseId(nodes_[n].first_operand + i)].value;
  }
  [[nodiscard]] std::vector<ValueId> operands(NodeId n) const;
  [[nodiscard]] std::size_t result_count(NodeId n) const { return nodes_[n].result_count; }
  [[nodiscard]] ValueId result(NodeId n, std::size_t i = 0) const {
    return ValueId(nodes_[n].first_result + i);
  }

  [[nodiscard]] TypeId type(ValueId v) const { return values_[v].type; }
  [[nodiscard]] std::string_view value_name(ValueId v) const {
    return context_->strings.text(values_[v].name);
  }
  [[nodiscard]] ValueId find_value(
      std::string_view name) const;  ///< linear over values; for tools and tests
  [[nodiscard]] bool is_input(ValueId v) const { return !values_[v].producer.valid(); }
  [[nodiscard]] InputKind input_kind(ValueId v) const { return values_[v].kind; }
  /// The groups of ranks over which an input is declared to be replicated, sorted.
  [[nodiscard]] const std::vector<std::string>& replicated_over(ValueId input) const;
  [[nodiscard]] NodeId producer(ValueId v) const {
    return values_[v].producer;
  }  ///< invalid for an input
  [[nodiscard]] std::size_t result_index(ValueId v) const {
    return v.index - nodes_[producer(v)].first_result;
  }
  /// Operand slots that read it; graph outputs are counted apart.
  [[nodiscard]] std::size_t use_count(ValueId v) const { return values_[v].use_count; }
  [[nodiscard]] std::size_t output_count(ValueId v) const { return values_[v].output_count; }
  [[nodiscard]] bool unused(ValueId v) const { return use_count(v) == 0 && output_count(v) == 0; }
  [[nodiscard]] UseId first_use(ValueId v) const { return values_[v].first_use; }
  [[nodiscard]] UseId next_use(UseId u) const { return uses_[u].next; }
  [[nodiscard]] NodeId user(UseId u) const { return uses_[u].user; }
  [[nodiscard]] std::size_t use_operand(UseId u) const {
    return u.index - nodes_[user(u)].first_operand;
  }
  /// The distinct nodes that read it, in order.
  [[nodiscard]] std::vector<NodeId> users(ValueId v) const;
  [[nodiscard]] const std::vector<ValueId>& inputs() const { return inputs_; }
  [[nodiscard]] const std::vector<ValueId>& outputs() const { return outputs_; }

  // ---- mutation (each is undone by rollback)
  void set_operand(NodeId n, std::size_t i, ValueId v);
  void set_attributes(NodeId n, AttributesId attributes);
  void set_type(ValueId v, TypeId type);
  void set_op(NodeId n, OpId op);
  void set_output(std::size_t i, ValueId v);
  void set_group(NodeId n, std::string_view group);
  void rename(ValueId v, std::string_view name);
  /// Of an input; not undone by rollback.
  void set_input_kind(ValueId v, InputKind kind) { values_[v].kind = kind; }
  /// Declares that all ranks of the group hold the same in this input; not undone by rollback.
  void declare_replicated(ValueId input, std::string_view over);
  /// All operand slots and graph outputs that read `from` read `to`.
  void replace_uses(ValueId from, ValueId to);
  /// The node must have no users and produce no output.
  void erase(NodeId n);
  void move_before(NodeId n, NodeId position);  ///< an invalid position is the end
  /// Sets the insertion point so that nodes reading `reads` can be inserted and be read by the
  /// users of `writes`; moves the users that stand too early. False if a path leads from a user of
  /// `writes` (outside `ignoring`) to a producer of `reads`.
  bool make_room(std::span<const ValueId> reads, std::span<const ValueId> writes,
                 std::span<const NodeId> ignoring);
  /// Erases nodes without users and without `effect`, transitively; returns how many.
  std::size_t erase_dead();

  // ---- undo
  using Checkpoint = std::size_t;
  void start_undo() { recording_ = true; }
  [[nodiscard]] Checkpoint checkpoint() const { return undo_.size(); }
  void rollback(Checkpoint to);
  void forget_undo() { undo_.clear(); }

  /// What is_replicated() found out at one edition, by group and value; kept here so that a pass
  /// that asks at every node walks the graph once.
  struct Replication {
    std::uint64_t edition = 0;
    std::unordered_map<std::string, std::vector<std::uint8_t>> known;
  };
  [[nodiscard]] Replication& replication() const { return replication_; }

  /// A copy with the dead left out: ids renumbered in order; undo journal empty.
  [[nodiscard]] Graph compact() const;
  /// Resident bytes of the arrays.
  [[nodiscard]] std::size_t bytes() const;

 private:
  struct Node {
    OpId op;
    AttributesId attributes;
    std::uint32_t first_operand = 0, operand_count = 0;
    std::uint32_t first_result = 0, result_count = 0;
    NodeId previous, next;
    std::uint64_t label = 0;
    NameId name, group, source;
    bool alive = true;
  };
  struct Value {
    NodeId producer;
    TypeId type;
    NameId name;
    UseId first_use;
    std::uint32_t use_count = 0;
    std::uint32_t output_count = 0;
    InputKind kind = InputKind::input;
  };
  struct Use {
    ValueId value;
    UseId previous, next;
    NodeId user;
  };
  struct Undo {
    enum class Kind : std::uint8_t {
      added,
      erased,
      operand,
      attributes,
      type,
      op,
      output,
      group,
      rename,
      moved
    } kind;
    std::uint32_t subject;
    std::uint32_t index;
    std::uint32_t old;
  };
  void record(Undo::Kind kind, std::uint32_t subject, std::uint32_t index, std::uint32_t old);
  void link_use(UseId u, ValueId v);
  void unlink_use(UseId u);
  void link_node(NodeId n, NodeId before);
  void unlink_node(NodeId n);
  void relabel();
  void detach(NodeId n);
  void attach(NodeId n, NodeId before);
  NameId claim(std::string_view name);
  [[nodiscard]] std::string_view text_or_empty(NameId id) const {
    return id.valid() ? context_->strings.text(id) : std::string_view();
  }

  ContextPtr context_;
  IdVec<NodeId, Node> nodes_;
  IdVec<ValueId, Value> values_;
  IdVec<UseId, Use> uses_;
  std::vector<ValueId> inputs_, outputs_;
  std::unordered_set<std::uint32_t> names_;  // taken names, by NameId; looked up only
  std::unordered_map<std::uint32_t, std::uint32_t>
      name_counters_;  // last number tried, by base name
  NodeId head_, tail_, insertion_;
  std::size_t live_ = 0;
  std::uint64_t renumberings_ = 0;
  std::uint64_t edition_ = 0;
  std::map<ValueId, std::vector<std::string>> replicated_;
  mutable Replication replication_;
  bool recording_ = false;
  std::vector<Undo> undo_;
};

}  // namespace pw
