#include "studies/explore_item.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/try.hpp"
#include "dsl/syntax/suggest.hpp"
#include "graph/text/text.hpp"

namespace pw {
namespace {

using Clause = ast::Explore::Clause;

Result<const ast::Explore*> item_named(const RuleSet& set, const std::string& name) {
  std::vector<std::string> names;
  for (const ast::File& file : set.files)
    for (const ast::Item& item : file.items)
      if (const auto* explore = std::get_if<ast::Explore>(&item)) {
        if (explore->name == name) return explore;
        names.push_back(explore->name);
      }
  return fail(
      error_in("space", "PW1101", "no `explore` item is called `" + name + "`",
               did_you_mean(name, names,
                            names.empty() ? "the rules declare none"
                                          : fmt::format("use one of {}", fmt::join(names, ", ")))));
}

std::string value_text(const Expr& value) {
  return value.kind == Expr::Kind::string ? value.text : print(value);
}

/// Fills in options missing in the request from the clause.
void take(const Clause& clause, ExploreRequest& out, const ExploreRequest& stated) {
  std::vector<std::string> names;
  for (const auto& [name, span] : clause.names) names.push_back(name);
  switch (clause.kind) {
    case Clause::Kind::of:
      if (stated.pipeline.empty()) out.pipeline = names.front();
      break;
    case Clause::Kind::orders:
      if (stated.passes.empty()) out.passes = names;
      break;
    case Clause::Kind::by:
      if (stated.by.empty()) out.by = names;
      break;
    case Clause::Kind::before:
      for (std::size_t i = 0; i + 1 < names.size(); i += 2)
        out.before.emplace_back(names[i], names[i + 1]);
      break;
    case Clause::Kind::over: out.over.push_back(names); break;
    case Clause::Kind::subsets: out.subsets = true; break;
    case Clause::Kind::sample:
      if (stated.sample == 0) out.sample = static_cast<std::uint64_t>(clause.numbers[0].first);
      break;
    case Clause::Kind::seed:
      if (!stated.seed) out.seed = static_cast<std::uint64_t>(clause.numbers[0].first);
      break;
    case Clause::Kind::tokens:
      if (stated.tokens.empty())
        for (const auto& [first, last] : clause.numbers) out.tokens.push_back({first, last});
      break;
    case Clause::Kind::with: {
      const bool own = std::any_of(stated.with.begin(), stated.with.end(),
                                   [&](const auto& each) { return each.first == names.front(); });
      if (own) break;
      std::vector<std::string> values;
      for (const Expr& value : clause.values) values.push_back(value_text(value));
      out.with.emplace_back(names.front(), std::move(values));
      break;
    }
  }
}

}  // namespace

Result<ExploreRequest> with_explore_item(const LoadedRules& rules, const ExploreRequest& stated) {
  ExploreRequest out = stated;
  if (!stated.space.empty()) {
    const ast::Explore* item = PW_TRY(item_named(rules.set, stated.space));
    for (const Clause& clause : item->clauses) take(clause, out, stated);
  }
  if (out.by.empty()) out.by = {"nodes"};
  return out;
}

}  // namespace pw
