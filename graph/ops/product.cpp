#include "graph/ops/product.hpp"

namespace pw {
namespace {

/// The dims of an operand or result of at least two dims, as written; else null.
template <class Decl>
const std::vector<Expr>* dims_of(const Decl& decl) {
  if (!decl.type || decl.type->any_shape || decl.type->dims.size() < 2) return nullptr;
  return &decl.type->dims;
}

bool same_name(const Expr& a, const Expr& b) {
  return a.kind == Expr::Kind::path && b.kind == Expr::Kind::path && a.text == b.text;
}

bool contracts(const std::vector<Expr>& a, const std::vector<Expr>& b, const std::vector<Expr>& y) {
  return b.size() == 2 && same_name(a.back(), b.front()) && same_name(b.back(), y.back()) &&
         !same_name(a.back(), y.back());
}

}  // namespace

std::optional<Product> product_of(const Op& op) {
  if (op.results.empty() || op.traits.splitting) return std::nullopt;
  const auto* y = dims_of(op.results.front());
  if (y == nullptr) return std::nullopt;
  for (std::size_t i = 0; i < op.operands.size(); ++i)
    for (std::size_t j = 0; j < op.operands.size(); ++j) {
      const auto *a = dims_of(op.operands[i]), *b = dims_of(op.operands[j]);
      if (i != j && a != nullptr && b != nullptr && contracts(*a, *b, *y)) return Product{i, j};
    }
  return std::nullopt;
}

}  // namespace pw
