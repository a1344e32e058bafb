#include "import/fx/emit/assumptions.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "graph/infer/symbol_fact.hpp"

namespace pw::fx {
namespace {

constexpr std::size_t kMostGuesses = 9;  // about how bounds of slices compare with a symbol

// Returns the facts under which the extent is at most or at least this large; nothing if no range
// of one symbol expresses that, or no value remains.
std::optional<Facts> narrowed(Dims& dims, Facts facts, Compare op, DimId size, std::int64_t bound) {
  const std::vector<std::string> symbols = dims.symbols(size);
  if (symbols.size() != 1) return std::nullopt;
  const auto fact = facts.symbols.find(symbols.front());
  const std::optional<DimLine> line = dims.rising(size, symbols.front(), facts);
  if (fact == facts.symbols.end() || !line) return std::nullopt;
  const std::optional<std::int64_t> factor = dims.value(line->factor),
                                    rest = dims.value(line->rest);
  if (!factor || !rest || *factor < 1) return std::nullopt;
  const std::int64_t left = bound - *rest;
  if (op == Compare::le) {
    if (left < 0) return std::nullopt;
    fact->second.max = std::min(fact->second.max, left / *factor);
  } else {
    const std::int64_t least = left <= 0 ? 0 : (left + *factor - 1) / *factor;
    fact->second.min = std::max(fact->second.min, least);
  }
  return least_value(fact->second) <= greatest_value(fact->second) ? std::optional(facts)
                                                                   : std::nullopt;
}

}  // namespace

bool Assumptions::assume(Compare op, DimId size, std::int64_t bound, std::string_view why) {
  Dims& dims = context_.dims;
  if (dims.prove(op, size, dims.constant(bound), graph_.facts) == Truth::yes) return true;
  std::optional<Facts> facts = narrowed(dims, graph_.facts, op, size, bound);
  if (!facts) return false;
  effects_.once();
  graph_.facts = std::move(*facts);
  report_.notes.push_back(fmt::format("assumed: {} {} {}, because {}; other sizes are refused",
                                      dims.print(size), op == Compare::le ? "<=" : ">=", bound,
                                      why));
  return true;
}

// Returns the extents under the facts, if these make the extents equal the stated ones and change
// them.
std::optional<Shape> Assumptions::settled(const Type& have, const Type& stated,
                                          const Facts& facts) {
  Shape out;
  for (std::size_t i = 0; i < have.shape.size(); ++i) {
    out.push_back(context_.dims.decided(have.shape[i], facts));
    if (out[i] != stated.shape[i] && symbols_.to_old(out[i]) != stated.shape[i])
      return std::nullopt;
  }
  return out == have.shape ? std::nullopt : std::optional(std::move(out));
}

// A stated type is trusted: if it depends on how the bounds of a slice compare with a symbol, it
// determines that order.
bool Assumptions::assume_stated(ValueId value, const Wanted& wanted) {
  if (thresholds_.empty()) return false;
  const Type have = context_.types[graph_.type(value)], stated = context_.types[wanted.type];
  if (have.dtype != stated.dtype || have.shape.size() != stated.shape.size()) return false;
  struct Guess {
    Compare op;
    DimId size;
    std::int64_t bound;
  };
  std::vector<std::vector<Guess>> guesses{{}};
  for (auto t = thresholds_.rbegin(); t != thresholds_.rend() && guesses.size() < kMostGuesses; ++t)
    for (const Compare op : {Compare::le, Compare::ge})
      guesses.push_back({{op, t->first, t->second}});
  for (std::size_t i = 1, single = guesses.size(); i < single; ++i)
    for (std::size_t k = i + 1; k < single; ++k)
      guesses.push_back({guesses[i].front(), guesses[k].front()});
  const std::string why =
      fmt::format("`{}` is stated as {}", wanted.name, context_.types.print(wanted.type));
  for (const std::vector<Guess>& all : guesses) {
    std::optional<Facts> facts = graph_.facts;
    for (const Guess& guess : all)
      if (facts) facts = narrowed(context_.dims, *facts, guess.op, guess.size, guess.bound);
    const std::optional<Shape> shape = facts ? settled(have, stated, *facts) : std::nullopt;
    if (!shape) continue;
    for (const Guess& guess : all) assume(guess.op, guess.size, guess.bound, why);
    graph_.set_type(value, context_.types.get(have.dtype, *shape));
    return true;
  }
  return false;
}

}  // namespace pw::fx
