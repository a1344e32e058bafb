// Pointwise ops. Integers that are computed from indices stay indices, so that later ops can read
// through them.
#include <algorithm>
#include <cmath>

#include "proof/elements/node_context.hpp"

namespace pw::proof {
namespace {

class PointwiseElement : NodeContext {
 public:
  explicit PointwiseElement(NodeContext node) : NodeContext(std::move(node)) {}

  TermId run() { return pointwise(function_of(primitive())); }

 private:
  TermId pointwise(Function op) {
    std::vector<TermId> args;
    for (std::size_t i = 0; i < graph_.operand_count(node_); ++i) {
      if (!input(i).valid()) throw NoMeaning{fmt::format("an absent operand of `{}`", name(op))};
      args.push_back(operand(i, broadcast(i)));
    }
    if (const auto whole = on_indices(op, args)) return *whole;
    if (const auto bounded = extreme_of_integers(op, args)) return *bounded;
    return terms_.call(op, dtype(), std::move(args));
  }
  /// Computes integer arithmetic on indices as an index, where the result's dtype represents it.
  std::optional<TermId> on_indices(Function op, const std::vector<TermId>& args) {
    std::vector<Ix> of;
    bool any = false, all_wide = dtype() == DType::i64;  // indices that became i64 numbers
    for (TermId arg : args) {
      const Term& term = terms_[arg];
      all_wide = all_wide && term.dtype == DType::i64;
      if (term.kind == Term::Kind::index || is_position(arg)) {
        any = true;
        of.push_back(exact(arg));
      } else if (term.kind == Term::Kind::number && std::floor(term.number) == term.number &&
                 std::abs(term.number) < 1e15) {
        of.push_back(i_.constant(static_cast<std::int64_t>(term.number)));
      } else {
        return std::nullopt;
      }
    }
    if (!any && !all_wide) return std::nullopt;
    const auto whole = [&](Ix result) -> std::optional<TermId> {
      if (!represents(dtype(), result)) return std::nullopt;
      return terms_.index(result, dtype());
    };
    if (dtype() == DType::i64 || (dtype() == DType::i32 && !terms_.any_dtype())) {
      if (op == Function::cast) return whole(of[0]);
      if (op == Function::add) return whole(i_.add(of[0], of[1]));
      if (op == Function::sub) return whole(i_.sub(of[0], of[1]));
      if (op == Function::mul) return whole(i_.mul(of[0], of[1]));
      if (op == Function::neg) return whole(i_.negated(of[0]));
      if (among(op, {Function::remainder, Function::fmod}) &&
          i_.nonnegative(i_.sub(of[1], i_.constant(1))) && i_.nonnegative(of[0]))
        return terms_.index(i_.mod(of[0], of[1]), dtype());
    }
    const auto truth = [&](bool value) { return terms_.number(value ? 1 : 0, DType::b8); };
    const Ix one = i_.constant(1);
    if (op == Function::lt) return truth(at_least(i_.sub(i_.sub(of[1], of[0]), one)));
    if (op == Function::gt) return truth(at_least(i_.sub(i_.sub(of[0], of[1]), one)));
    if (op == Function::le) return truth(at_least(i_.sub(of[1], of[0])));
    if (op == Function::ge) return truth(at_least(i_.sub(of[0], of[1])));
    if (among(op, {Function::eq, Function::ne})) {
      const bool equal = at_least(i_.sub(of[0], of[1])) && at_least(i_.sub(of[1], of[0]));
      return truth(equal == (op == Function::eq));
    }
    return std::nullopt;
  }
  /// Returns true if an integer that a tensor holds is known to lie between 0 and a size.
  bool is_position(TermId term) {
    const DType dtype = terms_[term].dtype;
    if (dtype != DType::i64 && dtype != DType::i32) return false;
    const Ix value = exact(term);
    std::set<std::uint32_t> held;
    i_.collect_values(value, held);
    if (held.size() != 1 || i_.facts().empty()) return false;
    const auto bounds = [&](Ix fact) {
      std::set<std::uint32_t> left;
      i_.collect_values(i_.add(fact, value), left);
      std::set<std::uint32_t> before;
      i_.collect_values(fact, before);
      return left.empty() && !before.empty();
    };
    const std::vector<Ix> facts = i_.facts();
    return std::any_of(facts.begin(), facts.end(), bounds) && i_.nonnegative(value);
  }
  /// The extreme of two integers of which one is an index or a number; each choice is a case.
  std::optional<TermId> extreme_of_integers(Function op, const std::vector<TermId>& args) {
    if (!among(op, {Function::maximum, Function::minimum})) return std::nullopt;
    if (dtype() != DType::i64 && (dtype() != DType::i32 || terms_.any_dtype())) return std::nullopt;
    bool known = false;
    for (TermId arg : args) {
      const Term& term = terms_[arg];
      const bool literal = term.kind == Term::Kind::number &&
                           std::floor(term.number) == term.number && std::abs(term.number) < 1e15;
      if (!literal && term.kind != Term::Kind::index && term.dtype != dtype()) return std::nullopt;
      known = known || literal || term.kind == Term::Kind::index;
    }
    if (!known) return std::nullopt;
    const bool first =
        at_least(i_.sub(exact(args[0]), exact(args[1]))) == (op == Function::maximum);
    const TermId taken = args[first ? 0 : 1];
    const Term term = terms_[taken];
    if (term.kind == Term::Kind::index) return terms_.index(term.at[0], dtype());
    if (term.kind == Term::Kind::number) return terms_.number(term.number, dtype());
    return terms_.call(Function::cast, dtype(), {taken});
  }
};

}  // namespace

TermId pointwise_element(NodeContext node) { return PointwiseElement(std::move(node)).run(); }

}  // namespace pw::proof
