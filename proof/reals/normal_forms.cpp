// Dispatches terms to the laws of their kind and memoizes their normal forms.
#include "proof/reals/normal_forms.hpp"

namespace pw::proof {

NormalForms::NormalForms(Terms& terms, Laws laws)
    : terms_(terms),
      field_(terms.integers(), laws),
      dependence_(field_, terms.integers(),
                  [this](TermId term) -> const Fraction& { return of(term); }),
      sums_(terms.integers(), field_, ranges_, order_, dependence_) {}

const Fraction& NormalForms::of(TermId id) {
  const auto found = forms_.find(id);
  if (found != forms_.end()) return found->second;
  return forms_.emplace(id, make(id)).first->second;
}

/// Dispatches on the dtype of the result, not of the operands: a comparison of floats is a boolean.
Fraction NormalForms::make(TermId id) {
  const Term term = terms_[id];
  field_.spend(1);
  if (is_integer(term.dtype)) return integer_laws_.of(term);
  if (term.dtype == DType::b8 && term.kind == Term::Kind::call) return truth_laws_.of(term);
  if (term.dtype == DType::b8 && term.kind == Term::Kind::reduce &&
      among(term.function, {Function::sum, Function::ranks}))
    return truth_laws_.any_of(term);
  return float_laws_.of(term);
}

/// Only for integers do the residue and the value differ.
const Fraction& NormalForms::value(TermId id) {
  if (!is_integer(terms_[id].dtype)) return of(id);
  const auto known = values_.find(id);
  if (known != values_.end()) return known->second;
  return values_.emplace(id, integer_laws_.value(id)).first->second;
}

/// A cast to a width that is not larger keeps the residue, so the polynomial suffices. A wider op
/// reads the exact value: in i32, i32(a + b) of two u8 is the wrapped sum.
Fraction NormalForms::operand(TermId id, DType in) {
  const DType from = terms_[id].dtype;
  if (is_float(from)) throw TooLarge{};
  const bool narrows = is_integer(from) && size_of(from) >= size_of(in);
  return residues_.wrapped(narrows ? of(id) : value(id), in);
}

}  // namespace pw::proof
