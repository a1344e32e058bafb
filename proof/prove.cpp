// Proves rules. Each case of a rule becomes a graph with both sides (schema.cpp); Choices
// enumerates the cases depth first. An output pair is compared by value numbering (fold.cpp) and,
// if that does not decide, elementwise (pair_proof.cpp). A rule that holds for terms of generic
// dtypes needs no cases of dtypes.
// Invariant: a verdict other than `unknown` holds for every instance of the case, under the granted
// assumptions.
#include "proof/prove.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/try.hpp"
#include "graph/build.hpp"
#include "graph/text/text.hpp"
#include "proof/elements.hpp"
#include "proof/fold.hpp"
#include "proof/schema.hpp"

namespace pw::proof {
namespace {

constexpr std::size_t kMostPatternOps = 256;

/// Returns the multiset of the nodes' effects.
std::vector<std::string> effects_of(const Graph& graph, const std::vector<NodeId>& nodes) {
  const Numbering numbers(graph);
  std::vector<std::string> out;
  for (NodeId node : nodes) {
    if (!graph.alive(node) || !graph.op_of(node).traits.effect) continue;
    out.push_back(fmt::format("{} {}", graph.op_of(node).name, numbers.of(node)));
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// Inlines ops until no body contains an effect; updates the list of nodes.
Status unfold(Graph& graph, std::vector<NodeId>& nodes) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!graph.alive(nodes[i]) || !graph.op_of(nodes[i]).has_body()) continue;
    auto made = PW_TRY(inline_node(graph, nodes[i]));
    nodes.insert(nodes.end(), made.begin(), made.end());
  }
  return {};
}

bool any_effect(const Context& context, OpId id, std::set<OpId>& seen) {
  const Op& op = context.ops[id];
  if (op.traits.effect) return true;
  if (!seen.insert(id).second) return false;
  std::vector<const Expr*> todo;
  for (const Statement& statement : op.body) todo.push_back(&statement.value);
  while (!todo.empty()) {
    const Expr* expr = todo.back();
    todo.pop_back();
    if (expr->kind == Expr::Kind::call)
      if (const OpId called = context.ops.find(expr->text);
          called.valid() && any_effect(context, called, seen))
        return true;
    for (const Expr& arg : expr->args) todo.push_back(&arg);
  }
  return false;
}

bool any_effect(const Graph& graph, const std::vector<NodeId>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(), [&](NodeId node) {
    std::set<OpId> seen;
    return any_effect(graph.context(), graph.op(node), seen);
  });
}

/// Returns a fork in which ops with a built-in meaning have no body.
ContextPtr with_own_meanings(const Context& context) {
  ContextPtr out = fork(context);
  OpTable ops;
  for (std::size_t i = 0; i < context.ops.size(); ++i) {
    Op op = context.ops[OpId(i)];
    if (has_own_meaning(op.primitive)) op.body.clear();
    (void)ops.declare(std::move(op));
  }
  out->ops = std::move(ops);
  return out;
}

}  // namespace

RuleVerdict Comparison::verdict() const {
  RuleVerdict out = RuleVerdict::same_bits;
  for (const PairVerdict& pair : pairs) out = worse(out, pair.verdict);
  return out;
}

Comparison compare_pairs(Graph& graph, std::size_t pairs, Integers& integers, int* ieee) {
  Comparison out;
  out.pairs.resize(pairs);
  std::string problem;
  const std::vector<bool> same = fold_pairs(graph, pairs, &problem);
  for (std::size_t i = 0; i < pairs; ++i)
    if (same[i]) out.pairs[i].verdict = RuleVerdict::same_bits;
  if (std::find(same.begin(), same.end(), false) == same.end()) return out;
  if (auto inlined = inline_bodies(graph); !inlined) problem = inlined.error().front().message;
  for (std::size_t i = 0; i < pairs; ++i) {
    if (same[i]) continue;
    if (!problem.empty()) {
      out.pairs[i].obligation = problem;
      continue;
    }
    Terms terms(integers);
    Elements elements(graph, terms);
    out.pairs[i] =
        prove_pair(elements, terms,
                   {.left = graph.outputs()[i], .right = graph.outputs()[pairs + i], .ieee = ieee},
                   out.granted);
  }
  return out;
}

Prover::Prover(const RuleSet& rules, const Env& params, const ProveOptions& options)
    : rules_(rules), params_(params), options_(options) {
  rules_.context = with_own_meanings(*rules.context);
  unguarded_ = rules_;
  for (std::size_t i = 0; i < unguarded_.rules.size(); ++i) {
    unguarded_.rules[RuleId(i)].where.clear();
    unguarded_.rules[RuleId(i)].assume.clear();
    unguarded_.rules[RuleId(i)].unless.clear();
  }
}

namespace {

/// Checks that both sides have the same effects; inlines both if there are any.
bool same_effects(Schema& schema) {
  Graph& graph = schema.graph;
  if (!any_effect(graph, schema.replaced) && !any_effect(graph, schema.fresh)) return true;
  return unfold(graph, schema.replaced) && unfold(graph, schema.fresh) &&
         effects_of(graph, schema.replaced) == effects_of(graph, schema.fresh);
}

bool equal_for_any_dtype(Graph& graph, std::size_t pairs, Integers& integers,
                         std::set<std::string>& granted) {
  const std::vector<bool> same = fold_pairs(graph, pairs, nullptr);
  if (std::find(same.begin(), same.end(), false) == same.end()) return true;
  if (!inline_bodies(graph)) return false;
  for (std::size_t i = 0; i < pairs; ++i) {
    if (same[i]) continue;
    Terms terms(integers, true);
    Elements elements(graph, terms);
    const PairQuestion question = {
        .left = graph.outputs()[i], .right = graph.outputs()[pairs + i], .laws = false};
    if (prove_pair(elements, terms, question, granted).verdict != RuleVerdict::same_bits)
      return false;
  }
  return true;
}

/// Returns true if both sides are equal for one choice of generic dtypes; sets `several` if two
/// variables are generic.
bool proved_for_any_dtype(const RuleSet& rules, const RuleSet& unguarded, RuleId id,
                          const Env& params, Solver& solver, std::size_t most, Proof& proof,
                          SchemaOptions options, bool& several) {
  const Rule& rule = rules.rules[id];
  const bool lists = !rule.members.empty() || !rule.lists.empty();
  std::size_t cases = 0;
  std::set<std::string> granted, guards, used;
  for (options.lists = lists ? 1 : 2; options.lists <= (lists ? 3u : 2u); ++options.lists) {
    Choices choices;
    do {
      Integers integers(solver);
      auto schema = make_schema(rules, unguarded, id, params, choices, integers, options, granted);
      if (!schema) {
        if (schema.error().mistyped) continue;
        return false;
      }
      if (++cases > most || integers.contradictory()) return false;
      several = several || schema->any_dtypes > 1;
      Graph& graph = schema->graph;
      if (!same_effects(*schema)) return false;
      integers.forget_used();
      if (!equal_for_any_dtype(graph, schema->outputs.size(), integers, granted)) return false;
      for (const SchemaGuard& guard : schema->guards) {
        guards.insert(guard.text);
        if (integers.used().contains(guard.fact)) used.insert(guard.text);
      }
    } while (choices.next());
  }
  if (cases == 0) return false;
  proof.needed.clear();
  proof.unneeded.clear();
  for (const std::string& guard : guards)
    (used.contains(guard) ? proof.needed : proof.unneeded).push_back(guard);
  if (lists) granted.insert("lists of one to three elements");
  proof.granted = std::move(granted);
  proof.cases = cases;
  return true;
}

bool proved_for_any_dtype(const RuleSet& rules, const RuleSet& unguarded, RuleId id,
                          const Env& params, Solver& solver, std::size_t most, Proof& proof) {
  SchemaOptions options;
  bool several = false;
  options.any_dtype = SchemaOptions::AnyDType::one_way;
  if (!proved_for_any_dtype(rules, unguarded, id, params, solver, most, proof, options, several))
    return false;
  options.any_dtype = SchemaOptions::AnyDType::other_way;
  return !several ||
         proved_for_any_dtype(rules, unguarded, id, params, solver, most, proof, options, several);
}

/// Returns true if the pattern has an extreme of two values that may both be zero: it matches the
/// operands in either order, which decides between zeros.
bool matches_either_zero(const RuleSet& rules, const Rule& rule) {
  const auto never_zero = [&](PatternValueId id) {
    const std::optional<Attribute>& literal = rule.values[id].literal;
    const auto* real = literal ? std::get_if<double>(&*literal) : nullptr;
    const auto* whole = literal ? std::get_if<std::int64_t>(&*literal) : nullptr;
    return (real != nullptr && *real != 0) || (whole != nullptr && *whole != 0);
  };
  return std::any_of(rule.nodes.begin(), rule.nodes.end(), [&](const PatternNode& node) {
    const Primitive op = rules.context->ops[node.op].primitive;
    return among(op, {Primitive::maximum, Primitive::minimum}) &&
           std::none_of(node.operands.begin(), node.operands.end(), never_zero);
  });
}

/// Adds the assumption that the order of matched operands leaves open.
Proof with_orders(Proof proof, const RuleSet& rules, const Rule& rule) {
  if (proof.proved() && matches_either_zero(rules, rule)) proof.granted.insert(kAnyZero);
  return proof;
}

/// Returns an obligation with its output. A limit precedes the output, because it is not about it.
std::string reason_of(const std::string& output, const std::string& obligation) {
  if (obligation.starts_with("limit: ")) return fmt::format("{} (`{}`)", obligation, output);
  return fmt::format("`{}`: {}", output, obligation);
}

/// Adds the verdicts on the outputs of one case to those of the cases before. `overflow` is the
/// first place that may overflow.
void take_verdicts(const Comparison& seen, const Schema& schema, Proof& proof,
                   std::string& overflow) {
  proof.granted.insert(seen.granted.begin(), seen.granted.end());
  proof.verdict = worse(proof.verdict, seen.verdict());
  for (const PairVerdict& pair : seen.pairs) {
    proof.specials.add(pair.specials);
    // An element shows the worst verdict; a solver also finds those that only round.
    const bool worst = pair.verdict == RuleVerdict::unknown ||
                       (pair.verdict == RuleVerdict::may_overflow && overflow.empty());
    if (!pair.element.empty() && (worst || proof.element.empty())) proof.element = pair.element;
    proof.flips = proof.flips || pair.flips;
  }
  if (proof.verdict == RuleVerdict::differs_only_for &&
      proof.specials.verdict() == RuleVerdict::rounds)
    proof.verdict = RuleVerdict::rounds;
  for (std::size_t i = 0; i < seen.pairs.size() && proof.reason.empty(); ++i)
    if (seen.pairs[i].verdict == RuleVerdict::unknown)
      proof.reason = reason_of(schema.outputs[i].name, seen.pairs[i].obligation);
  for (std::size_t i = 0; i < seen.pairs.size() && seen.verdict() == RuleVerdict::may_overflow; ++i)
    if (seen.pairs[i].verdict == RuleVerdict::may_overflow && overflow.empty())
      overflow = fmt::format("`{}`: {}", schema.outputs[i].name, seen.pairs[i].element);
}

void leave_unknown(Proof& proof, std::string reason) {
  proof.verdict = RuleVerdict::unknown;
  proof.reason = std::move(reason);
}

}  // namespace

/// State that the cases of a rule share.
struct Prover::Cases {
  Choices choices;
  SchemaOptions options;
  int ieee = 12;                       ///< remaining IEEE queries
  std::string none;                    ///< why a choice makes no case
  std::string overflow;                ///< the first place that may overflow
  std::set<std::string> guards, used;  ///< the texts of all guards, and of those used
};

/// Proves the case of the current choices, if they make one.
void Prover::prove_case(RuleId id, Cases& cases, Proof& proof) {
  if (proof.cases > options_.cases)
    return leave_unknown(proof, fmt::format("limit: more than {} cases", options_.cases));
  Integers integers(solver_);
  auto schema = make_schema(rules_, unguarded_, id, params_, cases.choices, integers, cases.options,
                            proof.granted);
  if (!schema) {
    if (cases.none.empty() || !schema.error().mistyped) cases.none = schema.error().why;
    if (schema.error().mistyped) return;
    if (schema.error().undecided)
      return leave_unknown(proof, "sizes that are not solved for: " + schema.error().why);
    // The left side matches there, but the right side cannot replace it.
    proof.uncovered = fmt::format("{} ({})", schema.error().shapes, schema.error().why);
    return leave_unknown(proof, "not every match can be applied: " + proof.uncovered);
  }
  if (integers.contradictory()) {
    cases.none = "its guards contradict each other";
    return;
  }
  ++proof.cases;
  for (const SchemaGuard& guard : schema->guards) cases.guards.insert(guard.text);
  integers.forget_used();
  if (!same_effects(*schema)) return leave_unknown(proof, "both sides have the same effects");
  const Comparison seen =
      compare_pairs(schema->graph, schema->outputs.size(), integers, &cases.ieee);
  for (const SchemaGuard& guard : schema->guards)
    if (integers.used().contains(guard.fact)) cases.used.insert(guard.text);
  take_verdicts(seen, *schema, proof, cases.overflow);
}

/// Proves all cases of a rule, up to the first that is unknown.
void Prover::prove_cases(RuleId id, Proof& proof) {
  const Rule& rule = rules_.rules[id];
  const bool lists = !rule.members.empty() || !rule.lists.empty();
  Cases cases;
  std::size_t& length = cases.options.lists;
  for (length = lists ? 1 : 2; length <= (lists ? 3u : 2u); ++length) {
    cases.choices = {};
    do prove_case(id, cases, proof);
    while (proof.verdict != RuleVerdict::unknown && cases.choices.next());
    if (proof.verdict == RuleVerdict::unknown) break;
  }
  if (proof.verdict == RuleVerdict::may_overflow) proof.reason = cases.overflow;
  if (lists) proof.granted.insert("lists of one to three elements");
  if (proof.cases == 0 && proof.verdict != RuleVerdict::unknown)
    leave_unknown(proof, "no general graph could be made: " + cases.none);
  for (const std::string& guard : cases.guards)
    (cases.used.contains(guard) ? proof.needed : proof.unneeded).push_back(guard);
}

Proof Prover::prove(RuleId id) {
  const auto start = std::chrono::steady_clock::now();
  const Rule& rule = rules_.rules[id];
  Proof proof;
  proof.rule = rule.name;
  proof.verdict = RuleVerdict::same_bits;
  if (rule.nodes.size() > kMostPatternOps) {
    leave_unknown(proof, fmt::format("limit: a pattern of more than {} ops", kMostPatternOps));
    return proof;
  }
  if (!proved_for_any_dtype(rules_, unguarded_, id, params_, solver_, options_.cases, proof)) {
    proof = {};
    proof.rule = rule.name;
    proof.verdict = RuleVerdict::same_bits;
    prove_cases(id, proof);
  }
  proof.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return with_orders(std::move(proof), rules_, rule);
}

}  // namespace pw::proof
