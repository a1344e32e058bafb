// Plans the arena: liveness analysis on the linear schedule (all pieces' nodes or launches in
// sequence), then interval placement (offsets.cpp).
//
// * A value inside a piece is alive from its node to its last reader. A value that crosses pieces
//   is alive for each whole piece from its producer's to its last reader's, since a captured piece
//   may write it at any time.
// * A view that keeps its operand's bytes shares the storage of its root, and so does an in-place
//   result whose operand has no later reader. The root is alive as long as any of them.
// * Literals and values that alias an input have no slot. The workspace of library calls is one
//   interval around all calls.
//
// Invariant: two values alive at one position have disjoint bytes, unless they share a root. Cost:
// linear in def-use edges, apart from the placement of intervals.
#include <algorithm>

#include "base/assert.hpp"
#include "base/try.hpp"
#include "graph/infer/symbol_fact.hpp"
#include "graph/ops/product.hpp"
#include "graph/passes/view.hpp"
#include "splitter/offsets.hpp"
#include "splitter/plan.hpp"

namespace pw {
namespace {

struct Sizer {
  const Graph& graph;
  std::map<std::string, std::int64_t, std::less<>> symbols;

  [[nodiscard]] tl::unexpected<Diagnostics> refuse(ValueId v, const std::string& reason) const {
    return fail(error_in("value " + std::string(graph.value_name(v)), "PW0711",
                         "has no size in bytes: " + reason,
                         "bound the dim, or state the type of the value"));
  }

  [[nodiscard]] tl::unexpected<Diagnostics> untyped(ValueId v) const {
    const std::string reader =
        graph.use_count(v) == 0
            ? "the graph returns it"
            : "op " + graph.op_of(graph.user(graph.first_use(v))).name + " reads it";
    const std::string help = graph.is_input(v)
                                 ? "state the type of the input"
                                 : "declare op " + graph.op_of(graph.producer(v)).name +
                                       " with the types of its results in a .pwr file";
    return fail(error_in("value " + std::string(graph.value_name(v)), "PW0711",
                         "has no size in bytes: its type is not known, and " + reader, help));
  }

  [[nodiscard]] Result<std::int64_t> bytes(ValueId v) const {
    const Context& context = graph.context();
    if (graph.type(v) == Types::unknown()) return untyped(v);
    const Type& type = context.types[graph.type(v)];
    std::int64_t total = size_of(type.dtype);
    for (const DimId dim : type.shape) {
      const auto extent = context.dims.evaluate(dim, symbols);
      if (!extent) return refuse(v, "dim " + context.dims.print(dim) + " has no value");
      if (*extent < 0) return refuse(v, "dim " + context.dims.print(dim) + " is negative");
      if (__builtin_mul_overflow(total, *extent, &total))
        return refuse(v, "it is larger than 2^63 bytes");
    }
    if (total > (std::int64_t{1} << 56)) return refuse(v, "it is larger than 2^56 bytes");
    return total;
  }
};

class Planner {
 public:
  /// Plans nodes; without schedules each node is a launch.
  Planner(const StitchedGraph& stitched, const Graph& graph, Sizer sizer,
          std::vector<PieceSchedule> schedules, std::int64_t workspace_bytes)
      : stitched_(stitched),
        graph_(graph),
        sizer_(std::move(sizer)),
        schedules_(std::move(schedules)) {
    plan_.workspace_bytes = workspace_bytes;
    slot_of_.assign(graph.value_bound(), kNone);
  }

  Result<MemoryPlan> run() {
    for (std::size_t i = 0; i < stitched_.pieces.size(); ++i)
      PW_TRY(schedules_.empty() ? add_piece(i) : add_schedule(i));
    keep_returned();
    merge_storage();
    place();
    PW_TRY(count_inputs());
    sort_by_value();
    return std::move(plan_);
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  Status add_piece(std::size_t step) {
    const Piece& piece = stitched_.pieces[PieceId(step)];
    const std::size_t begin = position_;
    for (const NodeId n : piece.nodes) {
      for (const ValueId v : graph_.operands(n))
        if (v.valid()) extend(v, step, position_);
      for (std::size_t r = 0; r < graph_.result_count(n); ++r)
        if (auto done = add_slot(n, r, step); !done) return done;
      note_call(piece, n, position_, position_);
      ++position_;
    }
    const std::size_t end = position_ == begin ? begin : position_ - 1;
    for (const ValueId v : piece.outputs) make_crossing(v, begin);
    for (const ValueId v : piece.inputs) extend(v, step, end);
    return {};
  }

  /// Adds a scheduled piece: only crossing values have slots, alive for whole pieces.
  Status add_schedule(std::size_t step) {
    const Piece& piece = stitched_.pieces[PieceId(step)];
    const std::size_t begin = position_;
    position_ += std::max<std::size_t>(schedules_[step].launches, 1);
    for (const ValueId v : piece.outputs) {
      const NodeId n = graph_.producer(v);
      if (auto done = add_slot(n, graph_.result_index(v), step); !done) return done;
      make_crossing(v, begin);
    }
    for (const ValueId v : piece.inputs) extend(v, step, position_ - 1);
    for (const NodeId n : piece.nodes) note_call(piece, n, begin, position_ - 1);
    std::vector<Scratch>& scratch = schedules_[step].scratch;
    for (Scratch& s : scratch) {
      intervals_.push_back({begin + s.first, begin + s.last, align(s.bytes)});
      scratch_.push_back(&s);
    }
    return {};
  }

  /// Records positions at which the node may call a library, which then uses the workspace.
  void note_call(const Piece& piece, NodeId n, std::size_t first, std::size_t last) {
    if (!piece.capturable() || !product_of(graph_.op_of(n))) return;
    first_call_ = std::min(first_call_, first);
    last_call_ = std::max(last_call_, last);
  }

  Status add_slot(NodeId n, std::size_t r, std::size_t step) {
    const ValueId v = graph_.result(n, r);
    if (graph_.op_of(n).is_literal() || nothing(v)) return {};
    auto bytes = PW_TRY(sizer_.bytes(v));
    Slot slot;
    slot.value = v;
    slot.name = graph_.value_name(v);
    slot.storage = storage(n, r, v);
    slot.first = slot.last = step;
    slot.begin = slot.end = position_;
    slot.bytes = bytes;
    slot_of_[v.index] = plan_.slots.size();
    plan_.slots.push_back(std::move(slot));
    return {};
  }

  /// Returns true for an untyped value that nothing reads, and for an input that is not a tensor:
  /// neither is stored.
  [[nodiscard]] bool nothing(ValueId v) const {
    return graph_.type(v) == Types::unknown() && (graph_.unused(v) || graph_.is_input(v));
  }

  /// Returns the storage of a result. A plain view, or a result written into an operand, has that
  /// operand's storage, as does any view of a weight, which is read in place or laid out once.
  /// Inputs are outside the arena, and so are their views.
  [[nodiscard]] ValueId storage(NodeId n, std::size_t r, ValueId v) const {
    const Op& op = graph_.op_of(n);
    if (op.traits.view && graph_.operand_count(n) > 0) {
      const ValueId root = storage_of(graph_.operand(n, 0));
      if (root.valid() && graph_.is_input(root) && graph_.input_kind(root) == InputKind::weight)
        return root;
    }
    int from = -1;
    // A kernel of several ops may read the old value after writing the new one.
    if (schedules_.empty() && r < op.results.size() && op.results[r].from &&
        reads_last(n, static_cast<std::size_t>(*op.results[r].from)))
      from = *op.results[r].from;
    if (r == 0 && keeps_bytes(graph_, n)) from = 0;
    if (from < 0 || static_cast<std::size_t>(from) >= graph_.operand_count(n)) return v;
    const ValueId root = storage_of(graph_.operand(n, static_cast<std::size_t>(from)));
    return root.valid() ? root : v;
  }

  /// Returns true if the node is the only later reader of an operand's storage, so that it may
  /// overwrite it: a value keeps its contents while it has readers.
  [[nodiscard]] bool reads_last(NodeId n, std::size_t operand) const {
    if (operand >= graph_.operand_count(n)) return false;
    ValueId v = graph_.operand(n, operand);
    while (v.valid() && !graph_.is_input(v)) {
      if (graph_.use_count(v) != 1 || graph_.is_output(v)) return false;
      if (storage_of(v) == v) return true;
      const NodeId maker = graph_.producer(v);
      const std::vector<ResultDecl>& results = graph_.op_of(maker).results;
      const std::size_t r = graph_.result_index(v);
      const bool from = r < results.size() && results[r].from;
      v = graph_.operand(maker, from ? static_cast<std::size_t>(*results[r].from) : 0);
    }
    return true;
  }

  /// Returns the storage of a value; invalid for an absent operand and for a literal.
  [[nodiscard]] ValueId storage_of(ValueId v) const {
    if (!v.valid() || graph_.is_input(v)) return v;
    const std::size_t slot = slot_of_[v.index];
    return slot == kNone ? ValueId() : plan_.slots[slot].storage;
  }

  void extend(ValueId v, std::size_t step, std::size_t position) {
    if (slot_of_[v.index] == kNone) return;
    Slot& slot = plan_.slots[slot_of_[v.index]];
    slot.last = std::max(slot.last, step);
    slot.end = std::max(slot.end, position);
  }

  /// Extends the lifetime to whole pieces from the producer's on, because that piece may write the
  /// value at any time.
  void make_crossing(ValueId v, std::size_t begin) {
    if (slot_of_[v.index] == kNone) return;
    Slot& slot = plan_.slots[slot_of_[v.index]];
    slot.crossing = true;
    slot.begin = begin;
    slot.end = std::max(slot.end, position_ - 1);
  }

  void keep_returned() {
    if (position_ == 0) return;
    for (const ValueId v : graph_.outputs()) extend(v, stitched_.pieces.size() - 1, position_ - 1);
  }

  /// Merges the lifetimes of values that share storage.
  void merge_storage() {
    for (Slot& slot : plan_.slots) {
      if (slot.storage == slot.value || graph_.is_input(slot.storage)) continue;
      Slot& root = plan_.slots[slot_of_[slot.storage.index]];
      root.begin = std::min(root.begin, slot.begin);
      root.end = std::max(root.end, slot.end);
      root.first = std::min(root.first, slot.first);
      root.last = std::max(root.last, slot.last);
      root.bytes = std::max(root.bytes, slot.bytes);
      root.crossing = root.crossing || slot.crossing;
    }
  }

  void place() {
    std::vector<Lifetime> intervals = intervals_, crossing;
    std::vector<std::size_t> owner;
    for (std::size_t i = 0; i < plan_.slots.size(); ++i) {
      const Slot& slot = plan_.slots[i];
      if (slot.storage != slot.value) continue;
      intervals.push_back({slot.begin, slot.end, align(slot.bytes)});
      if (slot.crossing) crossing.push_back(intervals.back());
      owner.push_back(i);
    }
    // One place for all calls: a library handle has one workspace, and calls are sequential.
    if (first_call_ == kNone) plan_.workspace_bytes = 0;
    if (plan_.workspace_bytes > 0)
      intervals.push_back({first_call_, last_call_, align(plan_.workspace_bytes)});
    const Placement placement = place_intervals(intervals);
    if (plan_.workspace_bytes > 0) plan_.workspace_offset = placement.offsets.back();
    for (std::size_t i = 0; i < scratch_.size(); ++i) scratch_[i]->offset = placement.offsets[i];
    for (std::size_t i = 0; i < owner.size(); ++i)
      plan_.slots[owner[i]].offset = placement.offsets[scratch_.size() + i];
    for (PieceSchedule& schedule : schedules_) plan_.scratch.push_back(std::move(schedule.scratch));
    plan_.arena_bytes = placement.total;
    plan_.live_bytes = peak(intervals);
    plan_.crossing_bytes = peak(crossing);
    for (Slot& slot : plan_.slots) {
      if (slot.storage == slot.value || graph_.is_input(slot.storage)) continue;
      const Slot& root = plan_.slots[slot_of_[slot.storage.index]];
      slot.offset = root.offset;
      slot.begin = root.begin;
      slot.end = root.end;
    }
  }

  Status count_inputs() {
    for (const ValueId v : graph_.inputs()) {
      if (nothing(v)) continue;
      auto bytes = PW_TRY(sizer_.bytes(v));
      switch (graph_.input_kind(v)) {
        case InputKind::input: plan_.input_bytes += bytes; break;
        case InputKind::weight: plan_.weight_bytes += bytes; break;
        case InputKind::buffer: plan_.buffer_bytes += bytes; break;
      }
    }
    return {};
  }

  void sort_by_value() {
    // Values that alias an input have no place in the arena.
    std::erase_if(plan_.slots, [&](const Slot& slot) { return graph_.is_input(slot.storage); });
    std::sort(plan_.slots.begin(), plan_.slots.end(),
              [](const Slot& a, const Slot& b) { return a.value < b.value; });
  }

  const StitchedGraph& stitched_;
  const Graph& graph_;
  Sizer sizer_;
  MemoryPlan plan_;
  std::vector<PieceSchedule> schedules_;
  std::vector<Lifetime> intervals_;  // for scratch_
  std::vector<Scratch*> scratch_;
  std::vector<std::size_t> slot_of_;
  std::size_t position_ = 0;
  std::size_t first_call_ = kNone, last_call_ = 0;  // library calls in captured pieces
};

}  // namespace

Result<MemoryPlan> plan_memory(const StitchedGraph& pieces, const Graph& source,
                               std::int64_t max_tokens, std::vector<PieceSchedule> schedules,
                               std::int64_t workspace_bytes) {
  Sizer sizer{source, {}};
  const std::string tokens = source.facts.tokens();
  for (const auto& [symbol, fact] : source.facts.symbols)
    sizer.symbols.emplace(symbol, symbol == tokens ? max_tokens : greatest_value(fact));
  return Planner(pieces, source, std::move(sizer), std::move(schedules), workspace_bytes).run();
}

}  // namespace pw
