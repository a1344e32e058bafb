// Proves that a distributed graph computes the same as a single-device graph. The ranks' graphs are
// abstractly interpreted over one shared, hash-consed graph of whole values (wholes.hpp,
// spread.hpp). A node of the ranks is proved if its result is a known layout of a value that the
// single graph computes, as in SPMD partitioning (Xu et al., "GSPMD", 2021) in reverse. Invariant:
// a recorded layout holds for all inputs that satisfy the relation. One pass over the nodes. If a
// claim fails, the first node on a path to it whose operands all agree is reported.
// Example: w is cut along columns and x is whole, so each rank's mm(x, w) is the cut of the single
// device's mm(x, w). If w is cut along rows and x along columns, each rank has a summand, and
// all_reduce makes it whole. The proof is by matching: a rank may compute the same function in a
// form that no transfer function derives, and is then not proved.
#include "proof/equal/equal.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "graph/build.hpp"
#include "proof/equal/spread.hpp"

namespace pw::proof {
namespace {

/// Returns the graph with all bodies inlined; value names are preserved.
/// Returns the problem, or an empty string.
std::string unfold(Graph& graph) {
  if (auto done = inline_bodies(graph); !done) return done.error().front().message;
  return {};
}

ValueId input_named(const Graph& graph, const std::string& name) {
  for (ValueId input : graph.inputs())
    if (graph.value_name(input) == name) return input;
  return {};
}

/// Returns true for an integer or a boolean, which a rank may use to select its part.
bool counts(const Graph& rank, const Types& types, NodeId node) {
  const TypeId type = rank.type(rank.result(node));
  if (type == Types::unknown()) return false;
  const DType dtype = types[type].dtype;
  return dtype == DType::b8 || dtype == DType::i32 || dtype == DType::i64;
}

/// Runs both graphs over one graph of wholes: first the single graph, whose values are then closed,
/// and then the ranks. A rank's value is equal to one of the single graph if it has the same id and
/// the claimed layout.
class Comparison {
 public:
  Comparison(const Graph& single, const std::vector<const Graph*>& ranks, const Relation& relation)
      : relation_(relation), single_(single), wholes_(single.context_ptr()) {
    for (const Graph* rank : ranks) ranks_.push_back(*rank);
  }

  Equality run() {
    if (prepare() && first() && second()) conclude();
    out_.granted = wholes_.granted;
    return std::move(out_);
  }

 private:
  bool fail(std::string problem) {
    out_.problem = std::move(problem);
    return false;
  }

  bool prepare() {
    wholes_.graph().facts = single_.facts;
    if (std::string problem = unfold(single_); !problem.empty()) return fail(problem);
    for (Graph& rank : ranks_) {
      if (&rank.context() != &single_.context())
        return fail("the graphs belong to different sessions");
      if (std::string problem = unfold(rank); !problem.empty()) return fail(problem);
      pointers_.push_back(&rank);
    }
    spreader_.emplace(wholes_, pointers_, relation_.granted);
    if (std::string problem = spreader_->mismatch(); !problem.empty()) return fail(problem);
    return true;
  }

  Spread whole(ValueId value) const {
    Spread out;
    out.kind = Spread::Kind::whole;
    out.whole = value;
    return out;
  }

  ValueId filled(double number, TypeId type) {
    const Type& held = wholes_.context().types[type];
    const ValueId one = wholes_.number(number, held.dtype);
    if (held.shape.empty()) return one;
    return wholes_.one(Primitive::full, {},
                       {{"shape", held.shape}, {"value", number}, {"dtype", held.dtype}});
  }

  /// Treats the single graph as one rank in a world of one: its collectives are local.
  bool first() {
    Spreader alone(wholes_, {&single_}, none_);
    for (ValueId input : single_.inputs()) {
      const std::string name(single_.value_name(input));
      const TypeId type = single_.type(input);
      const auto number = relation_.numbers.find(name);
      const ValueId value = number == relation_.numbers.end() ? wholes_.input(name, type)
                                                              : filled(number->second, type);
      alone.set(input, whole(value));
      inputs_[name] = value;
    }
    alone.run();
    for (ValueId v(0); v.index < single_.value_bound(); v = ValueId(v.index + 1))
      if (const Spread* spread = alone.find(v); spread != nullptr && spread->whole.valid()) {
        single_values_[v] = spread->whole;
        names_.emplace(spread->whole, single_.value_name(v));
      }
    wholes_.close();
    return true;
  }

  // ---- the inputs of the ranks

  /// Expands a relation line: `*` on both sides represents one text, for every matching input.
  bool spread_stars() {
    for (const RelationLine& line : relation_.inputs) {
      const std::size_t star = line.left.find('*');
      if (star == std::string::npos) {
        lines_.push_back(line);
        continue;
      }
      const std::string front = line.left.substr(0, star), back = line.left.substr(star + 1);
      const std::size_t before = lines_.size();
      for (const auto& [name, value] : inputs_) {
        if (name.size() < front.size() + back.size() || name.rfind(front, 0) != 0 ||
            name.compare(name.size() - back.size(), back.size(), back) != 0)
          continue;
        RelationLine one = line;
        one.left = name;
        for (std::string& right : one.right)
          if (const std::size_t at = right.find('*'); at != std::string::npos)
            right.replace(at, 1, name.substr(star, name.size() - front.size() - back.size()));
        lines_.push_back(std::move(one));
      }
      if (lines_.size() == before)
        return fail(
            fmt::format("line {}: the first graph has no input called `{}`", line.line, line.left));
    }
    return true;
  }

  bool second() {
    Graph& rank = ranks_[0];
    std::map<std::string, const RelationLine*> by_right;
    if (!spread_stars()) return false;
    for (const RelationLine& line : lines_) {
      if (inputs_.count(line.left) == 0)
        return fail(
            fmt::format("line {}: the first graph has no input `{}`", line.line, line.left));
      for (const std::string& right : line.right) {
        if (!input_named(rank, right).valid())
          return fail(fmt::format("line {}: the second graph has no input `{}`", line.line, right));
        if (!by_right.emplace(right, &line).second)
          return fail(
              fmt::format("line {}: an earlier line relates `{}` differently", line.line, right));
      }
    }
    for (ValueId input : rank.inputs()) {
      const std::string name(rank.value_name(input));
      const auto line = by_right.find(name);
      const bool set =
          line == by_right.end() ? by_name(input, name) : by_line(input, *line->second);
      if (!set) return false;
    }
    spreader_->run();
    return true;
  }

  // Without a line, an input of equal name and type is assumed equal, which the result lists. Any
  // other input is separate on each rank.
  bool by_name(ValueId input, const std::string& name) {
    const Graph& rank = ranks_[0];
    if (const auto number = relation_.numbers.find(name); number != relation_.numbers.end()) {
      spreader_->set(input, whole(filled(number->second, rank.type(input))));
      return true;
    }
    const ValueId left = input_named(single_, name);
    if (!left.valid() || single_.type(left) != rank.type(input)) {
      // It may be irrelevant; its readers remain unproved otherwise.
      Spread distinct;
      for (std::size_t r = 0; r < ranks_.size(); ++r)
        distinct.each.push_back(wholes_.input(name, ranks_[r].type(ranks_[r].inputs()[at(input)])));
      spreader_->set(input, std::move(distinct));
      unrelated_.insert(input);
      return true;
    }
    out_.assumed.push_back(name);
    spreader_->set(input, whole(inputs_.at(name)));
    return true;
  }

  std::size_t at(ValueId input) const {
    const auto& inputs = ranks_[0].inputs();
    return static_cast<std::size_t>(std::find(inputs.begin(), inputs.end(), input) -
                                    inputs.begin());
  }

  bool by_line(ValueId input, const RelationLine& line) {
    const Graph& rank = ranks_[0];
    const ValueId left = inputs_.at(line.left);
    const TypeId large = wholes_.graph().type(left), small = rank.type(input);
    const Shape wanted = wholes_.context().types[large].shape;
    const Shape held = wholes_.context().types[small].shape;
    const auto misfit = [&](std::string_view why) {
      return fail(fmt::format("line {}: `{}` is {} and `{}` is {}, so the second is not {}: {}",
                              line.line, line.left, wholes_.context().types.print(large),
                              rank.value_name(input), wholes_.context().types.print(small),
                              name(line.part), why));
    };
    if (wholes_.context().types[large].dtype != wholes_.context().types[small].dtype)
      return misfit("the dtypes differ");
    if (line.part == Part::replicated || line.part == Part::partial) {
      if (large != small) return misfit("the types differ");
      Spread spread = whole(left);
      if (line.part == Part::partial && ranks_.size() > 1) {
        spread.kind = Spread::Kind::partial;
        spread.join = Primitive::sum;
        for (std::size_t r = 0; r < ranks_.size(); ++r)
          spread.each.push_back(wholes_.input(std::string(rank.value_name(input)), small));
      }
      spreader_->set(input, std::move(spread));
      return true;
    }
    const auto axis = static_cast<std::size_t>(line.dim);
    if (line.dim < 0 || axis >= wanted.size() || held.size() != wanted.size())
      return misfit("the axis does not exist in both");
    if (line.part == Part::cat) return by_cat(input, line, axis);
    Spread spread = whole(left);
    spread.kind = Spread::Kind::cut;
    spread.axis = axis;
    Dims& dims = wholes_.dims();
    DimId sum = dims.constant(0);
    const auto ranks = static_cast<std::int64_t>(ranks_.size());
    for (std::int64_t size : line.sizes) {
      if (size % ranks != 0) return misfit(fmt::format("{} is not a multiple of {}", size, ranks));
      spread.parts.push_back(dims.constant(size / ranks));
    }
    if (line.sizes.empty()) spread.parts.push_back(held[axis]);
    for (DimId part : spread.parts) sum = dims.add(sum, part);
    for (std::size_t d = 0; d < wanted.size(); ++d)
      if (d == axis ? sum != held[d] || spreader_->times_ranks(sum) != wanted[d]
                    : held[d] != wanted[d])
        return misfit("the extents do not fit");
    spreader_->set(input, ranks_.size() == 1 ? whole(left) : std::move(spread));
    return true;
  }

  bool by_cat(ValueId input, const RelationLine& line, std::size_t axis) {
    Dims& dims = wholes_.dims();
    DimId before = dims.constant(0);
    for (const std::string& right : line.right) {
      const ValueId each = input_named(ranks_[0], right);
      const Shape& shape = wholes_.context().types[ranks_[0].type(each)].shape;
      if (axis >= shape.size())
        return fail(fmt::format("line {}: `{}` has no axis {}", line.line, right, line.dim));
      const DimId after = dims.add(before, shape[axis]);
      if (each == input)
        spreader_->set(input, whole(wholes_.slice(inputs_.at(line.left), axis, before, after)));
      before = after;
    }
    if (before != wholes_.shape(inputs_.at(line.left))[axis])
      return fail(fmt::format("line {}: the parts of `{}` do not add up to its axis {}", line.line,
                              line.left, line.dim));
    return true;
  }

  // ---- the claims

  void conclude() {
    out_.rounds = spreader_->rounds();
    const Graph& rank = ranks_[0];
    for (NodeId n = rank.first(); n.valid(); n = rank.next(n)) {
      ++out_.nodes;
      if (rank.result_count(n) > 0 && agrees(rank.result(n))) ++out_.matched;
    }
    if (!relation_.claims.empty()) {
      for (const RelationLine& claim : relation_.claims)
        if (!conclude(claim)) return;
      return;
    }
    if (single_.outputs().size() != rank.outputs().size()) {
      fail(fmt::format(
          "the graphs have {} and {} outputs: add `claim` lines for the pairs to compare",
          single_.outputs().size(), rank.outputs().size()));
      return;
    }
    for (std::size_t i = 0; i < rank.outputs().size(); ++i)
      judge(single_.outputs()[i], rank.outputs()[i], {});
  }

  bool conclude(const RelationLine& claim) {
    const ValueId left = single_.find_value(claim.left),
                  right = ranks_[0].find_value(claim.right[0]);
    if (!left.valid())
      return fail(
          fmt::format("line {}: the first graph has no value `{}`", claim.line, claim.left));
    if (!right.valid())
      return fail(
          fmt::format("line {}: the second graph has no value `{}`", claim.line, claim.right[0]));
    judge(left, right, claim);
    return true;
  }

  void judge(ValueId left, ValueId right, const RelationLine& claim) {
    ClaimVerdict verdict;
    verdict.left = single_.value_name(left);
    verdict.right = ranks_[0].value_name(right);
    verdict.part = claim.part;
    verdict.dim = claim.dim;
    const auto wanted = single_values_.find(left);
    const Spread* held = spreader_->find(right);
    const bool same =
        wanted != single_values_.end() && held != nullptr && held->whole == wanted->second;
    verdict.proved = same && held->kind == kind_of(claim) && fits(claim, *held);
    if (!verdict.proved) explain(verdict, right, same);
    out_.claims.push_back(std::move(verdict));
  }

  Spread::Kind kind_of(const RelationLine& claim) const {
    if (ranks_.size() == 1) return Spread::Kind::whole;
    if (claim.part == Part::gathered) return Spread::Kind::cut;
    return claim.part == Part::partial ? Spread::Kind::partial : Spread::Kind::whole;
  }
  bool fits(const RelationLine& claim, const Spread& held) const {
    if (held.kind == Spread::Kind::cut)
      return held.parts.size() == 1 && held.axis == static_cast<std::size_t>(claim.dim);
    return held.kind != Spread::Kind::partial || held.join == Primitive::sum;
  }

  /// Returns true if the ranks hold, in parts, what the single graph computes.
  /// A value that is a part of one that the single graph computes counts as agreeing, as does a
  /// constant.
  bool agrees(ValueId value) const {
    const Spread* spread = spreader_->find(value);
    if (spread == nullptr) return false;
    if (spread->kind == Spread::Kind::each) return spread->lookup.has_value();
    return wholes_.part_of_single(spread->whole) || wholes_.number_of(spread->whole);
  }

  /// Returns the first disagreeing node on the path to the value.
  /// Walks back over values that do not agree. Nodes that compute integers come last: ranks often
  /// compute offsets that the single graph lacks.
  NodeId parting(ValueId value) const {
    const Graph& rank = ranks_[0];
    std::set<NodeId> seen;
    std::vector<ValueId> todo = {value};
    while (!todo.empty()) {
      const ValueId v = todo.back();
      todo.pop_back();
      if (!v.valid() || rank.is_input(v) || agrees(v)) continue;
      const NodeId node = rank.producer(v);
      if (!seen.insert(node).second) continue;
      for (ValueId operand : rank.operands(node)) todo.push_back(operand);
    }
    NodeId first, number;
    for (NodeId node : seen) {
      NodeId& best = counts(ranks_[0], wholes_.context().types, node) ? number : first;
      if (!best.valid() || rank.label(node) < rank.label(best)) best = node;
    }
    return first.valid() ? first : number;
  }

  void explain(ClaimVerdict& verdict, ValueId right, bool same) const {
    const Graph& rank = ranks_[0];
    NodeId node = agrees(right) ? NodeId() : parting(right);
    if (!node.valid()) node = rank.producer(right);
    if (!node.valid()) {
      verdict.reason = "it is an input";
      return;
    }
    verdict.node = rank.node_name(node);
    verdict.op = rank.op_of(node).name;
    verdict.source = rank.source(node);
    const Spread* own = spreader_->find(right);
    if (same && own != nullptr) {
      verdict.reason = fmt::format("`{}` {}", verdict.right, described(*own));
    } else if (own != nullptr && agrees(right)) {
      verdict.reason = fmt::format("`{}` {}", verdict.right, instead(*own));
    } else {
      verdict.reason = why(node);
    }
  }

  /// Explains why a node fails although all its operands agree.
  std::string why(NodeId node) const {
    const Graph& rank = ranks_[0];
    for (ValueId operand : rank.operands(node)) {
      if (!operand.valid()) continue;
      if (unrelated_.contains(operand))
        return fmt::format("no line relates its operand `{}`", rank.value_name(operand));
      const Spread* spread = spreader_->find(operand);
      if (spread == nullptr) continue;
      if (spread->kind == Spread::Kind::partial)
        return fmt::format("its operand `{}` {}", rank.value_name(operand), described(*spread));
    }
    for (ValueId operand : rank.operands(node)) {
      const Spread* spread = operand.valid() ? spreader_->find(operand) : nullptr;
      if (spread != nullptr && spread->kind == Spread::Kind::cut)
        return fmt::format("its operand `{}` {}", rank.value_name(operand), described(*spread));
    }
    return "the first graph does not apply this op to the same operands";
  }

  std::string described(const Spread& spread) const {
    switch (spread.kind) {
      case Spread::Kind::whole: return "is the same on all ranks";
      case Spread::Kind::partial:
        return fmt::format(
            "is only a part of {} on each rank: an all_reduce is missing",
            of_first(spread.whole, spread.join == Primitive::sum ? "the sum" : "the extreme"));
      case Spread::Kind::cut:
        return fmt::format("is split along axis {}: an all_gather is missing", spread.axis);
      case Spread::Kind::each: break;
    }
    return "differs from rank to rank";
  }

  std::string instead(const Spread& spread) const {
    if (spread.kind == Spread::Kind::partial || spread.kind == Spread::Kind::cut)
      return described(spread);
    return fmt::format("is {} of the first graph", of_first(spread.whole, "another value"));
  }

  std::string of_first(ValueId whole, std::string_view otherwise) const {
    const auto name = names_.find(whole);
    return name == names_.end() ? std::string(otherwise) : fmt::format("`{}`", name->second);
  }

  const Relation& relation_;
  Graph single_;
  std::vector<Graph> ranks_;
  std::vector<const Graph*> pointers_;
  Wholes wholes_;
  std::optional<Spreader> spreader_;
  const std::map<std::string, std::set<std::int64_t>> none_;
  std::map<std::string, ValueId> inputs_;
  std::map<ValueId, ValueId> single_values_;
  std::map<ValueId, std::string> names_;  ///< of the single graph's values
  std::set<ValueId> unrelated_;
  std::vector<RelationLine> lines_;  ///< without stars
  Equality out_;
};

}  // namespace

bool Equality::proved() const {
  return problem.empty() &&
         std::all_of(claims.begin(), claims.end(), [](const auto& c) { return c.proved; });
}

Equality prove_equal(const Graph& single, const std::vector<const Graph*>& ranks,
                     const Relation& relation) {
  return Comparison(single, ranks, relation).run();
}

}  // namespace pw::proof
