// Compares one pair of outputs in stages of increasing cost; the first stage that decides ends the
// comparison: equal terms per element, laws of machine integers, laws of the reals, search for a
// counterexample, and an SMT solver for IEEE arithmetic. Where an element depends on an undecided
// index, the proof splits into both cases.
// Invariant: a verdict other than `unknown` holds for every input, under the granted assumptions.
// `rounds` also requires that the right side does not round to fewer bits than the left.
#include "proof/pair_proof.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <map>

#include <fmt/format.h>

#include "proof/reals/reals.hpp"
#include "proof/term_facts.hpp"
#include "proof/witness.hpp"

namespace pw::proof {
namespace {

constexpr int kMostSplits = 256;
constexpr std::uint32_t kLevelsOfSums = 64;
constexpr std::size_t kMostExhaustions = 2;  // limit per pair
constexpr const char* kRoundedConstants = "constants that agree to 12 digits are equal";
constexpr const char* kTooLarge = "limit: the terms of both sides grow too large to compare";

/// Returns true if the solver interprets the function.
bool known_to_solver(Function f) {
  return among(
      f, {Function::add,        Function::sub,         Function::mul,         Function::div,
          Function::fmod,       Function::remainder,   Function::neg,         Function::abs,
          Function::sqrt,       Function::maximum,     Function::minimum,     Function::cast,
          Function::select,     Function::eq,          Function::ne,          Function::lt,
          Function::le,         Function::gt,          Function::ge,          Function::bitwise_and,
          Function::bitwise_or, Function::bitwise_xor, Function::bitwise_not, Function::shift_left,
          Function::shift_right});
}

/// Compares one pair of values elementwise. Where an undecided index determines an element, both
/// cases are proved.
class PairProof {
 public:
  PairProof(Elements& elements, Terms& terms, const PairQuestion& question)
      : elements_(elements),
        terms_(terms),
        laws_(question.laws),
        left_(question.left),
        right_(question.right),
        ieee_(question.ieee) {}

  PairVerdict run() {
    out_.verdict = RuleVerdict::same_bits;
    go();
    return out_;
  }
  /// Returns the assumptions, in addition to those of the elements.
  [[nodiscard]] const std::set<std::string>& granted() const { return granted_; }

 private:
  void go() {
    if (out_.verdict == RuleVerdict::unknown) return;
    if (++steps_ > kMostSplits) return fail("limit: more than 256 cases of indices");
    Ix cut;
    try {
      compare();
      return;
    } catch (const NeedSplit& split) {
      cut = split.at_least_zero;
    } catch (const NoMeaning& none) {
      return fail(none.why);
    }
    Integers& integers = terms_.integers();
    std::set<std::uint32_t> values;
    integers.collect_values(cut, values);
    const auto varies = [&](std::uint32_t level) {
      return integers.mentions(cut, level) ||
             std::any_of(values.begin(), values.end(), [&](std::uint32_t value) {
               return terms_.mentions(TermId(std::size_t{value}), level);
             });
    };
    for (std::uint32_t level = 0; level < kLevelsOfSums; ++level)
      if (varies(level)) return fail("whether " + integers.print(cut) + " >= 0, inside of a sum");
    const Ix below = integers.sub(integers.constant(-1), cut);
    for (Ix fact : {cut, below}) {
      const auto mark = integers.mark();
      integers.assume(fact);
      elements_.forget();
      if (!integers.contradictory()) go();
      integers.back_to(mark);
    }
    elements_.forget();
  }

  void compare() {
    for (Ix extent : elements_.extents(left_))
      if (terms_.integers().number(extent) == 0) return;     // no element
    if (!elements_.positions().empty()) elements_.forget();  // those of another output
    const TermId a = elements_.general(left_);
    const std::set<Elements::Position> inside = elements_.positions();
    const TermId b = elements_.general(right_, left_);
    if (const auto outside = beyond_tables(inside)) return fail(*outside);
    if (a == b || same(a, b)) return;
    if (!laws_) return fail("the terms differ");
    if (terms_.with_exact_products(a) == terms_.with_exact_products(b)) return;
    const bool whole = computes_with_integers(terms_, a) || computes_with_integers(terms_, b);
    Reals bits(terms_, Laws::bits);
    if (whole && (bits.equal(a, b) || bits.facts_contradict())) return;
    if (is_float(terms_[a].dtype)) return compare_floats(a, b, whole);
    if (bits.too_large()) return fail(kTooLarge);
    const auto witness = WitnessSearch(terms_).difference(a, b);
    if (witness) out_.element = witness->element;
    const std::size_t most_nodes = any_float(terms_, a) || any_float(terms_, b) ? 7 : 20;
    if (!witness && (decided(query(a, b, most_nodes)) || (whole && same_for_all(a, b)))) return;
    fail(fmt::format("{} = {}", terms_.print(a), terms_.print(b)));
  }

  /// Returns what may fail if the right side reads a table at positions that are not inside because
  /// those of the left side are.
  std::optional<std::string> beyond_tables(const std::set<Elements::Position>& inside) {
    Integers& integers = terms_.integers();
    std::vector<Elements::Position> open;
    std::set_difference(elements_.positions().begin(), elements_.positions().end(), inside.begin(),
                        inside.end(), std::back_inserter(open));
    if (open.empty()) return std::nullopt;
    const auto bounds = [&](const Elements::Position& position) {
      const auto& [at, extent] = position;
      return std::array{at, integers.sub(integers.sub(extent, integers.constant(1)), at)};
    };
    std::optional<std::string> out;
    const auto mark = integers.mark();
    for (const Elements::Position& position : inside)
      for (const Ix bound : bounds(position)) integers.assume(bound);
    for (const Elements::Position& position : open)
      for (const Ix bound : bounds(position))
        if (!out && !integers.nonnegative(bound))
          out = fmt::format("the right side may read a table of {} at {}",
                            integers.print(position.second), integers.print(position.first));
    integers.back_to(mark);
    return out;
  }

  /// Compares exhaustively over a few 8-bit inputs.
  bool same_for_all(TermId a, TermId b) {
    return exhaustions_ < kMostExhaustions &&
           WitnessSearch(terms_).same_for_all(a, b, &exhaustions_);
  }

  void compare_floats(TermId a, TermId b, bool whole) {
    Reals reals(terms_);  // its forms hold under the facts of this case
    const bool real = reals.equal(a, b);
    const bool limited = reals.too_large();
    if (real && reals.identified_constants()) granted_.insert(kRoundedConstants);
    // Runs before the solver, which takes seconds.
    WitnessSearch search(terms_);
    if (const auto element = real ? search.undefined(a, b) : std::nullopt) {
      out_.element = element->element;
      return fail("one side is undefined where the other is not: " + element->element);
    }
    const auto witness = real ? search.overflow(a, b) : std::nullopt;
    if (const auto element = real && !witness ? search.flip(a, b) : std::nullopt) {
      out_.element = element->element;
      out_.flips = true;
      return fail("rounding decides a comparison: " + element->element);
    }
    const bool cancels = addend_precision(terms_, b) < computing_precision(terms_, a);
    if (witness && !cancels) {
      out_.element = witness->element;
      out_.verdict = worse(out_.verdict, RuleVerdict::may_overflow);
      return;
    }
    if (decided(query(a, b, real ? 14 : 7))) return;
    if (limited) return fail(kTooLarge);
    if (!real && whole && same_for_all(a, b)) return;
    if (!real) return fail(fmt::format("{} = {}", terms_.print(a), terms_.print(b)));
    if (cancels || least_precision(terms_, b) < least_precision(terms_, a) ||
        !reads_as_widely(terms_, b, a))
      return fail("the right side rounds to fewer bits than the left");
    const std::set<TermId> opaque = opaque_floats(terms_, a);
    if (opaque != opaque_floats(terms_, b))
      return fail("an op without a meaning here reads other numbers, and may overflow");
    if (opaque.empty() && !search.evaluated())
      return fail("limit: the terms are too large to be searched for overflow");
    if (adds_up(terms_, a) || adds_up(terms_, b)) granted_.insert(kPartialSums);
    out_.specials.rounding = true;
    out_.verdict = worse(out_.verdict, RuleVerdict::rounds);
  }

  /// Queries the solver and confirms its counterexample with the interpreter's scalar functions.
  /// The solver treats functions such as exp as uninterpreted.
  FloatAnswer query(TermId a, TermId b, std::size_t most_nodes) {
    FloatAnswer answer = ask_ieee(a, b, most_nodes);
    if (answer.kind == FloatAnswer::Kind::same || answer.element.empty()) return answer;
    std::map<TermId, Scalar> values;
    std::vector<std::pair<std::string, Scalar>> inputs;
    for (const auto& [name, text] : answer.element) {
      const auto read = std::find_if(names_.begin(), names_.end(),
                                     [&, &key = name](const auto& n) { return n.second == key; });
      if (read == names_.end()) return {};
      auto value = number_of(text);
      if (!value) return {};
      // The solver's bit vectors are signed.
      if (terms_[read->first].dtype == DType::u8 && *value < 0) *value += 256;
      values[read->first] = Scalar::of(terms_[read->first].dtype, *value);
      inputs.emplace_back(name, values[read->first]);
    }
    const auto left = evaluate_strictly(terms_, a, values),
               right = evaluate_strictly(terms_, b, values);
    if (!left || !right || same_bits(*left, *right)) return {};
    if (out_.element.empty()) out_.element = print_witness(inputs, *left, *right);
    return answer;
  }

  static std::optional<double> number_of(const std::string& text) {
    if (text == "true" || text == "false") return text == "true" ? 1 : 0;
    char* end = nullptr;
    const double out = std::strtod(text.c_str(), &end);
    return end == text.c_str() + text.size() ? std::optional(out) : std::nullopt;
  }

  /// Adopts a solver's proof for all finite inputs.
  bool decided(const FloatAnswer& answer) {
    if (answer.kind == FloatAnswer::Kind::same) return true;
    if (answer.kind != FloatAnswer::Kind::special) return false;
    out_.verdict = worse(out_.verdict, RuleVerdict::differs_only_for);
    out_.specials.nan |= answer.nan;
    out_.specials.infinity |= answer.infinity;
    out_.specials.zero_sign |= answer.zero_sign;
    return true;
  }

  /// Returns true if both are the same arithmetic on elements whose positions are equal under the
  /// facts.
  bool same(TermId a, TermId b) {
    same_.clear();
    return !terms_.integers().facts().empty() && same_parts(a, b);
  }
  bool same_parts(TermId a, TermId b) {
    if (a == b) return true;
    const auto known = same_.find({a, b});
    if (known != same_.end()) return known->second;
    const bool out = same_terms(a, b);
    same_.emplace(std::pair(a, b), out);
    return out;
  }
  bool same_terms(TermId a, TermId b) {
    Integers& integers = terms_.integers();
    const Term x = terms_[a], y = terms_[b];
    if (x.kind != y.kind || x.dtype != y.dtype || x.level != y.level ||
        std::bit_cast<std::uint64_t>(x.number) != std::bit_cast<std::uint64_t>(y.number) ||
        x.function != y.function || x.name != y.name || x.args.size() != y.args.size() ||
        x.at.size() != y.at.size())
      return false;
    for (std::size_t i = 0; i < x.at.size(); ++i)
      if (!integers.equal(x.at[i], y.at[i])) return false;
    for (std::size_t i = 0; i < x.args.size(); ++i)
      if (!same_parts(x.args[i], y.args[i])) return false;
    return true;
  }

  /// Queries the solver for small pointwise terms; only for tiny ones if they differ over the
  /// reals.
  FloatAnswer ask_ieee(TermId a, TermId b, std::size_t most_nodes) {
    if (ieee_ == nullptr || *ieee_ <= 0 || !terms_.pointwise(a) || !terms_.pointwise(b)) return {};
    if (parts_of(a, b) > most_nodes || has_function(a) || has_function(b)) return {};
    FloatQuestion question;
    std::map<TermId, std::size_t> places;
    names_.clear();
    question.left = encode(a, question, places);
    question.right = encode(b, question, places);
    FloatAnswer answer = terms_.integers().solver().same_bits(question);
    *ieee_ -= answer.kind == FloatAnswer::Kind::unknown ? 3 : 1;  // unknown answers take long
    return answer;
  }

  /// Returns true if the term has a function that is uninterpreted for the solver, such as exp. The
  /// solver spends its budget on these and rarely answers.
  [[nodiscard]] bool has_function(TermId id) const {
    bool found = false;
    terms_.walk(id, [&](TermId at, std::vector<TermId>& next) {
      const Term& term = terms_[at];
      found = found || (term.kind == Term::Kind::call && !known_to_solver(term.function));
      next.insert(next.end(), term.args.begin(), term.args.end());
    });
    return found;
  }

  [[nodiscard]] std::size_t parts_of(TermId a, TermId b) const {
    std::set<TermId> parts;
    for (TermId side : {a, b})
      terms_.walk(side, [&](TermId id, std::vector<TermId>& next) {
        parts.insert(id);
        next.insert(next.end(), terms_[id].args.begin(), terms_[id].args.end());
      });
    return parts.size();
  }

  std::size_t encode(TermId id, FloatQuestion& question, std::map<TermId, std::size_t>& places) {
    const auto found = places.find(id);
    if (found != places.end()) return found->second;
    const Term term = terms_[id];
    FloatNode node;
    node.dtype = term.dtype;
    node.kind = term.kind == Term::Kind::read     ? FloatNode::Kind::input
                : term.kind == Term::Kind::number ? FloatNode::Kind::number
                                                  : FloatNode::Kind::call;
    node.function = term.function;
    node.number = term.number;
    if (term.kind == Term::Kind::read) {
      node.name = own_name(id, question);
      names_.emplace(id, node.name);
    }
    for (TermId arg : term.args) node.operands.push_back(encode(arg, question, places));
    question.nodes.push_back(std::move(node));
    return places.emplace(id, question.nodes.size() - 1).first->second;
  }

  /// Returns the printed name of an element, unique among all elements.
  std::string own_name(TermId id, const FloatQuestion& question) const {
    std::string name = terms_.print(id);
    const auto taken = [&](const FloatNode& node) {
      return node.kind == FloatNode::Kind::input && node.name == name;
    };
    while (std::any_of(question.nodes.begin(), question.nodes.end(), taken)) name += "'";
    return name;
  }

  void fail(std::string why) {
    if (out_.verdict != RuleVerdict::unknown) out_.obligation = std::move(why);
    out_.verdict = RuleVerdict::unknown;
  }

  Elements& elements_;
  Terms& terms_;
  bool laws_;
  ValueId left_, right_;
  int* ieee_;
  PairVerdict out_;
  int steps_ = 0;
  std::size_t exhaustions_ = 0;
  std::map<std::pair<TermId, TermId>, bool> same_;
  std::map<TermId, std::string> names_;  ///< of the inputs of the last question
  std::set<std::string> granted_;
};

}  // namespace

RuleVerdict worse(RuleVerdict a, RuleVerdict b) {
  const auto rank = [](RuleVerdict v) {
    if (v == RuleVerdict::same_bits) return 0;
    if (v == RuleVerdict::rounds) return 1;
    if (v == RuleVerdict::differs_only_for) return 2;
    return v == RuleVerdict::may_overflow ? 3 : 4;
  };
  return rank(a) >= rank(b) ? a : b;
}

PairVerdict prove_pair(Elements& elements, Terms& terms, const PairQuestion& question,
                       std::set<std::string>& granted) {
  PairProof proof(elements, terms, question);
  PairVerdict verdict = proof.run();
  granted.insert(elements.granted().begin(), elements.granted().end());
  granted.insert(proof.granted().begin(), proof.granted().end());
  if (terms.any_zero()) granted.insert(kAnyZero);
  if (terms.integers().overflowed()) return {RuleVerdict::unknown, "sizes beyond 64 bits", {}, ""};
  return verdict;
}

}  // namespace pw::proof
