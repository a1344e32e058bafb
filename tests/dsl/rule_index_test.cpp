// RuleIndex answers as RuleSet::resolve does, for every name there is and for many there are not.
#include "dsl/rule_index.hpp"

#include <set>

#include "dsl/dsl.hpp"
#include "dsl/embedded_rules.hpp"
#include "tests/catch.hpp"

using namespace pw;

namespace {

/// All of the library, and families, rows, variants and frontiers of every kind.
RuleSet all_rules(const ContextPtr& context) {
  std::vector<std::string> names;
  for (const auto& file : embedded_rules()) {
    const std::string path(file.path);
    if (path.rfind("ops/", 0) != 0 && path.rfind("import/", 0) != 0)
      names.push_back(path.substr(0, path.size() - 4));
  }
  Result<RuleSet> rules = load_rules(context, names);
  if (!rules) FAIL(render(rules.error(), context->sources));
  return std::move(*rules);
}

/// A name, parts of it, and names close to it.
void add_names(const std::string& name, std::set<std::string>& out) {
  for (const std::string& some :
       {name, name.substr(0, name.find('#')), name.substr(0, name.find('[')),
        name.substr(0, name.find('.')), name.substr(name.find('.') + 1)})
    for (const char* end :
         {"", ".*", "[*]", "[0]", "[nothing]", "#0", "#1", "#+0", ".", "[", "*", "x"})
      out.insert(some + end);
  if (!name.empty()) out.insert(name.substr(0, name.size() - 1));
}

void require_the_same(const RuleSet& rules) {
  const RuleIndex index(rules);
  std::set<std::string> names{"", "*", ".*", "[*]", "no_such_rule", "no.such", "no.such.*"};
  for (const Rule& rule : rules.rules) {
    for (const std::string& name :
         {rule.name, rule.base_name, rule.group, rule.group + "." + rule.base_name})
      add_names(name, names);
  }
  for (const auto* table : {&rules.passes, &rules.pipelines})
    for (const auto& [name, strategy] : *table) add_names(name, names);
  std::size_t known = 0;
  for (const std::string& name : names) {
    INFO("`" << name << "`");
    const std::vector<RuleId> right = rules.resolve(name);
    CHECK(index.resolve(name) == right);
    if (!right.empty()) ++known;
  }
  CHECK(known > rules.rules.size() / 2);
  CHECK(known < names.size());
}

}  // namespace

TEST_CASE("rule index: the library's rules, groups, families and passes", "[dsl]") {
  const RuleSet rules = all_rules(std::make_shared<Context>());
  REQUIRE(rules.rules.size() > 100);
  require_the_same(rules);
}

TEST_CASE("rule index: rows, variants and frontiers, in a group and outside of one", "[dsl]") {
  const ContextPtr context = std::make_shared<Context>();
  const auto rules = load_rule_texts(context, {{"r.pwr", R"(
table Acts (act) { r: relu  n: silu }
rule row for k in Acts { y = k.act(abs(x)) => y = sin(x) }
group g {
  rule plain { y = relu(relu(x)) => y = relu(x) }
  rule optional { y = neg(cast?(x)) => y = abs(x) }
}
rule plain { y = exp(relu(x)) => y = relu(x) }
rule both_ways { y = neg(abs(x)) <=> y = neg(relu(x)) }
pattern rec views(x) -> y { y = x | y = reshape(views(x)){..} }
rule deep { y = relu(views(abs(x)))  =>  y = reshape(abs(x)){shape = y.shape} }
)"}});
  if (!rules) FAIL(render(rules.error(), context->sources));
  require_the_same(*rules);
}
