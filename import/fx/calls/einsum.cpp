// Contracts the operands of einsum from left to right, as PyTorch does.
#include "import/fx/einsum.hpp"

#include <algorithm>

#include "import/fx/calls/apply.hpp"

namespace pw::fx {
namespace {

struct Term {
  ValueId value;
  std::string letters;  ///< one an axis
};

bool has(std::string_view letters, char letter) {
  return letters.find(letter) != std::string_view::npos;
}

/// Roles of the letters of two terms, given the letters that are read later.
struct Roles {
  std::string batch, left, right, joined;
};
Roles roles_of(std::string_view a, std::string_view b, std::string_view kept) {
  Roles out;
  for (const char letter : a) {
    if (!has(b, letter))
      out.left += letter;
    else
      (has(kept, letter) ? out.batch : out.joined) += letter;
  }
  for (const char letter : b)
    if (!has(a, letter)) out.right += letter;
  return out;
}

DimId count_along(Emitter& emitter, const Term& term, std::string_view letters) {
  const Type* type = emitter.type_of(term.value);
  DimId out = emitter.dims().constant(1);
  for (const char letter : letters)
    if (type && out.valid()) out = emitter.dims().mul(out, type->shape[term.letters.find(letter)]);
  return out;
}

// The term with its axes in the order of `letters`, of one element where it has none of a letter.
ValueId laid_out(Maker& make, const Term& term, std::string_view letters) {
  Emitter& emitter = make.emitter();
  const Type* type = emitter.type_of(term.value);
  if (!type) return term.value;
  const Shape from = type->shape;
  std::vector<std::size_t> order;
  Shape shape;
  for (const char letter : letters) {
    const std::size_t at = term.letters.find(letter);
    if (at != std::string::npos) order.push_back(at);
    shape.push_back(at == std::string::npos ? emitter.dims().constant(1) : from[at]);
  }
  const ValueId turned = in_order(make, term.value, order);
  return shape.size() == order.size() ? turned : make("reshape", {turned}, {{"shape", shape}});
}

// Axes that nothing else reads are added up. PyTorch adds up bf16 and f16 in f32, and rounds once.
Term summed(Maker& make, Term term, std::string_view kept) {
  for (std::size_t i = term.letters.size(); i-- > 0;) {
    if (has(kept, term.letters[i])) continue;
    term.value = make("sum", {term.value}, {{"dim", static_cast<std::int64_t>(i)}});
    term.letters.erase(i, 1);
  }
  return term;
}

// An axis of one element goes with any extent of the other term's.
void widen_shared(Maker& make, Term& a, Term& b) {
  Emitter& emitter = make.emitter();
  const auto widened = [&](Term& term, const Term& other) {
    const Type *type = emitter.type_of(term.value), *like = emitter.type_of(other.value);
    if (!type || !like) return;
    Shape shape = type->shape;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const std::size_t at = other.letters.find(term.letters[i]);
      if (at != std::string::npos && emitter.dims().value(shape[i]) == 1)
        shape[i] = like->shape[at];
    }
    if (shape != type->shape) term.value = make("expand", {term.value}, {{"shape", shape}});
  };
  widened(a, b);
  widened(b, a);
}

// One product of two terms: elementwise where no axis is added up, else of matrices.
Term contracted(Maker& make, Term a, Term b, std::string_view kept) {
  Emitter& emitter = make.emitter();
  const std::string others = std::string(kept) + b.letters;
  a = summed(make, std::move(a), others);
  b = summed(make, std::move(b), std::string(kept) + a.letters);
  const Roles roles = roles_of(a.letters, b.letters, kept);
  const std::string letters = roles.batch + roles.left + roles.right;
  if (roles.joined.empty())
    return {make("mul", {laid_out(make, a, letters), laid_out(make, b, letters)}, {}), letters};
  widen_shared(make, a, b);
  if (!emitter.type_of(a.value) || !emitter.type_of(b.value))
    return {ValueId(), letters};  // `make` has failed
  Shape shape;
  for (const char letter : roles.batch + roles.left)
    shape.push_back(emitter.type_of(a.value)->shape[a.letters.find(letter)]);
  for (const char letter : roles.right)
    shape.push_back(emitter.type_of(b.value)->shape[b.letters.find(letter)]);
  const DimId batch = count_along(emitter, a, roles.batch);
  const auto matrices = [&](const Term& term, const std::string& rows, const std::string& columns) {
    const ValueId x = laid_out(make, term, roles.batch + rows + columns);
    Shape flat = {count_along(emitter, term, rows), count_along(emitter, term, columns)};
    if (!roles.batch.empty()) flat.insert(flat.begin(), batch);
    const Type* type = emitter.type_of(x);
    return type && type->shape == flat ? x : make("reshape", {x}, {{"shape", flat}});
  };
  const ValueId product =
      make(roles.batch.empty() ? "mm" : "bmm",
           {matrices(a, roles.left, roles.joined), matrices(b, roles.joined, roles.right)}, {});
  const Type* type = emitter.type_of(product);
  return {type && type->shape == shape ? product : make("reshape", {product}, {{"shape", shape}}),
          letters};
}

// The last term as the result, by its name.
Applied named_term(Maker& make, Term term, std::string_view letters, const Outputs& wanted) {
  return make.done(make("detach", {laid_out(make, term, letters)}, {}, wanted));
}

}  // namespace

Applied convert_einsum(const KnownCall& call) {
  const Value &equation = *call.find("equation"), &tensors = *call.find("tensors");
  if (equation.kind != Value::Kind::string || tensors.kind != Value::Kind::list ||
      tensors.items.empty())
    return kNotThis;
  std::vector<std::size_t> ranks;
  std::optional<DType> common;
  for (const Value& item : tensors.items) {
    const Type* type = item.kind == Value::Kind::tensor ? call.type_of(item.tensor) : nullptr;
    if (!type || (common && type->dtype != *common) || type->dtype == DType::b8) return kNotThis;
    common = type->dtype;
    ranks.push_back(type->shape.size());
  }
  const OrReason<EinsumTerms> terms = einsum_terms(equation.text, ranks);
  if (!terms) return fail(call.site.span, "PW0512", terms.error());
  Maker make(call.emitter, call.site);
  Term out{tensors.items[0].tensor, terms->operands[0]};
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    std::string kept = terms->result;
    for (std::size_t k = i + 1; k < ranks.size(); ++k) kept += terms->operands[k];
    out = contracted(make, out, {tensors.items[i].tensor, terms->operands[i]}, kept);
  }
  return named_term(make, summed(make, out, terms->result), terms->result, call.wanted);
}

// Axes of the first pair with axes of the second, in order; the remaining axes keep their order.
Applied convert_tensordot(const KnownCall& call) {
  std::optional<ValueId> x = tensor_of(call.find("self")), y = tensor_of(call.find("other"));
  const Type *a = x ? call.type_of(*x) : nullptr, *b = y ? call.type_of(*y) : nullptr;
  const std::optional<Shape> of_a = as_shape(*call.find("dims_self")),
                             of_b = as_shape(*call.find("dims_other"));
  constexpr std::size_t kMostAxes = 26;
  if (!a || !b || !of_a || !of_b || of_a->size() != of_b->size() || a->dtype != b->dtype ||
      a->dtype == DType::b8 || a->shape.size() > kMostAxes || b->shape.size() > kMostAxes)
    return kNotThis;
  Term left{*x, {}}, right{*y, {}};
  for (std::size_t i = 0; i < a->shape.size(); ++i) left.letters += static_cast<char>('a' + i);
  for (std::size_t i = 0; i < b->shape.size(); ++i) right.letters += static_cast<char>('A' + i);
  for (std::size_t i = 0; i < of_a->size(); ++i) {
    const auto from = axis_of(call.dims().value((*of_a)[i]), a->shape.size()),
               to = axis_of(call.dims().value((*of_b)[i]), b->shape.size());
    if (!from || !to || has(right.letters, left.letters[*from])) return kNotThis;
    right.letters[*to] = left.letters[*from];
  }
  std::string kept;
  for (const char letter : left.letters + right.letters)
    if (!has(left.letters, letter) || !has(right.letters, letter)) kept += letter;
  Maker make(call.emitter, call.site);
  return named_term(make, contracted(make, left, right, kept), kept, call.wanted);
}

}  // namespace pw::fx
