// One walk assigns each node to a piece, a new one wherever splitting and other ops
// meet. Pieces that only allocate join an earlier one; a pure piece between two splitting pieces
// that does not depend on the first moves before it, and the two splitting pieces become one. Then
// each piece is built as a graph, and the graph that calls them. Linear in nodes and def-use edges.
//
// A `constant` node is a literal and belongs to no piece by position: each piece that reads it has
// its own copy.
#include <algorithm>
#include <map>

#include "base/assert.hpp"
#include "splitter/piece_class.hpp"
#include "splitter/splitter.hpp"

namespace pw {
namespace {

constexpr std::uint32_t kNoPiece = PieceId::kNone;

struct Draft {
  bool splitting = false;
  std::vector<NodeId> nodes;
};

bool is_constant(const Graph& graph, NodeId n) {
  return graph.operand_count(n) == 0 && graph.op_of(n).is_literal();
}

bool is_allocation(const Graph& graph, NodeId n) {
  return graph.op_of(n).primitive == Primitive::empty;
}

/// Returns true if the node may move to any place where its operands exist.
bool is_pure(const Graph& graph, NodeId n) {
  const Op& op = graph.op_of(n);
  return !op.traits.effect && !op.traits.collective &&
         std::none_of(op.operands.begin(), op.operands.end(),
                      [](const OperandDecl& d) { return d.mut || d.out; });
}

class Splitter {
 public:
  Splitter(const Graph& graph, const std::vector<OpId>& splitting) : graph_(graph) {
    cuts_.resize(graph.context().ops.size());
    for (const OpId op : splitting) cuts_[op.index] = true;
    piece_of_.assign(graph.node_bound(), kNoPiece);
  }

  std::vector<Draft> run() {
    walk();
    merge_allocations();
    advance();
    drop_empty();
    add_constants();
    return std::move(drafts_);
  }

 private:
  void walk() {
    for (NodeId n = graph_.first(); n.valid(); n = graph_.next(n)) {
      if (is_constant(graph_, n)) continue;
      const bool cut = cuts_[graph_.op(n).index];
      if (drafts_.empty() || drafts_.back().splitting != cut) drafts_.push_back({cut, {}});
      piece_of_[n.index] = static_cast<std::uint32_t>(drafts_.size() - 1);
      drafts_.back().nodes.push_back(n);
    }
  }

  /// A capturable piece that only allocates would be a captured graph that does nothing.
  void merge_allocations() {
    for (std::uint32_t i = 1; i < drafts_.size(); ++i) {
      Draft& draft = drafts_[i];
      if (draft.splitting || draft.nodes.size() != 1) continue;
      const NodeId n = draft.nodes.front();
      if (!is_allocation(graph_, n)) continue;
      const std::uint32_t target = previous_capturable(i);
      if (target == kNoPiece || !defined_by(n, target)) continue;
      piece_of_[n.index] = target;
      drafts_[target].nodes.push_back(n);
      draft.nodes.clear();
    }
  }

  /// Moves nodes between two splitting pieces that do not depend on the first before it, which
  /// joins the two pieces. An example is the scale of attention between the cache update and the
  /// attention.
  void advance() {
    std::uint32_t target = kNoPiece, before = kNoPiece;  // the last of each kind that is not empty
    for (std::uint32_t i = 0; i < drafts_.size(); ++i) {
      Draft& draft = drafts_[i];
      if (draft.nodes.empty()) continue;
      const bool between = !draft.splitting && target != kNoPiece && before != kNoPiece &&
                           i + 1 < drafts_.size() && drafts_[i + 1].splitting;
      if (between && before > target && waits_for_nothing(draft, i, target)) {
        move(i, target);
        move(i + 1, before);
      } else {
        (draft.splitting ? before : target) = i;
      }
    }
  }

  void move(std::uint32_t from, std::uint32_t to) {
    for (const NodeId n : drafts_[from].nodes) piece_of_[n.index] = to;
    drafts_[to].nodes.insert(drafts_[to].nodes.end(), drafts_[from].nodes.begin(),
                             drafts_[from].nodes.end());
    drafts_[from].nodes.clear();
  }

  bool waits_for_nothing(const Draft& draft, std::uint32_t own, std::uint32_t target) const {
    return std::all_of(draft.nodes.begin(), draft.nodes.end(),
                       [&](NodeId n) { return is_pure(graph_, n) && defined_by(n, target, own); });
  }

  std::uint32_t previous_capturable(std::uint32_t i) const {
    while (i-- > 0)
      if (!drafts_[i].splitting && !drafts_[i].nodes.empty()) return i;
    return kNoPiece;
  }

  /// Returns true if all operands of `n` exist after piece `target`, or come from piece `own`.
  bool defined_by(NodeId n, std::uint32_t target, std::uint32_t own = kNoPiece) const {
    for (const ValueId v : graph_.operands(n)) {
      if (!v.valid() || graph_.is_input(v) || is_constant(graph_, graph_.producer(v))) continue;
      const std::uint32_t piece = piece_of_[graph_.producer(v).index];
      if (piece > target && piece != own) return false;
    }
    return true;
  }

  void drop_empty() {
    std::erase_if(drafts_, [](const Draft& draft) { return draft.nodes.empty(); });
  }

  /// Puts each literal before its first reader in every piece that reads it, and returned ones in
  /// the last piece.
  void add_constants() {
    for (Draft& draft : drafts_) {
      std::vector<NodeId> nodes;
      std::vector<NodeId> literals;
      nodes.reserve(draft.nodes.size());
      for (const NodeId n : draft.nodes) {
        for (const ValueId v : graph_.operands(n)) {
          if (!v.valid() || graph_.is_input(v)) continue;
          const NodeId literal = graph_.producer(v);
          if (!is_constant(graph_, literal)) continue;
          literals.push_back(literal);
        }
      }
      std::sort(literals.begin(), literals.end());
      literals.erase(std::unique(literals.begin(), literals.end()), literals.end());
      if (literals.empty()) continue;
      std::merge(draft.nodes.begin(), draft.nodes.end(), literals.begin(), literals.end(),
                 std::back_inserter(nodes),
                 [&](NodeId a, NodeId b) { return graph_.label(a) < graph_.label(b); });
      draft.nodes = std::move(nodes);
    }
    for (const ValueId v : graph_.outputs()) {
      if (graph_.is_input(v) || !is_constant(graph_, graph_.producer(v))) continue;
      const NodeId literal = graph_.producer(v);
      if (drafts_.empty()) drafts_.push_back({});
      std::vector<NodeId>& nodes = drafts_.back().nodes;
      if (std::find(nodes.begin(), nodes.end(), literal) == nodes.end())
        nodes.insert(nodes.begin(), literal);
    }
  }

  const Graph& graph_;
  std::vector<bool> cuts_;
  std::vector<std::uint32_t> piece_of_;
  std::vector<Draft> drafts_;
};

/// Makes pieces of drafts. `stamp_` holds the last piece that met each value, so that each piece
/// costs only its own size.
class Stitcher {
 public:
  Stitcher(const Graph& graph, StitchedGraph& out) : graph_(graph), out_(out) {
    home_.assign(graph.value_bound(), kNoPiece);
    stamp_.assign(graph.value_bound(), kNoPiece);
    crosses_.assign(graph.value_bound(), false);
    local_.resize(graph.value_bound());
  }

  void run(std::vector<Draft> drafts) {
    for (std::uint32_t i = 0; i < drafts.size(); ++i) {
      Piece piece{
          "piece_" + std::to_string(i), drafts[i].splitting, std::move(drafts[i].nodes), {}, {}, {},
          Graph(graph_.context_ptr())};
      find_inputs(piece, i);
      out_.pieces.push_back(std::move(piece));
    }
    mark_returned();
    for (std::uint32_t i = 0; i < out_.pieces.size(); ++i) {
      find_outputs(out_.pieces[PieceId(i)], i);
      build(out_.pieces[PieceId(i)]);
    }
  }

 private:
  void find_inputs(Piece& piece, std::uint32_t i) {
    for (const NodeId n : piece.nodes) {
      for (const ValueId v : graph_.operands(n)) {
        if (!v.valid() || home_[v.index] == i || stamp_[v.index] == i) continue;
        stamp_[v.index] = i;
        crosses_[v.index] = true;
        piece.inputs.push_back(v);
      }
      for (std::size_t r = 0; r < graph_.result_count(n); ++r) home_[graph_.result(n, r).index] = i;
    }
  }

  void mark_returned() {
    for (const ValueId v : graph_.outputs()) crosses_[v.index] = true;
  }

  /// A literal is copied into its readers, so only the last of its homes can return it.
  void find_outputs(Piece& piece, std::uint32_t i) const {
    for (const NodeId n : piece.nodes)
      for (std::size_t r = 0; r < graph_.result_count(n); ++r) {
        const ValueId v = graph_.result(n, r);
        if (crosses_[v.index] && home_[v.index] == i) piece.outputs.push_back(v);
      }
  }

  void build(Piece& piece) {
    piece.graph = Graph(graph_.context_ptr(), piece.name);
    piece.graph.facts = graph_.facts;
    for (const ValueId v : piece.inputs) {
      const InputKind kind = graph_.is_input(v) ? graph_.input_kind(v) : InputKind::input;
      local_[v.index] = piece.graph.add_input(graph_.value_name(v), graph_.type(v), kind);
    }
    for (const NodeId n : piece.nodes) copy(piece.graph, n);
    for (const ValueId v : piece.outputs) piece.graph.add_output(local_[v.index]);
  }

  void copy(Graph& to, NodeId n) {
    NodeSpec spec{graph_.op(n),
                  {},
                  graph_.attributes(n),
                  {},
                  std::string(graph_.node_name(n)),
                  std::string(graph_.group(n)),
                  std::string(graph_.source(n))};
    for (const ValueId v : graph_.operands(n))
      spec.operands.push_back(v.valid() ? local_[v.index] : ValueId());
    for (std::size_t r = 0; r < graph_.result_count(n); ++r) {
      const ValueId v = graph_.result(n, r);
      spec.results.push_back({graph_.type(v), std::string(graph_.value_name(v))});
    }
    const NodeId made = to.add_node(spec);
    for (std::size_t r = 0; r < graph_.result_count(n); ++r)
      local_[graph_.result(n, r).index] = to.result(made, r);
  }

  const Graph& graph_;
  StitchedGraph& out_;
  std::vector<std::uint32_t> home_, stamp_;
  std::vector<bool> crosses_;
  std::vector<ValueId> local_;
};

/// Declares an op with any operands and results. All splits of a context share the ops piece_0,
/// piece_1, …; a name of another op is skipped.
OpId declare_piece_op(OpTable& ops, const std::string& name) {
  for (int suffix = 0;; ++suffix) {
    Op op;
    op.name = suffix == 0 ? name : name + "_" + std::to_string(suffix);
    op.imported = true;
    op.traits.effect = true;
    const OpId known = ops.find(op.name);
    if (known.valid() && !(ops[known].imported && ops[known].operands.empty() &&
                           ops[known].attributes.empty() && ops[known].traits.effect))
      continue;
    if (known.valid()) return known;
    auto id = ops.declare(std::move(op));
    PW_ASSERT(id.has_value(), "a free op name could not be declared");
    return *id;
  }
}

void stitch(const Graph& graph, StitchedGraph& out) {
  out.stitch.name = graph.name;
  out.stitch.facts = graph.facts;
  std::vector<ValueId> local(graph.value_bound());
  for (const ValueId v : graph.inputs()) {
    local[v.index] = out.stitch.add_input(graph.value_name(v), graph.type(v), graph.input_kind(v));
    for (const std::string& over : graph.replicated_over(v))
      out.stitch.declare_replicated(local[v.index], over);
  }
  for (const Piece& piece : out.pieces) {
    NodeSpec spec;
    spec.op = declare_piece_op(graph.context().ops, piece.name);
    spec.name = piece.name;
    for (const ValueId v : piece.inputs) spec.operands.push_back(local[v.index]);
    for (const ValueId v : piece.outputs)
      spec.results.push_back({graph.type(v), std::string(graph.value_name(v))});
    const NodeId n = out.stitch.add_node(spec);
    for (std::size_t r = 0; r < piece.outputs.size(); ++r)
      local[piece.outputs[r].index] = out.stitch.result(n, r);
  }
  for (std::size_t i = 0; i < graph.returned_count(); ++i)
    out.stitch.add_output(local[graph.outputs()[i].index]);
  for (std::size_t i = 0; i < graph.written_inputs().size(); ++i)
    out.stitch.add_write(local[graph.written_inputs()[i].index],
                         local[graph.outputs()[graph.returned_count() + i].index]);
}

/// The first op without a kernel of each piece that does not split, or that must not be captured:
/// a graph that is not cut has both in its only piece.
void find_host_ops(const Graph& graph, StitchedGraph& out, const SplitOptions& options) {
  const OpTable& ops = graph.context().ops;
  std::vector<bool> lacks(ops.size());
  for (std::size_t i = 0; i < lacks.size(); ++i) {
    const Op& op = ops[OpId(i)];
    const bool barred = op.traits.splitting && op.traits.capturable != Capturable::always;
    lacks[i] =
        barred || (!op.has_body() && !(options.has_kernel ? options.has_kernel(op) : !op.imported));
  }
  for (Piece& piece : out.pieces) {
    if (piece.splitting) continue;
    const auto found = std::find_if(piece.nodes.begin(), piece.nodes.end(),
                                    [&](NodeId n) { return lacks[graph.op(n).index]; });
    if (found != piece.nodes.end()) piece.host_op = graph.op_of(*found).name;
  }
}

}  // namespace

Result<StitchedGraph> split(const Graph& graph, const std::vector<OpId>& splitting,
                            const SplitOptions& options) {
  StitchedGraph out{Graph(graph.context_ptr(), graph.name), {}, {}};
  Stitcher(graph, out).run(Splitter(graph, splitting).run());
  find_host_ops(graph, out, options);
  stitch(graph, out);
  fold_pieces(out, options.fold);
  return out;
}

}  // namespace pw
