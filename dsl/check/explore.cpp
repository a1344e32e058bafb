#include "dsl/check/explore.hpp"

#include <algorithm>

#include "dsl/build/declare_op.hpp"
#include "dsl/objectives.hpp"
#include "dsl/syntax/suggest.hpp"

namespace pw {
namespace {

using Clause = ast::Explore::Clause;

constexpr std::int64_t kMostSampled = 1'000'000;

class ExploreCheck {
 public:
  ExploreCheck(const Program& program, RuleSet& set, const ast::Explore& item, Diagnostics& out)
      : program_(program), set_(set), item_(item), out_(out) {}

  void run() {
    for (const Clause& clause : item_.clauses) {
      once(clause);
      switch (clause.kind) {
        case Clause::Kind::of:
        case Clause::Kind::orders:
        case Clause::Kind::before: strategies(clause); break;
        case Clause::Kind::over: rules(clause); break;
        case Clause::Kind::with: values(clause); break;
        case Clause::Kind::tokens: ranges(clause); break;
        case Clause::Kind::sample: sample(clause); break;
        case Clause::Kind::by: objectives(clause); break;
        case Clause::Kind::subsets:
        case Clause::Kind::seed: break;
      }
    }
  }

 private:
  void once(const Clause& clause) {
    if (clause.kind == Clause::Kind::before || clause.kind == Clause::Kind::over ||
        clause.kind == Clause::Kind::with)
      return;
    for (const Clause& other : item_.clauses) {
      if (&other == &clause) return;
      if (other.kind != clause.kind) continue;
      Diagnostic twice =
          error_at(clause.span, "PW0454", "this clause is repeated", "merge them, or remove one");
      twice.secondary.push_back({other.span, "first here"});
      out_.push_back(std::move(twice));
      return;
    }
  }

  void unknown(Span span, std::string_view what, const std::string& name,
               const std::vector<std::string>& names, std::string otherwise) {
    out_.push_back(error_at(span, "PW0455",
                            "no " + std::string(what) + " is called " + in_ticks(name),
                            did_you_mean(name, names, std::move(otherwise))));
  }

  void strategies(const Clause& clause) {
    for (const auto& [name, span] : clause.names)
      if (set_.strategy(name) == nullptr && !program_.declares(name))
        unknown(span, "pipeline, pass or rule", name, program_.strategy_names(), {});
  }

  void rules(const Clause& clause) {
    if (clause.names.size() < 2)
      out_.push_back(error_at(clause.span, "PW0456", "precedence needs at least two rules",
                              "name at least two rules: `over a, b`"));
    for (const auto& [name, span] : clause.names) {
      if (!set_.resolve(name).empty() || program_.declares(name)) continue;
      std::vector<std::string> names;
      for (const Rule& rule : set_.rules) names.push_back(rule.name);
      unknown(span, "rule", name, names, {});
    }
  }

  void values(const Clause& clause) {
    const auto& [name, span] = clause.names.front();
    const auto param = set_.params.find(name);
    if (param == set_.params.end()) {
      std::vector<std::string> names;
      for (const auto& [known, each] : set_.params) names.push_back(known);
      return unknown(span, "param", name, names, "declare it: `param " + name + ": int = 1`");
    }
    for (const Expr& value : clause.values) {
      Diagnostics wrong;
      const auto literal =
          literal_attribute(value, param->second.kind, false, set_.context->dims, wrong);
      if (literal && wrong.empty()) continue;
      out_.push_back(error_at(value.span, "PW0456",
                              "param " + in_ticks(name) + " is of kind " +
                                  std::string(pw::name(param->second.kind)) + ", and this is not"));
    }
  }

  void ranges(const Clause& clause) {
    for (const auto& [first, last] : clause.numbers)
      if (first < 1 || last < first)
        out_.push_back(error_at(clause.span, "PW0456", "a token range must ascend from at least 1",
                                "write `tokens in 1..256, 257..8192`"));
  }

  void sample(const Clause& clause) {
    const std::int64_t number = clause.numbers.front().first;
    if (number < 1 || number > kMostSampled)
      out_.push_back(
          error_at(clause.span, "PW0456",
                   "the number of samples must be from 1 to " + std::to_string(kMostSampled)));
  }

  void objectives(const Clause& clause) {
    for (const auto& [name, span] : clause.names) {
      if (std::find(kObjectiveNames.begin(), kObjectiveNames.end(), name) != kObjectiveNames.end())
        continue;
      const std::vector<std::string> names(kObjectiveNames.begin(), kObjectiveNames.end());
      std::string listed = "there are";
      for (const std::string& each : names) listed += (each == names[0] ? " " : ", ") + each;
      unknown(span, "objective", name, names, std::move(listed));
    }
  }

  const Program& program_;
  RuleSet& set_;
  const ast::Explore& item_;
  Diagnostics& out_;
};

}  // namespace

void check_explores(const Program& program, RuleSet& set, Diagnostics& out) {
  for (const ast::Explore* item : program.explores) ExploreCheck(program, set, *item, out).run();
}

}  // namespace pw
