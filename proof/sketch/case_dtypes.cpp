// Each dtype that the guards admit is a case, or one generic dtype represents all of them.
// The eleven dtypes of each variable multiply, so a rule with three variables has up to 1331 cases.
// A generic dtype replaces them if both sides apply the same ops to the same elements.
#include "proof/sketch/case_dtypes.hpp"

#include <algorithm>
#include <iterator>

namespace pw::proof {

/// A dtype variable has one value in all its occurrences; a signature's variable has one for each
/// node.
void CaseDTypes::choose(const std::string& name, Env& env, bool own) {
  if (dtype_named(name) || env.count(name) != 0) return;
  std::vector<DType> allowed;
  for (DType dtype : kDTypes)
    if (!own || guard_allows(name, dtype)) allowed.push_back(dtype);
  if (allowed.empty()) throw Mistyped{"no dtype is allowed"};
  if (const auto any = any_dtype(name); any && allowed.size() == std::size(kDTypes)) {
    env.insert_or_assign(name, DTypeBinding{*any, false});
    ++generic_;
    return;
  }
  const std::string key = own ? "dtype " + name : fmt::format("dtype {} {}", name, site_);
  env.insert_or_assign(name, DTypeBinding{allowed[ask(key, allowed.size())], false});
}

/// Both assignments must succeed: pairs of dtypes promote differently in each, so a law that
/// depends on a promotion fails in one of them. `I` represents any integer dtype.
std::optional<DType> CaseDTypes::any_dtype(const std::string& name) const {
  using Any = SchemaOptions::AnyDType;
  if (state_.any_dtype == Any::no) return std::nullopt;
  const bool first = state_.any_dtype == Any::one_way;
  if (name == "I") return first ? DType::i32 : DType::i64;
  constexpr DType kFirst[] = {DType::bf16, DType::f16, DType::f64};
  constexpr DType kOther[] = {DType::f16, DType::f64, DType::f8e5m2};
  if (generic_ >= std::size(kFirst)) return std::nullopt;
  return first ? kFirst[generic_] : kOther[generic_];
}

/// Returns the value of an attribute that a guard may constrain.
std::size_t CaseDTypes::ask_dtype(const std::string& key, const std::string& name) {
  std::vector<std::size_t> allowed;
  for (std::size_t i = 0; i < std::size(kDTypes); ++i)
    if (guard_allows(name, kDTypes[i])) allowed.push_back(i);
  if (allowed.empty()) throw Mistyped{"no dtype is allowed"};
  return allowed[ask(key, allowed.size())];
}

/// Evaluates guards of the forms T == f32, T != f32, and T in {f16, bf16}; any other guard admits
/// every dtype, which is the safe side.
bool CaseDTypes::guard_allows(const std::string& name, DType dtype) const {
  return std::all_of(rule_.where.begin(), rule_.where.end(), [&](const Expr& guard) {
    const bool binary = guard.kind == Expr::Kind::binary;
    const bool equal = binary && guard.text == "==", unequal = binary && guard.text == "!=";
    if ((!equal && !unequal && guard.kind != Expr::Kind::in_set) ||
        guard.args[0].kind != Expr::Kind::path || guard.args[0].text != name)
      return true;
    if (unequal)
      return guard.args[1].kind != Expr::Kind::path || dtype_named(guard.args[1].text) != dtype;
    return std::any_of(guard.args.begin() + 1, guard.args.end(), [&](const Expr& choice) {
      if (choice.kind != Expr::Kind::path) return true;
      const auto named = dtype_named(choice.text);
      return !named || *named == dtype;
    });
  });
}

}  // namespace pw::proof
