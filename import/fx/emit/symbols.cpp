#include "import/fx/emit/symbols.hpp"

#include <algorithm>

namespace pw::fx {

void Symbols::add(const std::string& name, std::int64_t count) {
  old_[name] = count;
  constants_[name] = context_.dims.constant(count);
  ++changes_;
}

void Symbols::merge(const std::string& name, DimId to) {
  merged_[name] = to;
  rename(name, to);
  for (auto& [symbol, now] : merged_) now = context_.dims.substitute(now, merged_);
}

DimId Symbols::merged(DimId dim) {
  return merged_.empty() ? dim : context_.dims.substitute(dim, merged_);
}

DimId Symbols::to_old(DimId dim) {
  return old_.empty() ? dim : context_.dims.substitute(dim, constants_);
}

TypeId Symbols::to_old(TypeId type) {
  if (old_.empty() || type == Types::unknown()) return type;
  Type old = context_.types[type];
  for (DimId& dim : old.shape) dim = to_old(dim);
  return context_.types.get(old.dtype, old.shape);
}

DimId Symbols::renamed(DimId dim) {
  return renamed_.empty() ? dim : context_.dims.substitute(dim, renamed_);
}

TypeId Symbols::renamed(TypeId type) {
  if (renamed_.empty() || type == Types::unknown()) return type;
  Type changed = context_.types[type];
  for (DimId& dim : changed.shape) dim = renamed(dim);
  return context_.types.get(changed.dtype, changed.shape);
}

bool Symbols::in(DimId dim) const {
  if (old_.empty() || context_.dims.value(dim)) return false;
  std::vector<std::string> symbols = context_.dims.symbols(dim);
  return std::ranges::any_of(symbols, [&](const std::string& s) { return old_.contains(s); });
}

bool Symbols::in(const Shape& shape) const {
  return std::ranges::any_of(shape, [&](DimId dim) { return in(dim); });
}

std::vector<DimId> Symbols::standing_for(DimId literal) const {
  std::vector<DimId> out;
  std::optional<std::int64_t> value = context_.dims.value(literal);
  for (const auto& [name, count] : old_)
    if (value == count) out.push_back(context_.dims.symbol(name));
  return out;
}

DimId Symbols::product(const Shape& shape, std::size_t except) {
  DimId out = context_.dims.constant(1);
  for (std::size_t i = 0; i < shape.size() && out.valid(); ++i)
    if (i != except) out = context_.dims.mul(out, shape[i]);
  return out;
}

bool Symbols::views(DimId total, const Shape& shape) {
  Dims& dims = context_.dims;
  auto hole = std::ranges::find_if(shape, [&](DimId d) { return dims.value(d) == -1; });
  if (hole == shape.end()) return product(shape) == total;
  DimId rest = product(shape, static_cast<std::size_t>(hole - shape.begin()));
  if (!rest.valid() || dims.value(rest) == 0) return false;
  DimId quotient = dims.div(total, rest);
  return quotient.valid() && dims.mul(quotient, rest) == total;
}

// One literal that the element count determines: view(x: [n, 4, 8], [65536, 16]) is [2*n, 16].
std::optional<Shape> Symbols::solve_one(DimId total, const Shape& literal) {
  Dims& dims = context_.dims;
  for (std::size_t i = 0; i < literal.size(); ++i) {
    if (dims.value(literal[i]).value_or(0) <= 0) continue;
    DimId rest = product(literal, i);
    if (!rest.valid() || dims.value(rest) == 0) continue;
    DimId quotient = dims.div(total, rest);
    if (!quotient.valid() || dims.mul(quotient, rest) != total || to_old(quotient) != literal[i])
      continue;
    Shape out = literal;
    out[i] = quotient;
    return out;
  }
  return std::nullopt;
}

// Literals equal to an old count become symbols: the fewest that fit, among those the choice that
// keeps most dims of `from` at their places, and of those the first.
std::optional<Shape> Symbols::replace_equal(const Shape& from, DimId total, const Shape& literal) {
  std::vector<std::pair<std::size_t, DimId>> choices;
  for (std::size_t i = 0; i < literal.size(); ++i)
    for (DimId symbol : standing_for(literal[i])) choices.emplace_back(i, symbol);
  constexpr std::size_t kMaxChoices = 8;
  if (choices.size() > kMaxChoices) choices.resize(kMaxChoices);
  std::optional<Shape> best;
  std::pair<int, int> least{kMaxChoices + 1, 0};
  for (unsigned pick = 1; pick < (1u << choices.size()); ++pick) {
    Shape out = literal;
    for (std::size_t c = 0; c < choices.size(); ++c)
      if (pick & (1u << c)) out[choices[c].first] = choices[c].second;
    int kept = 0;
    for (std::size_t i = 0; i < out.size() && i < from.size(); ++i)
      kept += out[i] == from[i] ? 1 : 0;
    std::pair<int, int> cost{__builtin_popcount(pick), -kept};
    if (cost < least && views(total, out)) {
      best = std::move(out);
      least = cost;
    }
  }
  return best;
}

std::optional<Shape> Symbols::fit_view(const Shape& from, const Shape& literal) {
  DimId total = product(from);
  if (!total.valid()) return std::nullopt;
  if (views(total, literal)) return literal;
  if (old_.empty()) return std::nullopt;
  if (std::optional<Shape> out = replace_equal(from, total, literal)) return out;
  bool hole = std::ranges::any_of(literal, [&](DimId d) { return context_.dims.value(d) == -1; });
  return hole ? std::nullopt : solve_one(total, literal);
}

}  // namespace pw::fx
