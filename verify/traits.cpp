// Exports check_traits.
#include "verify/traits.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dsl/dsl.hpp"
#include "graph/attribute.hpp"

namespace pw {
namespace {

/// `f(x0, x1, x2)`, the first two as given.
std::string call_of(const Op& op, const std::string& first, const std::string& second) {
  std::string text = fmt::format("{}({}, {}", op.name, first, second);
  for (std::size_t i = 2; i < op.operands.size(); ++i) text += fmt::format(", x{}", i);
  text += ")";
  return op.attributes.empty() ? text : text + "{..}";
}

std::string results_of(const Op& op) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < op.results.size(); ++i) names.push_back(fmt::format("y{}", i));
  return fmt::format("{}", fmt::join(names, ", "));
}

/// The trait as a rule.
std::string rule_of(const Op& op, const std::string& trait) {
  const std::string results = results_of(op);
  const std::string before =
      trait == "commutative" ? call_of(op, "x0", "x1") : call_of(op, call_of(op, "x0", "x1"), "z");
  const std::string after =
      trait == "commutative" ? call_of(op, "x1", "x0") : call_of(op, "x0", call_of(op, "x1", "z"));
  return fmt::format("rule r {{ {} = {} => {} = {} }} pass p = once {{ r }}", results, before,
                     results, after);
}

/// Nothing where the rule cannot be written, as for an op with a name that is no word.
void check_trait(const ContextPtr& context, const Op& op, const std::string& trait,
                 const RuleCheckOptions& options, std::vector<TraitCheck>& out) {
  LoadOptions load;
  load.library = false;
  const auto rules = load_rule_texts(context, {{trait + ".pwr", rule_of(op, trait)}}, load);
  if (!rules) return;
  TraitCheck found{op.name, trait, check_rule(*rules, rules->resolve("r").at(0), {}, options)};
  found.check.rule = trait + " " + op.name;
  out.push_back(std::move(found));
}

}  // namespace

std::vector<TraitCheck> check_traits(const RuleSet& rules, const RuleCheckOptions& options) {
  std::vector<TraitCheck> out;
  RuleCheckOptions ordinary = options;
  ordinary.contents = {Contents::ordinary};
  for (const ast::File& file : rules.files) {
    for (const ast::Item& item : file.items) {
      const auto* declared = std::get_if<ast::OpItem>(&item);
      const OpId id = declared ? rules.context->ops.find(declared->name) : OpId();
      if (!id.valid()) continue;
      const Op op = rules.context->ops[id];  // a copy: loading a rule may grow the table
      if (!op.has_body() || op.operands.size() < 2 || op.operands.back().variadic) continue;
      if (op.traits.commutative) check_trait(rules.context, op, "commutative", options, out);
      if (op.traits.associative && op.results.size() == 1)
        check_trait(rules.context, op, "associative", ordinary, out);
    }
  }
  return out;
}

}  // namespace pw
