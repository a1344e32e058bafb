// Builds the general graph of one case of a rule. The sketch of the left side is completed by
// applying the rule itself, which adds the right side to the same graph. Guards on sizes become
// facts of the integers. The construction restarts with a substitution when two sizes must be
// equal, as in first-order unification, up to a fixed number of restarts. Lists have a fixed length
// in each case. If both sides' types cannot be shown equal, and no sample refutes it, their
// equality becomes a fact.
// Coverage is as important as equality: a proof covers exactly the instances that some case
// represents. Restrictions of the cases, such as lists of fixed length, are recorded as granted
// assumptions. Symbolic sizes are at least 1, so empty tensors are not covered, except where an
// attribute may be 0.
#include "proof/schema.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "dsl/build/unroll.hpp"
#include "dsl/syntax/walk.hpp"
#include "graph/infer/dim_value.hpp"
#include "graph/text/text.hpp"
#include "graph/text/type_text.hpp"
#include "proof/sketch/sketch.hpp"
#include "rewriter/engine/legality.hpp"

namespace pw::proof {
namespace {

// Each restart eliminates one symbol, so patterns with more equations than this are not proved.
constexpr int kRestarts = 64;

// ---- the right side

/// Returns the attributes that `..` copies.
std::map<std::string, AttributesId, std::less<>> open_attributes(const Graph& graph,
                                                                 const Match& match) {
  std::map<std::string, AttributesId, std::less<>> out;
  for (NodeId node : match.nodes)
    if (node.valid()) out.emplace(graph.op_of(node).name, graph.attributes(node));
  for (const auto& list : match.members)
    if (!list.empty())
      for (NodeId node : list.front()) out.emplace(graph.op_of(node).name, graph.attributes(node));
  return out;
}

/// Converts a size guard to facts: a ≥ b becomes a - b ≥ 0, and a == b becomes two facts. Guards of
/// other forms, such as `or` and !=, add no fact. That is sound: the proof then covers more
/// instances than the guard admits.
void assume_guard(const Expr& guard, Schema& schema, Integers& integers) {
  Context& context = schema.graph.context();
  if (guard.kind == Expr::Kind::binary && guard.text == "and") {
    for (const Expr& arg : guard.args) assume_guard(arg, schema, integers);
    return;
  }
  const auto dim = [&](const Expr& expr) -> std::optional<Ix> {
    const auto size = dim_value(context, &schema.graph, expr, schema.env);
    return size ? std::optional(integers.of(context.dims, *size)) : std::nullopt;
  };
  const auto take = [&](Ix fact) {
    if (integers.number(fact).value_or(-1) >= 0) return;
    schema.guards.push_back({print(guard), integers.fact_count()});
    integers.assume(fact);
  };
  if (guard.kind == Expr::Kind::in_range && guard.args.size() == 3) {
    const auto x = dim(guard.args[0]), low = dim(guard.args[1]), high = dim(guard.args[2]);
    if (x && low) take(integers.sub(*x, *low));
    if (x && high) take(integers.sub(*high, *x));
    return;
  }
  if (guard.kind != Expr::Kind::binary || guard.args.size() != 2) return;
  const auto a = dim(guard.args[0]), b = dim(guard.args[1]);
  // A guard about attributes or dtypes that is false in this case contradicts it: -1 ≥ 0.
  if (!a && !b) {  // both are numbers
    const auto holds =
        evaluate_guard(context, &schema.graph, guard, schema.env, schema.graph.facts);
    if (holds && *holds == Truth::no) integers.assume(integers.constant(-1));
  }
  if (!a || !b) return;
  const Ix one = integers.constant(1), difference = integers.sub(*a, *b);
  const Ix reverse = integers.sub(*b, *a);
  if (guard.text == ">=") take(difference);
  if (guard.text == "<=") take(reverse);
  if (guard.text == ">") take(integers.sub(difference, one));
  if (guard.text == "<") take(integers.sub(reverse, one));
  if (guard.text == "==") {
    take(difference);
    take(reverse);
  }
}

std::set<NodeId> nodes_of(const Graph& graph) {
  std::set<NodeId> out;
  for (NodeId node = graph.first(); node.valid(); node = graph.next(node)) out.insert(node);
  return out;
}

/// Matches the pattern against its own general graph, without guards, and builds the replacement
/// next to it. A pattern that does not match its own sketch has no schema, and the rule stays
/// unproved.
tl::expected<Schema, NoSchema> with_right_side(Graph graph, const RuleSet& unguarded, RuleId id,
                                               const Env& params) {
  const Rule& rule = unguarded.rules[id];
  const RunRules run(unguarded);
  const std::string shapes = shapes_of(graph);
  std::vector<Match> matches = find_matches(graph, run, id, params);
  if (matches.empty()) {
    const auto why = explain(graph, run, id, params);
    return tl::unexpected(NoSchema{
        .why = why ? why->code + " " + why->message : "it does not match", .shapes = shapes});
  }
  Schema schema{std::move(graph), {}, {}, {}, {}, {}, {}, 0};
  const Match& match = matches.front();
  schema.replaced = own_nodes(schema.graph, lay_out(run, id), match);
  const std::set<NodeId> old = nodes_of(schema.graph);
  BuildOptions options;
  options.open_attributes = open_attributes(schema.graph, match);
  schema.env = match.env;
  Env env = match.env;
  if (auto built = build_statements(schema.graph, rule.replacement, env, options); !built)
    return tl::unexpected(NoSchema{.why = built.error().front().message, .shapes = shapes});
  for (NodeId node : nodes_of(schema.graph))
    if (!old.contains(node)) schema.fresh.push_back(node);
  for (const std::string& name : rule.outputs) {
    const std::vector<ValueId> from = bound_values(match.env, name), to = bound_values(env, name);
    if (from.size() != to.size())
      return tl::unexpected(
          NoSchema{.why = fmt::format("`{}` would be a list of another length", name)});
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (!to[i].valid())
        return tl::unexpected(NoSchema{.why = fmt::format("`{}` would be none", name)});
      schema.outputs.push_back(
          {from.size() == 1 ? name : fmt::format("{}[{}]", name, i), from[i], to[i]});
    }
  }
  for (const SchemaOutput& output : schema.outputs) schema.graph.add_output(output.before);
  for (const SchemaOutput& output : schema.outputs) schema.graph.add_output(output.after);
  return schema;
}

/// Requires equal types before and after. Equations between sizes become facts unless they are
/// refuted. A slice end that a guard places at or beyond the size is solved for.
/// An equation that samples do not refute may be assumed: where the types differ, the engine
/// rejects the replacement, so nothing has to be proved there.
std::optional<NoSchema> same_types(const Schema& schema, Integers& integers,
                                   std::map<std::string, DimId, std::less<>>& found) {
  Context& context = schema.graph.context();
  for (const SchemaOutput& output : schema.outputs) {
    const TypeId a = schema.graph.type(output.before), b = schema.graph.type(output.after);
    if (a == b) continue;
    if (a == Types::unknown() || b == Types::unknown())
      return NoSchema{.why = "a type is not known"};
    const Type before = context.types[a], after = context.types[b];
    if (before.dtype != after.dtype || before.shape.size() != after.shape.size())
      return NoSchema{.why = fmt::format("`{}` is {} and would become {}", output.name,
                                         context.types.print(a), context.types.print(b))};
    for (std::size_t i = 0; i < before.shape.size(); ++i) {
      const Ix x = integers.of(context.dims, before.shape[i]);
      const Ix y = integers.of(context.dims, after.shape[i]);
      if (integers.equal(x, y)) continue;
      const Ix difference = integers.sub(x, y);
      if (integers.number(difference))
        return NoSchema{.why = fmt::format("`{}` would have another size", output.name)};
      // If both x ≥ y and the rule requires x = y, the equation determines a symbol. Sizes found so
      // far are rewritten with it.
      if (integers.nonnegative(difference)) {
        if (const auto solution = integers.solve(difference)) {
          if (const auto dim = parse_dim(context.dims, integers.print(solution->second))) {
            std::map<std::string, DimId, std::less<>> one = {{solution->first, *dim}};
            for (auto& [other, known] : found) known = context.dims.substitute(known, one);
            found.insert_or_assign(solution->first, *dim);
            throw Restart{};
          }
        }
      }
      if (integers.may_differ(x, y))
        return NoSchema{.why = fmt::format("`{}` is {} and would become {}", output.name,
                                           context.types.print(a), context.types.print(b)),
                        .shapes = shapes_of(schema.graph)};
      integers.assume(difference);
      integers.assume(integers.sub(y, x));
    }
  }
  return std::nullopt;
}

/// Returns the params with each integer as the symbol of its name, or as what that is solved for:
/// params are sizes of any value, not the numbers of this run.
Env as_symbols(Dims& dims, Env params, const SolvedSizes& solved) {
  for (auto& [name, binding] : params) {
    const auto* attribute = std::get_if<Attribute>(&binding);
    if (attribute == nullptr || !std::holds_alternative<std::int64_t>(*attribute)) continue;
    const auto known = solved.find(plain_name(name));
    binding = Attribute(known != solved.end() ? known->second : dims.symbol(plain_name(name)));
  }
  return params;
}

}  // namespace

std::string shapes_of(const Graph& graph) {
  std::string out;
  for (ValueId input : graph.inputs())
    out += graph.context().types.print(graph.context().types[graph.type(input)].shape) + " ";
  return out;
}

tl::expected<Schema, NoSchema> make_schema(const RuleSet& rules, const RuleSet& unguarded,
                                           RuleId id, const Env& params, Choices& choices,
                                           Integers& integers, const SchemaOptions& options,
                                           std::set<std::string>& granted) {
  const Rule& rule = rules.rules[id];
  const bool lists = !rule.members.empty() || !rule.lists.empty() || !rule.unless.empty();
  const std::optional<Rule> plain =
      lists ? std::optional(unroll(rule, options.lists)) : std::nullopt;
  SolvedSizes solved;
  std::map<std::string, std::size_t> answers;
  std::set<std::string> zero, any;  // symbols that may be 0, and any number
  choices.rewind();
  for (int i = 0; i < kRestarts; ++i) {
    // Facts refer to symbols that may now have solutions, so each attempt starts without facts.
    integers.back_to({0});
    for (const auto& [name, dim] : solved) {  // a size that was solved for is still one
      if (any.contains(name)) continue;
      const Ix least = integers.constant(zero.contains(name) ? 0 : 1);
      const Ix fact = integers.sub(integers.of(rules.context->dims, dim), least);
      if (!integers.nonnegative(fact)) integers.assume(fact);
    }
    SolvedSizes found = solved;
    try {
      const Rule& sketched = plain ? *plain : rule;
      SketchState state{*rules.context,
                        sketched,
                        choices,
                        integers,
                        solved,
                        found,
                        answers,
                        zero,
                        any,
                        granted,
                        options.any_dtype,
                        Graph(rules.context, "general"),
                        params,
                        IdVec<PatternValueId, ValueId>(sketched.values.size())};
      Sketch sketch(state);
      Graph graph = sketch.build();
      auto schema = with_right_side(std::move(graph), unguarded, id,
                                    as_symbols(rules.context->dims, params, solved));
      if (!schema) return schema;
      schema->any_dtypes = sketch.any_dtypes();
      for (const auto* guards : {&rule.where, &rule.assume})
        for (const Expr& guard : *guards) assume_guard(guard, *schema, integers);
      if (auto none = same_types(*schema, integers, found)) return tl::unexpected(*none);
      return schema;
    } catch (const Restart&) {
      solved = std::move(found);
    } catch (const Mistyped& problem) {
      return tl::unexpected(NoSchema{.why = problem.why, .mistyped = true});
    } catch (const Undecided& problem) {
      return tl::unexpected(NoSchema{.why = problem.why, .undecided = true});
    }
  }
  return tl::unexpected(
      NoSchema{.why = fmt::format("limit: more than {} sizes", kRestarts), .undecided = true});
}

}  // namespace pw::proof
