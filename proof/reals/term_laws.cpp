// The parts that all laws share.
#include "proof/reals/term_laws.hpp"

#include <fmt/format.h>

#include "proof/reals/normal_forms.hpp"

namespace pw::proof {

TermLaws::TermLaws(NormalForms& forms)
    : terms_(forms.terms_),
      integers_(forms.terms_.integers()),
      field_(forms.field_),
      ranges_(forms.ranges_),
      order_(forms.order_),
      dependence_(forms.dependence_),
      sums_(forms.sums_),
      residues_(forms.residues_),
      forms_(forms) {}

/// The name contains the dtypes, because the same op rounds differently in each. All integer dtypes
/// count as one: the operand is the exact value, and a float op sees nothing else. The operands of
/// add and mul are sorted if they have one dtype, since these ops commute bit for bit.
Fraction TermLaws::without_laws(const Term& term) {
  std::vector<FractionId> args;
  std::string of_dtypes;
  for (TermId arg : term.args) {
    args.push_back(field_.intern(forms_.value(arg)));
    of_dtypes += " " + std::string(is_integer(terms_[arg].dtype) ? "int" : name(terms_[arg].dtype));
  }
  if (among(term.function, {Function::add, Function::mul}) && args.size() == 2 &&
      args[1] < args[0] && terms_[term.args[0]].dtype == terms_[term.args[1]].dtype)
    std::swap(args[0], args[1]);
  return field_.function(
      fmt::format("{} {} of{}", name(term.function), name(term.dtype), of_dtypes), args,
      term.dtype == DType::b8);
}

}  // namespace pw::proof
