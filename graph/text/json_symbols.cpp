#include "graph/text/json_symbols.hpp"

#include <algorithm>

#include "base/characters.hpp"
#include "base/strings.hpp"
#include "graph/dtype.hpp"
#include "graph/infer/symbol_fact.hpp"

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
void check_symbols(const std::map<std::string, std::string>& used, const Facts& facts,
                   json::Checks& check) {
  for (const auto& [symbol, pointer] : used)
    if (!facts.find(symbol)) unknown_symbol(symbol, pointer, facts, check);
}

}  // namespace pw
