// Loops over results. Results of one shape share their loops, and adjacent loops of equal extent
// are fused. A loop is cut at a bound if that decides inside it which operand is read, and tiled if
// a reduction covers a group of its columns. Invariant: loops only store, so a loop may move after
// later statements; each element of a result is stored exactly once.
#include <algorithm>

#include "codegen/rowprogram/lowering.hpp"

namespace pw::rows {
namespace {

constexpr std::int64_t kMinGroup = 4;  // narrower groups would split the 8-column accesses
                                       // a minimum part of a loop that exists only for a condition
constexpr std::int64_t kMinPart = 2;

}  // namespace

void Lowering::store_results() {
  if (groups_.empty()) {
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      const Shape& s = shape(graph_.outputs()[i]);
      const auto same = std::find_if(groups_.begin(), groups_.end(),
                                     [&](const Group& g) { return g.shape == s; });
      if (same == groups_.end())
        groups_.push_back({s, {i}, std::vector<Cut>(s.size())});
      else
        same->outputs.push_back(i);
    }
  }
  for (Group& group : groups_) {
    Position at = row_at_;
    store(group, at);
  }
}

void Lowering::store(Group& group, Position& at) {
  const std::size_t dim = at.size();
  if (dim < group.shape.size()) {
    const auto deeper = [&](IndexId place) {
      at.push_back(place);
      store(group, at);
      at.pop_back();
    };
    if (is_one(group.shape[dim])) return deeper(program_.indices.constant(0));
    return looped(group.cuts[dim], extent(group.shape[dim]), program_.indices.constant(0), deeper);
  }
  for (std::size_t i : group.outputs) {
    Statement statement;
    statement.kind = Statement::Kind::store;
    statement.argument = program_.arguments.size() - graph_.outputs().size() + i;
    statement.operands = {element(graph_.outputs()[i], at)};
    statement.index = linear(group.shape, at);
    scopes_.back()->block.push_back(std::move(statement));
  }
}

template <class Body>
void Lowering::looped(Cut& cut, IndexId extent, IndexId offset, const Body& body) {
  Indices& indices = program_.indices;
  const std::int64_t size = indices.interval(extent).high;
  if (cutting_ && cut.at != 0) {
    looped(*cut.first, indices.constant(cut.at), offset, body);
    looped(*cut.second, indices.constant(size - cut.at),
           indices.add(offset, indices.constant(cut.at)), body);
  } else if (cutting_ && cut.tile != 0) {
    in_loop(nullptr, indices.constant(size / cut.tile), [&](IndexId group) {
      const IndexId start = indices.mul(group, indices.constant(cut.tile));
      looped(*cut.first, indices.constant(cut.tile), indices.add(offset, start), body);
    });
  } else {
    in_loop(&cut, extent, [&](IndexId i) { body(indices.add(offset, i)); });
  }
}

/// Reopens an existing loop of the same extent in this scope, so that shared computations run once.
/// Loops only store, so it may move after what was placed later. A loop without passes is omitted,
/// because emitters assume that a loop of known extent has a first pass.
template <class Body>
void Lowering::in_loop(Cut* cut, IndexId extent, const Body& body) {
  if (program_.indices.interval(extent).high <= 0) return;
  Scope& parent = *scopes_.back();
  auto found = std::find_if(parent.loops.begin(), parent.loops.end(), [&](const auto& loop) {
    return program_.indices.extent(loop.first) == extent;
  });
  Statement loop;
  loop.kind = Statement::Kind::loop;
  std::unique_ptr<Scope> scope;
  if (found == parent.loops.end()) {
    loop.var = program_.indices.variable(extent);
    scope = std::make_unique<Scope>();
    scope->vars = {loop.var};
  } else {
    loop.var = found->first;
    scope = std::move(found->second);
    parent.loops.erase(found);
    const auto old = std::find_if(
        parent.block.begin(), parent.block.end(),
        [&](const Statement& s) { return s.kind == Statement::Kind::loop && s.var == loop.var; });
    scope->block = std::move(old->first);
    parent.block.erase(old);
  }
  if (cut && program_.indices.interval(extent).low == program_.indices.interval(extent).high)
    cut_of_[loop.var] = cut;
  scopes_.push_back(std::move(scope));
  body(program_.indices.use(loop.var));
  cut_of_.erase(loop.var);
  scope = std::move(scopes_.back());
  scopes_.pop_back();
  loop.first = std::move(scope->block);
  parent.loops.emplace_back(loop.var, std::move(scope));
  parent.block.push_back(std::move(loop));
}

void Lowering::tile(VarId var, std::int64_t offset, std::int64_t size) {
  const auto found = cut_of_.find(var);
  if (!cutting_ || found == cut_of_.end() || size < 2 || offset % size != 0) return;
  const std::int64_t extent = program_.indices.interval(program_.indices.extent(var)).high;
  if (extent % size != 0 || extent == size) return;
  found->second->tile = size;
  found->second->first = std::make_unique<Cut>();
  throw Recut{};
}

void Lowering::cut_at(IndexId place, std::int64_t bound) {
  std::int64_t modulus = 0, divisor = 1;  // place is ((var + …) / divisor) % modulus
  for (;;) {
    const Index node = program_.indices[place];
    const bool by_number = node.b.valid() && program_.indices[node.b].kind == Index::Kind::constant;
    const std::int64_t number = by_number ? program_.indices[node.b].constant : 0;
    if (node.kind == Index::Kind::variable) {
      const VarId var(static_cast<std::size_t>(node.constant));
      if (modulus != 0) {
        if (modulus >= kMinGroup) tile(var, 0, modulus);
        return;
      }
      const auto found = cut_of_.find(var);
      if (!cutting_ || found == cut_of_.end()) return;
      const std::int64_t extent = program_.indices.interval(program_.indices.extent(var)).high;
      if (bound < kMinPart || extent - bound < kMinPart) return;
      found->second->at = bound;
      found->second->first = std::make_unique<Cut>();
      found->second->second = std::make_unique<Cut>();
      throw Recut{};
    }
    if (!by_number || number > (std::int64_t{1} << 40)) return;
    place = node.a;
    if (node.kind == Index::Kind::add) {
      if (modulus != 0 && number % modulus != 0) return;
      bound -= number;
    } else if (node.kind == Index::Kind::div) {
      if (modulus != 0) modulus *= number;
      divisor *= number;
      bound *= number;
    } else if (node.kind == Index::Kind::mod && modulus == 0) {
      modulus = number * divisor;
    } else {
      return;
    }
    if (divisor > (std::int64_t{1} << 40) || std::abs(bound) > (std::int64_t{1} << 50)) return;
  }
}

bool Lowering::repeats(IndexId place) const {
  const auto terms = program_.indices.terms(place);
  if (!terms) return true;
  return std::any_of(terms->factors.begin(), terms->factors.end(), [&](const auto& term) {
    const Index::Kind kind = program_.indices[term.first].kind;
    const std::vector<VarId>& vars = program_.indices.vars(term.first);
    const bool inner =
        std::any_of(vars.begin(), vars.end(), [&](VarId v) { return v != program_.row; });
    return inner && kind != Index::Kind::variable;
  });
}

void Lowering::cut_into_groups(IndexId place) {
  const auto terms = program_.indices.terms(place);
  if (!terms) return;
  for (const auto& [atom, factor] : terms->factors) {
    const Index node = program_.indices[atom];
    if (!node.b.valid()) continue;
    if (node.kind == Index::Kind::div && program_.indices[node.b].kind == Index::Kind::constant) {
      const auto inner = program_.indices.terms(node.a);
      if (inner && inner->factors.size() == 1) {
        const Index var = program_.indices[inner->factors.begin()->first];
        if (var.kind == Index::Kind::variable && inner->factors.begin()->second == 1)
          tile(VarId(static_cast<std::size_t>(var.constant)), inner->constant,
               program_.indices[node.b].constant);
      }
    }
    cut_into_groups(node.a);
  }
}

}  // namespace pw::rows
