// Lowers a graph to a row program by demand: to store an element of a result, the element of its
// value is requested at an index. Layout ops rewrite the index, pointwise ops request elements of
// their operands, and reductions open a loop. A computation is placed in the outermost scope that
// has its index variables, and is reused there for an equal index; this is loop-invariant code
// motion and common subexpression elimination in one pass. A loop that must be cut to make an index
// known restarts the lowering (Recut).
//
// Invariant: a statement is placed where all its variables are defined and every branch condition
// that its addresses need holds. Cost: linear in the emitted statements (at most kMaxNodes) for
// each attempt; the number of restarts is bounded.
#include "codegen/rowprogram/lowering.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace pw::rows {
namespace {

constexpr std::size_t kMaxNodes = 1024;  // limits the recursion
constexpr std::size_t kMaxStatements = 20000;
constexpr int kMaxCuts = 64;
constexpr std::uint64_t kMaxAddress = 1000;  // maximum operators of one address

bool is_reduction(const Graph& graph, NodeId node) {
  return class_of(graph.op_of(node).primitive) == PrimitiveClass::reduction;
}

}  // namespace

Lowering::Lowering(const Graph& graph, bool checks)
    : graph_(graph), context_(graph.context()), tokens_(graph.facts.tokens()), checks_(checks) {}

/// Cuts loops one at a time. If a cut makes the program worse, the loop stays whole.
RowProgram Lowering::run() {
  if (graph_.outputs().empty()) refuse("it has no results");
  if (graph_.node_count() > kMaxNodes)
    refuse(fmt::format("its body has more than {} primitives", kMaxNodes));
  for (const auto& values : {graph_.inputs(), graph_.outputs()}) {
    for (ValueId v : values) {
      if (graph_.type(v) == Types::unknown()) refuse("the type of an operand or result is unknown");
    }
  }
  for (int cuts = 0; cuts < kMaxCuts; ++cuts) {
    try {
      return attempt();
    } catch (const Recut&) {
    } catch (const Opaque&) {
      if (cuts == 0) throw;
      break;
    }
  }
  cutting_ = false;
  return attempt();
}

RowProgram Lowering::attempt() {
  program_ = {};
  program_.context = graph_.context_ptr();
  program_.op = graph_.name;
  set_arguments();
  slot_vars_ = {};
  valid_ = {};
  cut_of_.clear();
  checked_.clear();
  statements_ = 0;
  set_domain();
  scopes_.clear();
  scopes_.push_back(std::make_unique<Scope>());
  scopes_.back()->vars = {program_.row};
  store_results();
  program_.body = std::move(scopes_.back()->block);
  return std::move(program_);
}

void Lowering::set_arguments() {
  for (ValueId v : graph_.inputs()) program_.arguments.push_back({graph_.type(v), false});
  for (NodeId n = graph_.first(); n.valid() && !program_.valid; n = graph_.next(n)) {
    if (!is_reduction(graph_, n)) continue;
    const Shape& s = shape(graph_.operand(n, 0));
    if (!context_.dims.rising(s[axis(n, "dim", s.size())], tokens_, graph_.facts)) continue;
    program_.valid = program_.arguments.size();
    program_.arguments.push_back({context_.types.get(DType::i32, {}), false});
  }
  for (ValueId v : graph_.outputs()) program_.arguments.push_back({graph_.type(v), true});
}

/// Returns the number of leading dims common to all results, except the last dim (over which a row
/// runs) and reduced dims. Results of rank 1 have one row for each element, unless they are reduced
/// themselves.
std::size_t Lowering::domain_rank() const {
  const Shape& first = shape(graph_.outputs().front());
  std::size_t rank = first.size(), widest = 0;
  for (ValueId v : graph_.outputs()) {
    const Shape& s = shape(v);
    widest = std::max(widest, s.size());
    rank = std::min<std::size_t>(
        rank,
        static_cast<std::size_t>(
            std::mismatch(first.begin(), first.end(), s.begin(), s.end()).first - first.begin()));
  }
  for (NodeId n = graph_.first(); n.valid(); n = graph_.next(n)) {
    if (!is_reduction(graph_, n)) continue;
    const Shape& s = shape(graph_.operand(n, 0));
    const std::size_t reduced = axis(n, "dim", s.size());
    const bool along =
        s.size() > rank ? std::equal(first.begin(),
                                     first.begin() + static_cast<std::ptrdiff_t>(rank), s.begin())
                        : true;
    if (along && reduced < s.size()) rank = std::min(rank, reduced);
  }
  if (widest > 1) rank = std::min(rank, widest - 1);
  return rank;
}

void Lowering::set_domain() {
  const Shape& first = shape(graph_.outputs().front());
  program_.domain.assign(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(domain_rank()));
  DimId rows = context_.dims.constant(1);
  for (DimId d : program_.domain) {
    if (rows.valid()) rows = context_.dims.mul(rows, d);
  }
  if (!rows.valid()) refuse("the number of rows exceeds 64 bits");
  program_.params = {rows};
  program_.row = program_.indices.variable(extent(rows));
  IndexId rest = program_.indices.use(program_.row);
  row_at_.assign(program_.domain.size(), {});
  for (std::size_t i = program_.domain.size(); i-- > 0;) {
    const IndexId size = extent(program_.domain[i]);
    row_at_[i] = i == 0 ? rest : program_.indices.mod(rest, size);
    rest = program_.indices.div(rest, size);
  }
}

std::size_t Lowering::scope_of(const std::vector<VarId>& vars) const {
  for (std::size_t i = scopes_.size(); i-- > 1;) {
    for (VarId v : scopes_[i]->vars) {
      if (std::binary_search(vars.begin(), vars.end(), v)) return i;
    }
  }
  return 0;
}

SlotId Lowering::emit(Statement statement, DType dtype, const std::vector<VarId>& vars) {
  if (++statements_ > kMaxStatements)
    refuse(fmt::format("its row program has more than {} statements", kMaxStatements));
  statement.slot = program_.slots.push_back(dtype);
  slot_vars_.push_back(vars);
  const SlotId slot = statement.slot;
  scopes_[scope_of(vars)]->block.push_back(std::move(statement));
  return slot;
}

IndexId Lowering::extent(DimId dim) {
  if (!dim.valid()) refuse("a dim exceeds 64 bits");
  if (const auto value = context_.dims.value(dim)) return program_.indices.constant(*value);
  const std::int64_t low = context_.dims.bounds(dim, graph_.facts).min.value_or(0);
  auto found = std::find(program_.params.begin(), program_.params.end(), dim);
  if (found == program_.params.end()) found = program_.params.insert(found, dim);
  return program_.indices.param(ParamId(static_cast<std::size_t>(found - program_.params.begin())),
                                low);
}

IndexId Lowering::linear(const Shape& shape, const Position& at) {
  IndexId offset = program_.indices.constant(0);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    offset = program_.indices.add(program_.indices.mul(offset, extent(shape[i])), at[i]);
  }
  if (program_.indices.size(offset) > kMaxAddress)
    refuse("its layout needs addresses that are too long");
  return offset;
}

std::size_t Lowering::axis(NodeId node, std::string_view name, std::size_t rank) const {
  const Attribute* attribute = graph_.attribute(node, name);
  const auto* value = attribute ? std::get_if<std::int64_t>(attribute) : nullptr;
  if (!value) refuse(fmt::format("op {} does not name an axis", graph_.op_of(node).name));
  const std::int64_t a = *value < 0 ? *value + static_cast<std::int64_t>(rank) : *value;
  if (a < 0 || a >= static_cast<std::int64_t>(rank))
    refuse(
        fmt::format("op {} names an axis that its operand does not have", graph_.op_of(node).name));
  return static_cast<std::size_t>(a);
}

std::vector<VarId> Lowering::vars_of(const Position& at) const {
  std::vector<VarId> vars;
  for (IndexId i : at) vars = union_of(vars, program_.indices.vars(i));
  return vars;
}

tl::expected<RowProgram, Opaque> lower(const Graph& meaning, bool checks) {
  try {
    return Lowering(meaning, checks).run();
  } catch (Opaque& opaque) {
    return tl::unexpected<Opaque>(std::move(opaque));
  }
}

}  // namespace pw::rows
