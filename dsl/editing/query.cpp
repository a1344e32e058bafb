#include "dsl/editing/query.hpp"

#include "base/try.hpp"
#include "dsl/build/build_rule.hpp"
#include "dsl/build/patterns.hpp"

namespace pw {
namespace {

/// Makes all nodes but one context and keeps its results: a query replaces nothing.
void keep_everything(Rule& rule) {
  bool first = true;
  rule.consumed.clear();
  rule.outputs.clear();
  for (PatternNode& node : rule.nodes) {
    if (node.negation >= 0) continue;
    node.given = !first;
    if (!first) continue;
    first = false;
    for (PatternValueId v : node.results) {
      PatternValue& value = rule.values[v];
      if (value.name.empty() || value.name == "_")
        value.name = "result" + std::to_string(value.result);
      rule.outputs.push_back(value.name);
    }
  }
}

}  // namespace

Result<Query> load_query(const ContextPtr& context, const std::vector<std::string>& paths,
                         std::string_view text) {
  RuleSet rules = PW_TRY(load_rules(context, paths));
  const SourceId source = context->sources.add(
      "pattern", "rule query {\n" + std::string(text) + "\n=> query_result = query_result\n}\n");
  ast::File file = PW_TRY(parse_file(context->sources, source));
  const auto* written = file.items.empty() ? nullptr : std::get_if<ast::Rule>(&file.items.front());
  if (written == nullptr || file.items.size() != 1)
    return fail({}, "PW0470", "this is not a pattern", "write statements: `y = relu(mm(x, w))`");
  ast::Rule rule = *written;
  rule.replacement.clear();

  Diagnostics out;
  const Program program =
      collect_program(rules.files, std::vector<bool>(rules.files.size(), false), out);
  out.clear();  // the files were checked when they were loaded
  OuterNames outer;
  for (const auto& [name, param] : program.params) outer.params.insert(name);
  Query query;
  std::vector<Rule> built;
  for (const ChosenRule& choice : expand_choices(*context, program, rule, kOpenLevels, out)) {
    if (choice.frontier) continue;  // to the depth at which rules are loaded
    const RuleNames names = collect_names(*context, choice.rule, outer, out);
    std::optional<Rule> made = build_rule(*context, choice.rule, names, out);
    if (!made || has_errors(out)) continue;
    made->base_name = "query";
    made->rank = static_cast<int>(rules.rules.size() + built.size());
    keep_everything(*made);
    built.push_back(std::move(*made));
  }
  if (has_errors(out)) return tl::unexpected<Diagnostics>(std::move(out));
  query.rules = std::move(rules);
  for (Rule& made : built) query.variants.push_back(query.rules.rules.push_back(std::move(made)));
  return query;
}

}  // namespace pw
