// The library's rules, each changed in one place so that it may be wrong: a guard dropped, operands
// swapped, an attribute, a size, a dtype, a sign, an axis, a group or a rank changed. None that
// samples refute is ever proved; PW_MUTANTS of each kind are made.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/hash.hpp"
#include "graph/text/text.hpp"
#include "pipeline/judge/judge.hpp"
#include "tests/verify/rules.hpp"
#include "verify/rule_check.hpp"

namespace {

using namespace pw;
using namespace pw::test;

using Mutation = std::function<bool(Rule&, Random&)>;

/// Every expression of a right side, outer before inner.
void each_expr(Expr& expr, const std::function<void(Expr&)>& visit) {
  visit(expr);
  for (Expr& arg : expr.args) each_expr(arg, visit);
  for (AttributeArg& attribute : expr.attributes)
    for (Expr& value : attribute.value) each_expr(value, visit);
}

/// One of the expressions that fit, chosen by the random numbers.
bool change_one(Rule& rule, Random& random, const std::function<bool(const Expr&)>& fits,
                const std::function<void(Expr&)>& change) {
  std::vector<Expr*> found;
  for (Statement& statement : rule.replacement)
    each_expr(statement.value, [&](Expr& expr) {
      if (fits(expr)) found.push_back(&expr);
    });
  if (found.empty()) return false;
  change(*found[random.below(found.size())]);
  return true;
}

bool is_call(const Expr& expr) { return expr.kind == Expr::Kind::call; }

bool change_attribute(Rule& rule, Random& random, const std::set<std::string>& names,
                      const std::function<void(Expr&)>& change) {
  std::vector<Expr*> found;
  for (Statement& statement : rule.replacement)
    each_expr(statement.value, [&](Expr& expr) {
      for (AttributeArg& attribute : expr.attributes) {
        if (!names.contains(attribute.name)) continue;
        if (attribute.value.empty()) {
          Expr value;
          value.kind = Expr::Kind::path;
          value.text = attribute.name;
          attribute.value.push_back(value);
        }
        found.push_back(&attribute.value[0]);
      }
    });
  if (found.empty()) return false;
  change(*found[random.below(found.size())]);
  return true;
}

Expr integer(std::int64_t value) {
  Expr out;
  out.kind = Expr::Kind::integer;
  out.integer = value;
  return out;
}

Expr binary(const char* op, Expr a, Expr b) {
  Expr out;
  out.kind = Expr::Kind::binary;
  out.text = op;
  out.args = {std::move(a), std::move(b)};
  return out;
}

Expr called(const char* op, Expr x) {
  Expr out;
  out.kind = Expr::Kind::call;
  out.text = op;
  out.args = {std::move(x)};
  return out;
}

const std::map<std::string, Mutation>& mutations() {
  static const std::map<std::string, Mutation> kMutations = {
      {"guard",
       [](Rule& rule, Random& random) {
         if (rule.where.empty()) return false;
         rule.where.erase(rule.where.begin() +
                          static_cast<std::ptrdiff_t>(random.below(rule.where.size())));
         return true;
       }},
      {"operands",
       [](Rule& rule, Random& random) {
         return change_one(
             rule, random, [](const Expr& e) { return is_call(e) && e.args.size() >= 2; },
             [&](Expr& e) {
               const std::size_t i = random.below(e.args.size() - 1);
               std::swap(e.args[i], e.args[i + 1]);
             });
       }},
      {"attribute",
       [](Rule& rule, Random& random) {
         return change_attribute(rule, random, {"eps", "least", "value"}, [](Expr& e) {
           Expr more;
           more.kind = Expr::Kind::real;
           more.real = 0.5;
           e = binary("+", e, more);
         });
       }},
      {"sizes",
       [](Rule& rule, Random& random) {
         return change_attribute(
             rule, random, {"sizes", "shape", "start", "end", "head", "heads_q"}, [&](Expr& e) {
               if (e.kind == Expr::Kind::list && e.args.size() >= 2)
                 std::swap(e.args.front(), e.args.back());
               else
                 e = binary("+", e, integer(1));
             });
       }},
      {"dtype",
       [](Rule& rule, Random& random) {
         return change_one(rule, random, is_call,
                           [](Expr& e) { e = called("f32", called("bf16", called("f32", e))); });
       }},
      {"sign",
       [](Rule& rule, Random& random) {
         return change_one(
             rule, random, [](const Expr& e) { return is_call(e) && !e.args.empty(); },
             [&](Expr& e) {
               const std::size_t i = random.below(e.args.size());
               if (e.args[i].kind != Expr::Kind::spread) e.args[i] = called("neg", e.args[i]);
             });
       }},
      {"axis",
       [](Rule& rule, Random& random) {
         return change_attribute(rule, random, {"dim", "scatter_dim", "gather_dim"}, [](Expr& e) {
           e = e.kind == Expr::Kind::integer && e.integer == 0 ? integer(1) : integer(0);
         });
       }},
      {"group",
       [](Rule& rule, Random& random) {
         return change_attribute(rule, random, {"group"}, [](Expr& e) {
           if (e.kind == Expr::Kind::string || e.kind == Expr::Kind::path) {
             e.kind = Expr::Kind::string;
             e.text = "another";
           }
         });
       }},
      {"rank",
       [](Rule& rule, Random& random) {
         return change_one(
             rule, random,
             [](const Expr& e) {
               return is_call(e) &&
                      (e.text == "reduce_scatter" || e.text == "shard" || e.text == "all_gather");
             },
             [](Expr& e) { e.text = e.text == "shard" ? "reduce_scatter" : "shard"; });
       }},
  };
  return kMutations;
}

std::size_t wanted() {
  const char* text = std::getenv("PW_MUTANTS");
  return text == nullptr ? 10 : static_cast<std::size_t>(std::atoi(text));
}

/// Identifies a mutant among those of its rule.
std::string text_of(const Rule& rule) {
  std::string out = rule.name;
  for (const Expr& guard : rule.where) out += "\n" + print(guard);
  for (const Statement& statement : rule.replacement) out += "\n" + print(statement);
  return out;
}

/// The samples that say whether a mutant is one.
RuleCheckOptions few_samples() {
  RuleCheckOptions few;
  few.instances.wanted = 2;
  few.instances.attempts = 1500;
  few.instances.refusals = 20;
  few.ranks = {2};
  return few;
}

/// Of one kind: what came of those that samples refute.
struct Row {
  std::size_t tried = 0, made = 0, refuted = 0, proved = 0;
  std::string left;  ///< those that `prove` does not refute
};

RuleJudgement judge_alone(const LoadedRules& rules, const std::string& name) {
  auto judgements = judge_rules(rules, {name}, {}, Log());
  REQUIRE(judgements);
  REQUIRE(judgements->size() == 1);
  return std::move(judgements->front());
}

constexpr std::uint64_t kSeed = 20261124;

Row row_of(const std::string& kind, const Mutation& mutate, LoadedRules& rules) {
  Row row;
  Random random(combine(kSeed, hash_text(kind)));
  std::set<std::string> seen;
  for (std::size_t tries = 0; tries < 4000 && row.made < wanted(); ++tries) {
    const RuleId id(random.below(rules.set.rules.size()));
    Rule& rule = rules.set.rules[id];
    const Rule original = rule;
    if (!original.frontier && mutate(rule, random) && seen.insert(text_of(rule)).second) {
      ++row.tried;
      const RuleCheck check = check_rule(rules.set, id, rules.params, few_samples());
      if (check.judgement.verdict == RuleVerdict::refuted) {
        ++row.made;
        const RuleJudgement proof = judge_alone(rules, rule.name);
        row.refuted += proof.verdict == RuleVerdict::refuted ? 1 : 0;
        if (proof.proof.proved()) {
          ++row.proved;
          FAIL_CHECK(kind << ", proved: " << text_of(rule) << "\n"
                          << name(proof.proof.verdict) << "\n"
                          << check.judgement.reason);
        } else if (proof.verdict != RuleVerdict::refuted) {
          row.left += fmt::format("\n  {}: {} ({})", kind, rule.name, proof.reason);
        }
      }
    }
    rule = original;
  }
  return row;
}

}  // namespace

TEST_CASE("mutants: none that samples refute is proved, nearly all are refuted", "[proof]") {
  LoadedRules rules{library_rules(), {}};
  rules.params = bind_params(rules.set, {}).value();
  Row all;
  std::string table =
      fmt::format("seed {}, kinds of mutants of the library:\n{:<12}{:>8}{:>10}{:>10}{:>9}", kSeed,
                  "kind", "tried", "mutants", "refuted", "proved");
  for (const auto& [kind, mutate] : mutations()) {
    const Row row = row_of(kind, mutate, rules);
    table += fmt::format("\n{:<12}{:>8}{:>10}{:>10}{:>9}", kind, row.tried, row.made, row.refuted,
                         row.proved);
    all.made += row.made;
    all.refuted += row.refuted;
    all.left += row.left;
    CHECK(row.made >= std::min<std::size_t>(wanted(), 10));
  }
  WARN(table << "\nof " << all.made << ", refuted by `prove`: " << all.refuted << all.left);
  CHECK(all.refuted * 100 >= all.made * 95);
}
