// How many rules the library's fusions take: one a fusion, none for an eps, a group size or a
// layout of scales.
#include <numeric>
#include <set>

#include "dsl/syntax/walk.hpp"
#include "tests/verify/rules.hpp"

namespace {

using namespace pw;
using namespace pw::test;

std::size_t rules_in(const ast::File& file) {
  std::size_t count = 0;
  for (const ast::Item& item : file.items) {
    if (std::holds_alternative<ast::Rule>(item)) ++count;
    if (const auto* group = std::get_if<ast::Group>(&item)) count += group->rules.size();
  }
  return count;
}

/// The rules, families counted once, that make one of these ops.
std::set<std::string> rules_that_make(const RuleSet& rules, const std::set<std::string>& ops) {
  std::set<std::string> out;
  for (const Rule& rule : rules.rules) {
    for (const Statement& s : rule.replacement)
      visit_calls(s, [&](const Expr& call) {
        if (ops.contains(call.text)) out.insert(rule.name.substr(0, rule.name.find_first_of("[#")));
      });
  }
  return out;
}

}  // namespace

TEST_CASE("library: its fusions are at most 70 rules", "[verify][library]") {
  // The others hold what changes no number: no-ops, slices that are a split, quantisations spelled
  // out; and frozen.pwr is a set of its own, for PyTorch's option `frozen`.
  const std::set<std::string> fusions = {"activation", "attention", "collectives",
                                         "fused",      "merge",     "norm",
                                         "norm_quant", "rope",      "sequence_parallel"};
  const auto context = std::make_shared<Context>();
  const RuleSet rules = checked(load_rules(context, {"llm", "merge"}), context);
  std::size_t count = 0, files = 0;
  for (const ast::File& file : rules.files) {
    const std::string name(context->sources.name(file.source));
    const std::size_t slash = name.rfind('/') + 1;
    if (!fusions.contains(name.substr(slash, name.rfind('.') - slash))) continue;
    count += rules_in(file);
    ++files;
  }
  CHECK(files == fusions.size());
  CHECK(count >= 40);
  CHECK(count <= 70);
}

TEST_CASE("library: norms and activations with a quantisation are a rule a form",
          "[verify][library]") {
  const RuleSet rules = library_rules();
  // vLLM registers 72 patterns for the first and 16 for the second.
  const auto norms = rules_that_make(
      rules, {"rms_norm_static_fp8_quant", "fused_add_rms_norm_static_fp8_quant",
              "rms_norm_dynamic_per_token_quant", "fused_add_rms_norm_dynamic_per_token_quant",
              "rms_norm_per_block_quant", "fused_add_rms_norm_per_block_quant"});
  CHECK(norms.size() == 4);
  CHECK(rules_that_make(rules, {"silu_and_mul_per_block_quant"}).size() == 1);
}
