// The dataflow graph: structure of arrays, 32-bit ids that rise and are never reused, doubly linked
// uses, and an order list that is always topological. An undo journal keeps an inverse record or
// two for each mutation, however many users it affects; undoing restores the order of every list of
// uses. Dead nodes keep their data until drop_dead_operands(). Designed for a million nodes: 36
// bytes a node, 16 a value, 12 an operand. Every mutation costs only what it touches.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/block_list.hpp"
#include "base/trivial_array.hpp"
#include "graph/contents.hpp"
#include "graph/context.hpp"
#include "graph/storage/node_order.hpp"
#include "graph/storage/provenances.hpp"

namespace pw {

using ValueId = Id<struct ValueTag>;
/// A node and one of its operand slots in one number (see Graph::use_of).
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

/// Above the size of other classes for a reason: its packed records share bits between types, uses,
/// outputs and names, so each mutation updates several of them at once and journals one inverse.
/// Most methods are accessors of one line, inlined into every pass. What has its own invariants is
/// in NodeOrder, Provenances and ValueNames.
class Graph {
 public:
  explicit Graph(ContextPtr context, std::string name = "graph");
  // Defined in graph.cpp: each source file that copies a graph would instantiate them otherwise.
  Graph(const Graph&);
  Graph(Graph&&) noexcept;
  Graph& operator=(const Graph&);
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

  std::string name;
  Facts facts;
  /// Contents of weights, if the file that the graph was read from holds them; shared by copies of
  /// the graph, and not part of its texts.
  std::shared_ptr<const InputContents> contents;

  [[nodiscard]] Context& context() const { return *context_; }
  [[nodiscard]] const ContextPtr& context_ptr() const { return context_; }

  // ---- building
  ValueId add_input(std::string_view name, TypeId type, InputKind kind);
  /// Adds a node at the insertion point (by default the end).
  NodeId add_node(const NodeSpec& spec);
  /// Adds a complete node on the fast path. Group and source are those of `like`; results get names
  /// on the first query.
  NodeId add_node(OpId op, std::span<const ValueId> operands, AttributesId attributes,
                  std::span<const TypeId> results, NodeId like);
  // Fast path for a reader of a million nodes, which has checked them. Names are ids of the
  // context's value_names and unique (see trust_names), or absent.
  void expect(std::size_t nodes, std::size_t values, std::size_t operands);
  ValueId add_input(ValueNameId name, TypeId type, InputKind kind);
  NodeId add_node(OpId op, std::span<const ValueId> operands, AttributesId attributes,
                  std::span<const TypeId> results, std::span<const ValueNameId> names,
                  std::uint32_t place);
  /// Returns the id of a group and source, for add_node.
  [[nodiscard]] std::uint32_t place_of(TextId group, TextId source) {
    return provenance(group, source);
  }
  /// Gives the node a name other than that of its first result.
  void give_name(NodeId n, std::string_view name);
  void add_output(ValueId value);
  /// Declares `value` as the final contents of `input`, and makes it the last output. Nothing is
  /// written in place: the caller copies it back.
  void add_write(ValueId input, ValueId value);
  /// Sets the insertion point to directly before this node; an invalid id means the end.
  void insert_before(NodeId node) { insertion_ = node; }
  [[nodiscard]] NodeId insertion_point() const { return insertion_; }
  /// Marks a place in the order for a walk during changes: before this node. If the node is moved
  /// or erased, before the node that followed it. Not undone by rollback.
  void set_mark(NodeId node) { mark_ = node; }
  [[nodiscard]] NodeId mark() const { return mark_; }
  /// Returns `base` if it is free, else base_1, base_2, …
  std::string fresh_name(std::string_view base);
  /// While set, names are known to be unique and are not compared with each other.
  void trust_names(bool trust);
  /// Releases memory that only building needs; called after loading.
  void settle();

  // ---- reading
  [[nodiscard]] std::size_t node_bound() const {
    return nodes_.size() - 1;
  }  ///< ids ever made, dead ones too
  [[nodiscard]] std::size_t value_bound() const { return values_.size(); }
  [[nodiscard]] std::size_t node_count() const { return order_.size(); }
  [[nodiscard]] std::size_t node_count(OpId op) const {
    return op.index < live_of_.size() ? live_of_[op.index] : 0;
  }
  [[nodiscard]] bool alive(NodeId n) const { return (nodes_[n].marks & kDead) == 0; }
  [[nodiscard]] NodeId first() const { return order_.first(); }
  [[nodiscard]] NodeId last() const { return order_.last(); }
  [[nodiscard]] NodeId next(NodeId n) const { return order_.next(n); }
  [[nodiscard]] NodeId previous(NodeId n) const { return order_.previous(n); }
  /// Returns the label, which rises along the order list. Changes when the list is relabelled or
  /// the node is moved.
  [[nodiscard]] std::uint64_t label(NodeId n) const { return order_.label(n); }
  /// Returns how often a part of the list was relabelled; older labels may then be stale. Moving a
  /// node changes its label without counting here.
  [[nodiscard]] std::uint64_t renumberings() const { return order_.renumberings(); }
  /// Returns a counter that rises with every mutation and every undo. Results derived at the
  /// current edition still hold.
  [[nodiscard]] std::uint64_t edition() const { return edition_; }
  /// Returns all live nodes in order, as a snapshot.
  [[nodiscard]] std::vector<NodeId> order() const;

  [[nodiscard]] OpId op(NodeId n) const { return nodes_[n].op; }
  [[nodiscard]] const Op& op_of(NodeId n) const { return context_->ops[nodes_[n].op]; }
  [[nodiscard]] AttributesId attributes(NodeId n) const { return nodes_[n].attributes; }
  [[nodiscard]] const Attribute* attribute(NodeId n, std::string_view name) const;
  /// Returns the node's own name, or that of its first result.
  [[nodiscard]] std::string_view node_name(NodeId n) const;
  [[nodiscard]] std::string_view group(NodeId n) const {
    return text_of(provenances_[nodes_[n].marks & kProvenance].group);
  }
  [[nodiscard]] std::string_view source(NodeId n) const {
    return text_of(provenances_[nodes_[n].marks & kProvenance].source);
  }
  [[nodiscard]] std::size_t operand_count(NodeId n) const {
    return nodes_[NodeId(n.index + 1)].first_operand - nodes_[n].first_operand;
  }
  [[nodiscard]] ValueId operand(NodeId n, std::size_t i) const {
    return uses_[nodes_[n].first_operand + i].value;
  }
  [[nodiscard]] std::vector<ValueId> operands(NodeId n) const;
  [[nodiscard]] std::size_t result_count(NodeId n) const {
    const std::uint32_t count = (nodes_[n].marks >> kCountShift) & kMany;
    return count < kMany ? count : many_results(n);
  }
  [[nodiscard]] ValueId result(NodeId n, std::size_t i = 0) const {
    return ValueId(nodes_[n].first_result + i);
  }

  [[nodiscard]] TypeId type(ValueId v) const {
    const std::uint32_t type = values_[v].marks & kType;
    return type != kType ? TypeId(type) : wide_type(v);
  }
  /// Returns the name. An unnamed value is called by its op and id, `rms_norm__17`: stable, and
  /// distinct from the name of any other value.
  [[nodiscard]] std::string_view value_name(ValueId v) const;
  [[nodiscard]] bool named(ValueId v) const { return values_[v].name.valid(); }
  [[nodiscard]] ValueId find_value(
      std::string_view name) const;  ///< linear over values; for tools and tests
  [[nodiscard]] bool is_input(ValueId v) const { return values_[v].producer.index >= kInput; }
  [[nodiscard]] InputKind input_kind(ValueId v) const {
    return static_cast<InputKind>((values_[v].marks >> kKindShift) & 3);
  }
  /// Returns the groups of ranks over which an input is declared replicated, sorted.
  [[nodiscard]] const std::vector<std::string>& replicated_over(ValueId input) const;
  /// Returns the producer; invalid for an input.
  [[nodiscard]] NodeId producer(ValueId v) const {
    const NodeId producer = values_[v].producer;
    return producer.index < kInput ? producer : NodeId();
  }
  [[nodiscard]] std::size_t result_index(ValueId v) const {
    return v.index - nodes_[producer(v)].first_result;
  }
  /// Returns the number of operand slots that read the value, without graph outputs.
  [[nodiscard]] std::size_t use_count(ValueId v) const {
    const std::uint32_t count = values_[v].marks >> kUseShift;
    return count < kManyUses ? count : many_uses(v);
  }
  [[nodiscard]] bool is_output(ValueId v) const { return (values_[v].marks & kOutput) != 0; }
  /// Returns how many of the graph's outputs are this value.
  [[nodiscard]] std::size_t output_count(ValueId v) const;
  [[nodiscard]] bool unused(ValueId v) const { return use_count(v) == 0 && !is_output(v); }
  [[nodiscard]] UseId first_use(ValueId v) const { return values_[v].first_use; }
  [[nodiscard]] UseId next_use(UseId u) const { return at(u).next; }
  [[nodiscard]] NodeId user(UseId u) const {
    return (u.index & kWideUse) == 0 ? NodeId(std::size_t{u.index >> kSlotBits})
                                     : wide_uses_[u.index & ~kWideUse].user;
  }
  [[nodiscard]] std::size_t use_operand(UseId u) const {
    return (u.index & kWideUse) == 0 ? u.index & (kSlots - 1)
                                     : wide_uses_[u.index & ~kWideUse].slot;
  }
  /// Returns the distinct nodes that read the value, in order.
  [[nodiscard]] std::vector<NodeId> users(ValueId v) const;
  [[nodiscard]] const std::vector<ValueId>& inputs() const { return inputs_; }
  /// Returns the graph's results, then the final contents of written_inputs().
  [[nodiscard]] const std::vector<ValueId>& outputs() const { return outputs_; }
  [[nodiscard]] const std::vector<ValueId>& written_inputs() const { return written_inputs_; }
  [[nodiscard]] std::size_t returned_count() const {
    return outputs_.size() - written_inputs_.size();
  }

  // ---- mutation (each is undone by rollback)
  void set_operand(NodeId n, std::size_t i, ValueId v);
  void set_attributes(NodeId n, AttributesId attributes);
  void set_type(ValueId v, TypeId type);
  void set_op(NodeId n, OpId op);
  void set_output(std::size_t i, ValueId v);
  void set_group(NodeId n, std::string_view group);
  void rename(ValueId v, std::string_view name);
  /// Moves the name of `from` to `to`. Does nothing if `from` is unnamed.
  void take_name(ValueId to, ValueId from);
  /// Sets the kind of an input; not undone by rollback.
  void set_input_kind(ValueId v, InputKind kind);
  /// Declares that all ranks of the group hold the same contents of this input; not undone by
  /// rollback.
  void declare_replicated(ValueId input, std::string_view over);
  /// Makes all operand slots and graph outputs that read `from` read `to`.
  void replace_uses(ValueId from, ValueId to);
  /// Erases a node, which must have no users and produce no output.
  void erase(NodeId n);
  void move_before(NodeId n, NodeId position);  ///< an invalid position is the end
  /// Sets the insertion point so that a new node can read `reads` and be read by the users of
  /// `writes`. Moves users that are too early. Returns false if a path leads from a user of
  /// `writes` (outside `ignoring`) to a producer of `reads`.
  bool make_room(std::span<const ValueId> reads, std::span<const ValueId> writes,
                 std::span<const NodeId> ignoring);
  /// Erases nodes without users and without `effect`, transitively; returns the number erased.
  std::size_t erase_dead();
  /// Releases the memory of dead nodes' operands, if it is worth the copying; these nodes then have
  /// no operands. Does nothing while an undo journal may restore them.
  void drop_dead_operands();

  // ---- undo
  using Checkpoint = std::size_t;
  void start_undo() { recording_ = true; }
  void stop_undo();  ///< and forgets
  [[nodiscard]] Checkpoint checkpoint() const { return undo_.size(); }
  void rollback(Checkpoint to);
  void forget_undo() { undo_.clear(); }

  /// Results of is_replicated() at one edition, by group and value, so that a pass that queries
  /// every node walks the graph once.
  struct Replication {
    std::uint64_t edition = 0;
    std::unordered_map<std::string, std::vector<std::uint8_t>> known;
  };
  [[nodiscard]] Replication& replication() const { return replication_; }

  /// Returns a copy without dead nodes: ids renumbered in order, every value with its current name,
  /// undo journal empty.
  [[nodiscard]] Graph compact() const;
  /// Returns the bytes in use of the arrays and side tables.
  [[nodiscard]] std::size_t bytes() const;

 private:
  // Bits of Node::marks: dead, the number of results (kMany: see many_results_), and an index into
  // provenances_.
  static constexpr std::uint32_t kDead = 1u << 31;
  static constexpr unsigned kCountShift = 28;
  static constexpr std::uint32_t kMany = 7;
  static constexpr std::uint32_t kProvenance = (1u << kCountShift) - 1;
  // Bits of Value::marks: type (kType: see wide_types_), graph output, kind of input, and the
  // number of uses (kManyUses: see many_uses_).
  static constexpr unsigned kKindShift = 21, kUseShift = 23;
  static constexpr std::uint32_t kType = (1u << 20) - 1, kOutput = 1u << 20;
  static constexpr std::uint32_t kManyUses = (1u << (32 - kUseShift)) - 1;
  // Values of Value::producer from here on mark an input. The distance to kNone is the number of
  // the set of groups that it is replicated over (kManySets: see more_replicated_).
  static constexpr std::uint32_t kInput = 0xffffff00u, kManySets = 0xff;
  // Bits of UseId: node and slot, or, with the top bit set, an index into wide_uses_.
  static constexpr unsigned kSlotBits = 4;
  static constexpr std::uint32_t kSlots = 1u << kSlotBits, kWideUse = 1u << 31;

  /// Record of a node. The last one is a sentinel: it holds the beginning of the next node's
  /// operands.
  struct Node {
    OpId op;
    AttributesId attributes;
    std::uint32_t first_operand = 0;
    std::uint32_t first_result = 0;
    std::uint32_t marks = 0;
  };
  struct Value {
    NodeId producer;
    ValueNameId name;
    UseId first_use;
    std::uint32_t marks = 0;
  };
  struct Use {
    ValueId value;
    UseId previous, next;
  };
  struct WideUse {
    NodeId user;
    std::uint32_t slot = 0;
  };
  struct [[gnu::packed]] Undo {  // a journal holds millions
    enum class Kind : std::uint8_t {
      added,
      erased,
      behind,  // of the operand that follows: a use, and its predecessor
      operand,
      last,  // of the uses that follow: the last one, and how many
      uses,  // all of a value, and the value that got them
      attributes,
      type,
      op,
      output,
      provenance,
      name,
      moved
    } kind;
    std::uint32_t subject;
    std::uint32_t old;
  };
  static_assert(sizeof(Node) == 20 && sizeof(Value) == 16 && sizeof(Use) == 12 &&
                sizeof(Undo) == 9);

  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept {
      return std::hash<std::string_view>{}(text);
    }
  };
  using NameSet = std::unordered_set<std::string, TextHash, std::equal_to<>>;
  using NameCounters = std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>>;

  void record(Undo::Kind kind, std::uint32_t subject, std::uint32_t old) {
    ++edition_;
    if (recording_) undo_.push_back({kind, subject, old});
  }
  // ---- building
  ValueId push_input(ValueNameId name, TypeId type, InputKind kind);
  NodeId push_node(OpId op, AttributesId attributes, std::size_t results, std::uint32_t provenance);
  void push_operands(NodeId n, std::span<const ValueId> operands);
  std::uint32_t provenance(TextId group, TextId source);
  void set_provenance(NodeId n, std::uint32_t provenance) {
    nodes_[n].marks = (nodes_[n].marks & ~kProvenance) | provenance;
  }
  ValueId push_value(NodeId producer, TypeId type, ValueNameId name);
  void put_type(ValueId v, TypeId type);
  void put_op(NodeId n, OpId op);
  [[nodiscard]] std::uint32_t& live_of(OpId op) {
    if (live_of_.size() <= op.index) live_of_.resize(op.index + 1);
    return live_of_[op.index];
  }
  // ---- uses
  [[nodiscard]] UseId use_of(NodeId n, std::size_t slot) const {
    return slot < kSlots ? UseId((n.index << kSlotBits) | slot) : wide_use_of(n, slot);
  }
  [[nodiscard]] UseId wide_use_of(NodeId n, std::size_t slot) const;
  [[nodiscard]] Use& at(UseId u) { return uses_[nodes_[user(u)].first_operand + use_operand(u)]; }
  [[nodiscard]] const Use& at(UseId u) const {
    return uses_[nodes_[user(u)].first_operand + use_operand(u)];
  }
  // Overflow of marks: kept out of line, so that the rest is inlined.
  [[nodiscard, gnu::cold]] std::size_t many_results(NodeId n) const;
  [[nodiscard, gnu::cold]] std::size_t many_uses(ValueId v) const;
  [[nodiscard, gnu::cold]] TypeId wide_type(ValueId v) const;
  void set_use_count(ValueId v, std::size_t count);
  void count_use(ValueId v) {
    std::uint32_t& marks = values_[v].marks;
    if (marks >> kUseShift < kManyUses - 1)
      marks += 1u << kUseShift;
    else
      set_use_count(v, use_count(v) + 1);
  }
  void discount_use(ValueId v) {
    std::uint32_t& marks = values_[v].marks;
    if (marks >> kUseShift < kManyUses)
      marks -= 1u << kUseShift;
    else
      set_use_count(v, use_count(v) - 1);
  }
  void link_use(UseId u, ValueId v);
  void unlink_use(UseId u);
  void relink_use(UseId u);
  void undo_operand(UseId u, ValueId old);
  void undo_uses(ValueId from, ValueId to);
  [[nodiscard]] std::vector<std::size_t> output_slots(ValueId v);
  void push_output(ValueId v);
  void mark_output(ValueId v);
  void unmark_output(ValueId v);
  // ---- the order list
  void link_node(NodeId n, NodeId before);
  void unlink_node(NodeId n);
  void move(NodeId n, NodeId before);
  void place_insertion(NodeId last_read, NodeId first_user, std::span<const NodeId> ignoring);
  template <class Ignored>
  bool move_early_users(std::span<const ValueId> reads, std::span<const ValueId> writes,
                        NodeId last_read, const Ignored& ignored);
  void detach(NodeId n);
  void attach(NodeId n, NodeId before);
  // ---- names
  ValueNameId claim(std::string_view name);
  void reserve_given(ValueNameId name);
  void set_name(ValueId v, ValueNameId name);
  void know_names();
  void forget_names();
  void hold_name(ValueId v);
  void release_name(ValueId v);
  [[nodiscard]] bool is_taken(std::string_view name) const;
  void reserve(std::string_view name);
  [[nodiscard]] std::size_t reserved(std::uint32_t number) const;
  [[nodiscard]] std::string unnamed(ValueId v) const;
  [[nodiscard]] TextId text_id(std::string_view text);
  [[nodiscard]] std::string_view text_of(TextId id) const;

  ContextPtr context_;
  IdVec<NodeId, Node> nodes_;
  NodeOrder order_;
  IdVec<ValueId, Value> values_;
  TrivialArray<Use> uses_;          // by Node::first_operand and slot
  std::vector<WideUse> wide_uses_;  // of slots from kSlots on
  std::size_t dead_operands_ = 0;   // of uses_
  std::vector<ValueId> inputs_, outputs_, written_inputs_;
  Provenances provenances_;
  std::unordered_map<std::uint32_t, std::uint32_t> many_results_;  // by node
  std::unordered_map<std::uint32_t, std::uint32_t> first_wide_;    // by node, in wide_uses_
  std::unordered_map<std::uint32_t, std::uint32_t> many_uses_;     // by value
  std::unordered_map<std::uint32_t, TypeId> wide_types_;           // by value
  std::unordered_map<std::uint32_t, std::uint32_t> more_outputs_;  // by value: times, but the first
  std::unordered_multimap<std::uint32_t, std::uint32_t> slots_of_outputs_;  // see output_slots()
  std::unordered_map<std::uint32_t, ValueNameId> node_names_;               // those that differ

  bool trusting_ = false, names_known_ = false;
  NameSet names_;               // those of live values, while they are known; looked up only
  NameCounters name_counters_;  // last number tried, by base name
  std::unordered_map<std::uint32_t, std::uint32_t> reserved_;  // see graph_names.cpp

  NodeId insertion_, mark_;
  std::vector<std::uint32_t> live_of_;  // by op
  std::uint64_t edition_ = 0;
  std::vector<std::vector<std::string>> replicated_{{}};  // sets of groups; the first is empty
  std::map<ValueId, std::vector<std::string>> more_replicated_;
  mutable Replication replication_;
  bool recording_ = false;
  BlockList<Undo> undo_;
};

}  // namespace pw
