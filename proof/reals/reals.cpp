// Decides equality of terms by normalization to fractions of polynomials over atoms. Two fractions
// are equal if the difference of their cross products vanishes, up to rounding of constants.
// Denominators that occur on one side only are checked at their zeros. Invariant: true implies the
// same function wherever either side is defined. The theory is not complete: equal functions may
// have different normal forms, so false means unknown. The limits of Field bound the cost. What
// rounding, overflow, and NaN do is out of scope here; see compare_floats in prove.cpp.
#include "proof/reals/reals.hpp"

#include <algorithm>
#include <iterator>

#include "proof/machine.hpp"

namespace pw::proof {

/// The factors of denominators that may be 0.
/// A denominator that is positive for all inputs is skipped. A product is 0 where one of its
/// factors is, so its factors are collected one by one. Sums are normalized, so that x - 1 and 2 x
/// - 2 are one denominator. A denominator of rsqrt is a square root.
void Reals::collect_under(TermId id, std::set<FractionId>& out, std::set<TermId>& seen) {
  if (!seen.insert(id).second) return;
  const Term term = terms_[id];
  for (TermId arg : term.args) collect_under(arg, out, seen);
  if (term.kind != Term::Kind::call || !is_float(term.dtype)) return;
  const bool inverse_root = term.function == Function::rsqrt;
  if (term.function != Function::div && !inverse_root) return;
  Field& field = forms_.field();
  Fraction by = forms_.value(term.args[inverse_root ? 0 : 1]);
  if (inverse_root) by = field.function(Atom::Kind::sqrt, {field.intern(by)});
  if (field.positive(by.over)) return;
  if (by.over.size() == 1) {
    for (const auto& [f, power] : by.over.begin()->first) {
      Polynomial alone;
      alone.emplace(Monomial{{f, 1}}, 1);
      if (!field.positive(alone)) out.insert(field.intern({alone, number(1).over}));
    }
    if (by.over.begin()->first.empty()) return;
    return;
  }
  Fraction normal;
  normal.over = by.over;
  normal.under = number(1).over;
  out.insert(field.intern(field.multiply(number(1 / lead(normal)), normal)));
}

/// If only one side divides by an input, both must agree where it is 0.
/// Sets the input to 0 and the others to eight assignments of both signs, and evaluates in f64.
/// This is a test, not a proof, and it handles only denominators that are an input. False for any
/// other denominator: x / (y - 1) * (y - 1) ⇒ x is not proved.
bool Reals::agree_at_zeros(TermId a, TermId b, const std::set<FractionId>& zeros) {
  if (!terms_.pointwise(a) || !terms_.pointwise(b)) return false;
  std::vector<TermId> inputs;
  for (std::size_t i = 0; i < terms_.size(); ++i)
    if (terms_[TermId(i)].kind == Term::Kind::read) inputs.push_back(TermId(i));
  for (FractionId zero : zeros) {
    const auto read = std::find_if(inputs.begin(), inputs.end(), [&](TermId input) {
      return !is_integer(terms_[input].dtype) && forms_.of(input) == forms_.field()[zero];
    });
    if (read == inputs.end()) return false;
    for (int sample = 0; sample < 8; ++sample) {
      std::map<TermId, Scalar> values;
      for (std::size_t i = 0; i < inputs.size(); ++i)
        values[inputs[i]] = Scalar::of(terms_[inputs[i]].dtype,
                                       ((sample >> (i % 3)) & 1 ? -1 : 1) *
                                           (1.25 + 0.37 * static_cast<double>(i) + 0.11 * sample));
      values[*read] = Scalar::of(terms_[*read].dtype, 0);
      const auto x = evaluate(terms_, a, values), y = evaluate(terms_, b, values);
      if (!x || !y || !alike(*x, *y)) return false;
    }
  }
  return true;
}

/// A fact about one integer v of a tensor is v + c ≥ 0 or c - v ≥ 0. If the interval of v excludes
/// it, no input satisfies the facts, and the case of indices is vacuous.
bool Reals::some_fact_contradicts() {
  Integers& integers = terms_.integers();
  const std::vector<Ix> facts = integers.facts();
  return std::any_of(facts.begin(), facts.end(), [&](Ix fact) {
    std::set<std::uint32_t> held;
    integers.collect_values(fact, held);
    if (held.size() != 1) return false;
    const TermId term(std::size_t{*held.begin()});
    const Ix value = integers.value(*held.begin());
    const RationalInterval range = forms_.ranges().interval(forms_.value(term));
    if (const auto more = integers.number(integers.sub(fact, value)))
      return range.below(-Rational(*more));
    const auto more = integers.number(integers.add(fact, value));
    return more && range.above(*more);
  });
}

/// A limit means unknown: the case is then examined as if it occurred.
bool Reals::facts_contradict() {
  forms_.field().restart();
  try {
    return some_fact_contradicts();
  } catch (const TooLarge&) {
    return false;
  }
}

/// Cross products avoid a greatest common divisor: p / q = r / s if p s - r q is 0. For bits and
/// for integers there are no denominators to compare.
bool Reals::equal(TermId a, TermId b) {
  too_large_ = false;
  forms_.field().restart();
  try {
    Field& field = forms_.field();
    const Fraction x = forms_.of(a), y = forms_.of(b);
    if (x.under.empty() || y.under.empty()) return false;
    if (!field.plus(field.product(x.over, y.under), field.product(y.over, x.under), -1).empty())
      return false;
    if (field.laws() == Laws::bits || !is_float(terms_[a].dtype)) return true;
    std::set<FractionId> under_a, under_b, distinct;
    std::set<TermId> seen;
    collect_under(a, under_a, seen);
    seen.clear();
    collect_under(b, under_b, seen);
    std::set_symmetric_difference(under_a.begin(), under_a.end(), under_b.begin(), under_b.end(),
                                  std::inserter(distinct, distinct.begin()));
    return distinct.empty() || agree_at_zeros(a, b, distinct);
  } catch (const TooLarge&) {
    too_large_ = true;
    return false;
  }
}

}  // namespace pw::proof
