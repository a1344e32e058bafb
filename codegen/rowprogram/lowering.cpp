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
#include <algorithm>

#include <fmt/format.h>

#include "codegen/rowprogram/result_loops.hpp"

namespace pw::rows {
namespace {

constexpr std::size_t kMaxNodes = 1024;  // limits the recursion
constexpr int kMaxCuts = 64;

bool is_reduction(const Graph& graph, NodeId node) {
  return class_of(graph.op_of(node).primitive) == PrimitiveClass::reduction;
}

/// Sets the arguments, parameters and rows of a program.
class RowDomain {
 public:
  RowDomain(const Graph& graph, Addresses& addresses, RowProgram& program)
      : graph_(graph),
        context_(graph.context()),
        tokens_(graph.facts.tokens()),
        addresses_(addresses),
        program_(program) {}

  void set_arguments() {
    for (ValueId v : graph_.inputs()) program_.arguments.push_back({graph_.type(v), false});
    for (NodeId n = graph_.first(); n.valid() && !program_.valid; n = graph_.next(n)) {
      if (!is_reduction(graph_, n)) continue;
      const Shape& s = addresses_.shape(graph_.operand(n, 0));
      if (!context_.dims.rising(s[addresses_.axis(n, "dim", s.size())], tokens_, graph_.facts))
        continue;
      program_.valid = program_.arguments.size();
      program_.arguments.push_back({context_.types.get(DType::i32, {}), false});
    }
    for (ValueId v : graph_.outputs()) program_.arguments.push_back({graph_.type(v), true});
  }

  /// Returns the coordinates of the row.
  Position set_domain() {
    const Shape& first = addresses_.shape(graph_.outputs().front());
    program_.domain.assign(first.begin(),
                           first.begin() + static_cast<std::ptrdiff_t>(domain_rank()));
    DimId rows = context_.dims.constant(1);
    for (DimId d : program_.domain) {
      if (rows.valid()) rows = context_.dims.mul(rows, d);
    }
    if (!rows.valid()) throw Opaque{"the number of rows exceeds 64 bits"};
    program_.params = {rows};
    program_.row = program_.indices.variable(addresses_.extent(rows));
    IndexId rest = program_.indices.use(program_.row);
    Position at(program_.domain.size());
    for (std::size_t i = program_.domain.size(); i-- > 0;) {
      const IndexId size = addresses_.extent(program_.domain[i]);
      at[i] = i == 0 ? rest : program_.indices.mod(rest, size);
      rest = program_.indices.div(rest, size);
    }
    return at;
  }

 private:
  /// Returns the number of leading dims common to all results, except the last dim (over which a
  /// row runs) and reduced dims. Results of rank 1 have one row for each element, unless they are
  /// reduced themselves.
  [[nodiscard]] std::size_t domain_rank() const {
    const Shape& first = addresses_.shape(graph_.outputs().front());
    std::size_t rank = first.size(), widest = 0;
    for (ValueId v : graph_.outputs()) {
      const Shape& s = addresses_.shape(v);
      widest = std::max(widest, s.size());
      rank = std::min<std::size_t>(
          rank,
          static_cast<std::size_t>(
              std::mismatch(first.begin(), first.end(), s.begin(), s.end()).first - first.begin()));
    }
    for (NodeId n = graph_.first(); n.valid(); n = graph_.next(n)) {
      if (!is_reduction(graph_, n)) continue;
      const Shape& s = addresses_.shape(graph_.operand(n, 0));
      const std::size_t reduced = addresses_.axis(n, "dim", s.size());
      const bool along =
          s.size() > rank ? std::equal(first.begin(),
                                       first.begin() + static_cast<std::ptrdiff_t>(rank), s.begin())
                          : true;
      if (along && reduced < s.size()) rank = std::min(rank, reduced);
    }
    if (widest > 1) rank = std::min(rank, widest - 1);
    return rank;
  }

  const Graph& graph_;
  Context& context_;
  const std::string tokens_;
  Addresses& addresses_;
  RowProgram& program_;
};

void check_limits(const Graph& graph) {
  if (graph.outputs().empty()) throw Opaque{"it has no results"};
  if (graph.node_count() > kMaxNodes)
    throw Opaque{fmt::format("its body has more than {} primitives", kMaxNodes)};
  for (const auto& values : {graph.inputs(), graph.outputs()}) {
    for (ValueId v : values) {
      if (graph.type(v) == Types::unknown())
        throw Opaque{"the type of an operand or result is unknown"};
    }
  }
}

/// Throws Opaque, or Recut if a new cut was added to the groups.
RowProgram attempt(const Graph& graph, std::vector<ResultGroup>& groups, bool cutting,
                   bool checks) {
  RowProgram program;
  program.context = graph.context_ptr();
  program.op = graph.name;
  Addresses addresses(graph, program);
  RowDomain domain(graph, addresses, program);
  domain.set_arguments();
  const Position row = domain.set_domain();
  Scopes scopes(program, program.row);
  LoopCuts cuts(program, cutting);
  ElementLowering elements(graph, program, addresses, scopes, cuts, checks);
  ResultLoops(graph, program, addresses, scopes, cuts, elements).store(groups, row);
  program.body = std::move(scopes.innermost().block);
  return program;
}

/// Cuts loops one at a time. If a cut makes the program worse, the loops stay whole.
RowProgram attempts(const Graph& graph, bool checks) {
  check_limits(graph);
  std::vector<ResultGroup> groups = group_results(graph);
  for (int cuts = 0; cuts < kMaxCuts; ++cuts) {
    try {
      return attempt(graph, groups, true, checks);
    } catch (const LoopCuts::Recut&) {
    } catch (const Opaque&) {
      if (cuts == 0) throw;
      break;
    }
  }
  return attempt(graph, groups, false, checks);
}

}  // namespace

tl::expected<RowProgram, Opaque> lower(const Graph& meaning, bool checks) {
  try {
    return attempts(meaning, checks);
  } catch (Opaque& opaque) {
    return tl::unexpected<Opaque>(std::move(opaque));
  }
}

}  // namespace pw::rows
