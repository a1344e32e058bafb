#include "graph/text/json_symbols.hpp"

#include <algorithm>

#include <fmt/ranges.h>

#include "base/characters.hpp"
#include "base/printable.hpp"
#include "base/strings.hpp"
#include "graph/dtype.hpp"
#include "graph/infer/symbol_fact.hpp"
#include "graph/size_condition.hpp"

namespace pw {
namespace {

using json::Pointer;
using json::Tree;
using Kind = Tree::Kind;

bool fact_member(const Tree& fact, std::string_view key, const Pointer& pointer, std::int64_t& out,
                 json::Checks& check) {
  const Tree* value = fact.find(key);
  if (!value) return true;
  if (!check.expect(*value, Kind::integer, pointer / key)) return false;
  out = value->integer;
  return true;
}
void unknown_symbol(const std::string& symbol, const std::string& pointer, const Facts& facts,
                    json::Checks& check) {
  std::vector<std::string> known;
  for (const auto& [name, fact] : facts.symbols) known.push_back(name);
  std::string near = nearest(symbol, known);
  check.error_at(pointer, "PW1008", "the symbol `" + symbol + "` is not declared",
                 near.empty() ? "declare it in \"symbols\"" : "did you mean `" + near + "`?");
}

}  // namespace

void declare_symbols(const Tree& symbols, const Pointer& list, Facts& facts, json::Checks& check) {
  for (std::size_t i = 0; i < symbols.keys.size(); ++i) {
    const std::string symbol(symbols.keys[i]);
    const Tree& tree = symbols.items[i];
    const Pointer pointer = list / symbols.keys[i];
    if (!is_name(symbol) || dtype_named(symbol)) {
      check.error(pointer, "PW1008", "this cannot name a symbol",
                  "a symbol must be a word, such as n, and not a dtype");
      continue;
    }
    SymbolFact fact;
    if (!check.expect(tree, Kind::object, pointer) ||
        !check.known_keys(tree, {"min", "max", "multiple", "role"}, pointer))
      continue;
    if (!fact_member(tree, "min", pointer, fact.min, check) ||
        !fact_member(tree, "max", pointer, fact.max, check) ||
        !fact_member(tree, "multiple", pointer, fact.multiple, check))
      continue;
    if (const Tree* role = tree.find("role")) {
      if (!check.expect(*role, Kind::string, pointer / "role")) continue;
      fact.role = role->text;
    }
    if (const auto wrong = problem_of(facts, symbol, fact))
      check.error(wrong->member.empty() ? pointer : pointer / wrong->member, wrong->code,
                  wrong->message, wrong->help);
    facts.symbols[symbol] = fact;
  }
}

void read_conditions(const Tree& list, const Pointer& pointer, AttributeReader& dims, Facts& facts,
                     json::Checks& check) {
  SizeConditions out;
  for (std::size_t i = 0; i < list.items.size() && !check.full(); ++i) {
    const Tree& tree = list.items[i];
    const Pointer at = pointer / i;
    if (!check.expect(tree, Kind::object, at) ||
        !check.known_keys(tree, {"left", "op", "right", "text"}, at))
      continue;
    const auto text = [&](std::string_view key) -> std::string_view {
      const Tree* value = tree.find(key);
      if (value == nullptr)
        check.error(at, "PW1005", fmt::format("the member `{}` is missing", key));
      else if (check.expect(*value, Kind::string, at / key))
        return value->text;
      return "";
    };
    SizeCondition condition;
    condition.text = printable(text("text"));
    const std::string_view op = text("op"), left = text("left"), right = text("right");
    if (!check.passed()) continue;
    const auto* compare = std::find(kCompares.begin(), kCompares.end(), op);
    if (compare == kCompares.end()) {
      check.error(at / "op", "PW1005", "this is not a comparison",
                  fmt::format("write one of {}", fmt::join(kCompares, ", ")));
      continue;
    }
    condition.op = static_cast<Compare>(compare - kCompares.begin());
    if (dims.dim_text(left, at / "left", condition.left) &&
        dims.dim_text(right, at / "right", condition.right))
      out.push_back(std::move(condition));
  }
  if (!out.empty()) facts.conditions = std::make_shared<const SizeConditions>(std::move(out));
}

void check_symbols(const std::map<std::string, std::string>& used, const Facts& facts,
                   json::Checks& check) {
  for (const auto& [symbol, pointer] : used)
    if (!facts.find(symbol)) unknown_symbol(symbol, pointer, facts, check);
}

}  // namespace pw
