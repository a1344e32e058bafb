// Loops over results. Results of one shape share their loops, and adjacent loops of equal extent
// are fused. A loop is cut at a bound if that decides inside it which operand is read, and tiled if
// a reduction covers a group of its columns. Invariant: loops only store, so a loop may move after
// later statements; each element of a result is stored exactly once.
#include <algorithm>

#include "codegen/rowprogram/result_loops.hpp"

namespace pw::rows {

std::vector<ResultGroup> group_results(const Graph& graph) {
  std::vector<ResultGroup> groups;
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    const Shape& shape = graph.context().types[graph.type(graph.outputs()[i])].shape;
    const auto same = std::find_if(groups.begin(), groups.end(),
                                   [&](const ResultGroup& g) { return g.shape == shape; });
    if (same == groups.end())
      groups.push_back({shape, {i}, std::vector<Cut>(shape.size())});
    else
      same->outputs.push_back(i);
  }
  return groups;
}

void ResultLoops::store(std::vector<ResultGroup>& groups, const Position& row) {
  for (ResultGroup& group : groups) {
    Position at = row;
    store(group, at);
  }
}

void ResultLoops::store(ResultGroup& group, Position& at) {
  const std::size_t dim = at.size();
  if (dim < group.shape.size()) {
    const auto deeper = [&](IndexId place) {
      at.push_back(place);
      store(group, at);
      at.pop_back();
    };
    if (addresses_.is_one(group.shape[dim])) return deeper(program_.indices.constant(0));
    return looped(group.cuts[dim], addresses_.extent(group.shape[dim]),
                  program_.indices.constant(0), deeper);
  }
  for (std::size_t i : group.outputs) {
    Statement statement;
    statement.kind = Statement::Kind::store;
    statement.argument = program_.arguments.size() - graph_.outputs().size() + i;
    statement.operands = {elements_.element(graph_.outputs()[i], at)};
    statement.index = addresses_.linear(group.shape, at);
    scopes_.innermost().block.push_back(std::move(statement));
  }
}

template <class Body>
void ResultLoops::looped(Cut& cut, IndexId extent, IndexId offset, const Body& body) {
  Indices& indices = program_.indices;
  const std::int64_t size = indices.interval(extent).high;
  if (cuts_.cutting() && cut.at != 0) {
    looped(*cut.first, indices.constant(cut.at), offset, body);
    looped(*cut.second, indices.constant(size - cut.at),
           indices.add(offset, indices.constant(cut.at)), body);
  } else if (cuts_.cutting() && cut.tile != 0) {
    in_loop(nullptr, indices.constant(size / cut.tile), [&](IndexId group) {
      const IndexId start = indices.mul(group, indices.constant(cut.tile));
      looped(*cut.first, indices.constant(cut.tile), indices.add(offset, start), body);
    });
  } else {
    in_loop(&cut, extent, [&](IndexId i) { body(indices.add(offset, i)); });
  }
}

/// Removes the loop of this extent from the innermost scope, with its body, or makes a new one.
std::unique_ptr<Scope> ResultLoops::reopened(IndexId extent, Statement& loop) {
  Scope& parent = scopes_.innermost();
  const auto found = std::find_if(parent.loops.begin(), parent.loops.end(), [&](const auto& other) {
    return program_.indices.extent(other.first) == extent;
  });
  if (found == parent.loops.end()) {
    loop.var = program_.indices.variable(extent);
    auto scope = std::make_unique<Scope>();
    scope->vars = {loop.var};
    return scope;
  }
  loop.var = found->first;
  std::unique_ptr<Scope> scope = std::move(found->second);
  parent.loops.erase(found);
  const auto old = std::find_if(parent.block.begin(), parent.block.end(), [&](const Statement& s) {
    return s.kind == Statement::Kind::loop && s.var == loop.var;
  });
  scope->block = std::move(old->first);
  parent.block.erase(old);
  return scope;
}

/// Reopens an existing loop of the same extent in this scope, so that shared computations run once.
/// Loops only store, so it may move after what was placed later. A loop without passes is omitted,
/// because emitters assume that a loop of known extent has a first pass.
template <class Body>
void ResultLoops::in_loop(Cut* cut, IndexId extent, const Body& body) {
  const Interval passes = program_.indices.interval(extent);
  if (passes.high <= 0) return;
  Scope& parent = scopes_.innermost();
  Statement loop;
  loop.kind = Statement::Kind::loop;
  scopes_.push(reopened(extent, loop));
  if (cut && passes.low == passes.high) cuts_.open(loop.var, *cut);
  body(program_.indices.use(loop.var));
  cuts_.close(loop.var);
  std::unique_ptr<Scope> scope = scopes_.pop();
  loop.first = std::move(scope->block);
  parent.loops.emplace_back(loop.var, std::move(scope));
  parent.block.push_back(std::move(loop));
}

}  // namespace pw::rows
