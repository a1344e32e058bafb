#include "import/fx/tuple_items.hpp"

#include <algorithm>

namespace pw::fx {
namespace {

constexpr std::int64_t kMaxItem = 4096;  // of a tuple

}  // namespace

std::optional<int> TupleItems::number(const std::string& tuple, const Expr& index) {
  if (index.kind == Expr::Kind::integer && index.integer >= 0 && index.integer <= kMaxItem)
    return static_cast<int>(index.integer);
  if (index.kind != Expr::Kind::string) return std::nullopt;
  Keys& keys = keys_[tuple];
  auto known = std::ranges::find(keys, index.text);
  if (known == keys.end()) known = keys.insert(known, index.text);
  const auto at = static_cast<int>(known - keys.begin());
  return at > kMaxItem ? std::nullopt : std::optional(at);
}

}  // namespace pw::fx
