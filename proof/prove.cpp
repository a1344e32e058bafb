// Proves rules. Each case of a rule becomes a graph with both sides (schema.cpp); Choices
// enumerates the cases depth first. An output pair is compared in stages of increasing cost, and
// the first stage that decides ends the comparison: value numbering, equal terms per element, laws
// of machine integers, laws of the reals, search for a counterexample, and an SMT solver for IEEE
// arithmetic. Where an element depends on an undecided index, the proof splits into both cases.
// Invariant: a verdict other than `unknown` holds for every instance of the case, under the granted
// assumptions. `rounds` also requires that the right side does not round to fewer bits than the
// left.
#include "proof/prove.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <map>

#include <fmt/format.h>

#include "base/try.hpp"
#include "graph/build.hpp"
#include "graph/text/text.hpp"
#include "proof/elements.hpp"
#include "proof/fold.hpp"
#include "proof/reals/reals.hpp"
#include "proof/schema.hpp"
#include "proof/witness.hpp"

namespace pw::proof {
namespace {

constexpr int kMostSplits = 256;
constexpr std::uint32_t kLevelsOfSums = 64;
constexpr std::size_t kMostPatternOps = 256;
constexpr std::size_t kMostExhaustions = 2;  // limit per pair
constexpr const char* kRoundedConstants = "constants that agree to 12 digits are equal";
constexpr const char* kTooLarge = "limit: the terms of both sides grow too large to compare";

RuleVerdict worse(RuleVerdict a, RuleVerdict b) {
  const auto rank = [](RuleVerdict v) {
    if (v == RuleVerdict::same_bits) return 0;
    if (v == RuleVerdict::rounds) return 1;
    if (v == RuleVerdict::differs_only_for) return 2;
    return v == RuleVerdict::may_overflow ? 3 : 4;
  };
  return rank(a) >= rank(b) ? a : b;
}

constexpr int kMostBits = 53;

/// Returns true if the result is an operand, or its negative or magnitude.
bool is_kept(const Terms& terms, const Term& term) {
  return among(term.function, {Function::neg, Function::abs, Function::maximum, Function::minimum,
                               Function::select, Function::amax, Function::amin}) ||
         (term.function == Function::cast && holds_all(term.dtype, terms[term.args[0]].dtype));
}

/// Returns the least mantissa width of any rounding in the term.
int least_precision(const Terms& terms, TermId id) {
  int least = kMostBits;
  terms.walk(id, [&](TermId at, std::vector<TermId>& next) {
    const Term& term = terms[at];
    next.insert(next.end(), term.args.begin(), term.args.end());
    const bool computed = term.kind == Term::Kind::call || term.kind == Term::Kind::reduce;
    if (computed && !is_kept(terms, term) && is_float(term.dtype))
      least = std::min(least, mantissa_bits(term.dtype));
  });
  return least;
}

TermId without_casts(const Terms& terms, TermId id) {
  while (terms[id].function == Function::cast && terms[id].args.size() == 1) id = terms[id].args[0];
  return id;
}

/// Returns the least mantissa width that the term computes with. Casts of the result count only if
/// there is nothing else.
int computing_precision(const Terms& terms, TermId id) {
  const TermId computed = without_casts(terms, id);
  return least_precision(terms, terms[computed].args.empty() ? id : computed);
}

bool adds(const Term& term) {
  return is_float(term.dtype) && (term.kind == Term::Kind::reduce ||
                                  among(term.function, {Function::add, Function::sub,
                                                        Function::addmm, Function::join_sum}));
}

/// Returns the least mantissa width of a rounding before an addition. Addends that nearly cancel
/// magnify such an error; factors do not.
int addend_precision(const Terms& terms, TermId id) {
  int least = kMostBits;
  terms.walk(id, [&](TermId at, std::vector<TermId>& next) {
    const Term& term = terms[at];
    next.insert(next.end(), term.args.begin(), term.args.end());
    if (!adds(term)) return;
    for (TermId arg : term.args) least = std::min(least, least_precision(terms, arg));
  });
  return least;
}

std::set<TermId> reads_of(const Terms& terms, TermId id) {
  std::set<TermId> reads;
  terms.walk(id, [&](TermId at, std::vector<TermId>& next) {
    const Term& term = terms[at];
    if (term.args.empty() && term.kind != Term::Kind::number) reads.insert(at);
    next.insert(next.end(), term.args.begin(), term.args.end());
  });
  return reads;
}

/// Collects inputs that some path reads in f64; the final rounding of the result is ignored.
std::set<TermId> read_as_f64(const Terms& terms, TermId id) {
  id = without_casts(terms, id);
  std::set<TermId> reads;
  terms.walk(id, [&](TermId at, std::vector<TermId>& next) {
    const Term& term = terms[at];
    if (is_float(term.dtype) && term.dtype != DType::f64) return;
    if (term.args.empty() && term.kind != Term::Kind::number) reads.insert(at);
    next.insert(next.end(), term.args.begin(), term.args.end());
  });
  return reads;
}

/// Returns true if `b` narrows no f64 that `a` computes with, which may overflow.
bool reads_as_widely(const Terms& terms, TermId b, TermId a) {
  const std::set<TermId> left = read_as_f64(terms, a), right = read_as_f64(terms, b);
  std::set<std::string> narrowed;  // inputs with a narrowed element
  for (TermId read : reads_of(terms, b))
    if (!right.contains(read)) narrowed.insert(terms[read].name);
  return std::all_of(left.begin(), left.end(), [&](TermId read) {
    return right.contains(read) || !narrowed.contains(terms[read].name);
  });
}

/// Returns the opaque ops in the term with float results.
std::set<TermId> opaque_floats(const Terms& terms, TermId id) {
  std::set<TermId> found;
  terms.walk(id, [&](TermId at, std::vector<TermId>& next) {
    const Term& term = terms[at];
    next.insert(next.end(), term.args.begin(), term.args.end());
    if (term.kind == Term::Kind::opaque && is_float(term.dtype)) found.insert(at);
  });
  return found;
}

/// Returns true if the term contains a sum.
bool adds_up(const Terms& terms, TermId id) {
  bool found = false;
  terms.walk(id, [&](TermId at, std::vector<TermId>& next) {
    const Term& term = terms[at];
    found = found || adds(term);
    if (!found) next.insert(next.end(), term.args.begin(), term.args.end());
  });
  return found;
}

bool any_float(const Terms& terms, TermId id) {
  bool found = false;
  terms.walk(id, [&](TermId at, std::vector<TermId>& next) {
    found = found || is_float(terms[at].dtype);
    next.insert(next.end(), terms[at].args.begin(), terms[at].args.end());
  });
  return found;
}

/// Returns true if the term computes with integers; only then do laws preserve every bit.
bool computes_with_integers(const Terms& terms, TermId id) {
  bool found = false;
  terms.walk(id, [&](TermId at, std::vector<TermId>& next) {
    const Term& term = terms[at];
    const auto whole = [&](TermId arg) { return !is_float(terms[arg].dtype); };
    found = found ||
            (!term.args.empty() &&
             (!is_float(term.dtype) || std::any_of(term.args.begin(), term.args.end(), whole)));
    if (!found) next.insert(next.end(), term.args.begin(), term.args.end());
  });
  return found;
}

/// Returns true if the solver interprets the function.
bool known_to_solver(Function f) {
  return among(
      f, {Function::add,        Function::sub,         Function::mul,        Function::div,
          Function::fmod,       Function::remainder,   Function::neg,        Function::abs,
          Function::sqrt,       Function::maximum,     Function::minimum,    Function::cast,
          Function::select,     Function::eq,          Function::ne,         Function::lt,
          Function::le,         Function::gt,          Function::ge,         Function::bitwise_and,
          Function::bitwise_or, Function::bitwise_xor, Function::bitwise_not});
}

/// Compares one pair of values elementwise. Where an undecided index determines an element, both
/// cases are proved.
class PairProof {
 public:
  /// Without `laws` equal terms alone are equal.
  PairProof(Elements& elements, Terms& terms, bool laws, ValueId left, ValueId right, int* ieee)
      : elements_(elements), terms_(terms), laws_(laws), left_(left), right_(right), ieee_(ieee) {}

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
    if (!witness && (decided(asked(a, b, most_nodes)) || (whole && same_for_all(a, b)))) return;
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
    if (decided(asked(a, b, real ? 14 : 7))) return;
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
  FloatAnswer asked(TermId a, TermId b, std::size_t most_nodes) {
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

/// Returns the multiset of the nodes' effects.
std::vector<std::string> effects_of(const Graph& graph, const std::vector<NodeId>& nodes) {
  const Numbering numbers(graph);
  std::vector<std::string> out;
  for (NodeId node : nodes) {
    if (!graph.alive(node) || !graph.op_of(node).traits.effect) continue;
    out.push_back(fmt::format("{} {}", graph.op_of(node).name, numbers.of(node)));
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// Inlines ops until no body contains an effect; updates the list of nodes.
Status unfold(Graph& graph, std::vector<NodeId>& nodes) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!graph.alive(nodes[i]) || !graph.op_of(nodes[i]).has_body()) continue;
    auto made = PW_TRY(inline_node(graph, nodes[i]));
    nodes.insert(nodes.end(), made.begin(), made.end());
  }
  return {};
}

bool any_effect(const Context& context, OpId id, std::set<OpId>& seen) {
  const Op& op = context.ops[id];
  if (op.traits.effect) return true;
  if (!seen.insert(id).second) return false;
  std::vector<const Expr*> todo;
  for (const Statement& statement : op.body) todo.push_back(&statement.value);
  while (!todo.empty()) {
    const Expr* expr = todo.back();
    todo.pop_back();
    if (expr->kind == Expr::Kind::call)
      if (const OpId called = context.ops.find(expr->text);
          called.valid() && any_effect(context, called, seen))
        return true;
    for (const Expr& arg : expr->args) todo.push_back(&arg);
  }
  return false;
}

bool any_effect(const Graph& graph, const std::vector<NodeId>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(), [&](NodeId node) {
    std::set<OpId> seen;
    return any_effect(graph.context(), graph.op(node), seen);
  });
}

/// Returns a fork in which ops with a built-in meaning have no body.
ContextPtr with_own_meanings(const Context& context) {
  ContextPtr out = fork(context);
  OpTable ops;
  for (std::size_t i = 0; i < context.ops.size(); ++i) {
    Op op = context.ops[OpId(i)];
    if (has_own_meaning(op.primitive)) op.body.clear();
    (void)ops.declare(std::move(op));
  }
  out->ops = std::move(ops);
  return out;
}

}  // namespace

RuleVerdict Comparison::verdict() const {
  RuleVerdict out = RuleVerdict::same_bits;
  for (const PairVerdict& pair : pairs) out = worse(out, pair.verdict);
  return out;
}

Comparison compare_pairs(Graph& graph, std::size_t pairs, Integers& integers, int* ieee) {
  Comparison out;
  out.pairs.resize(pairs);
  std::string problem;
  const std::vector<bool> same = fold_pairs(graph, pairs, &problem);
  for (std::size_t i = 0; i < pairs; ++i)
    if (same[i]) out.pairs[i].verdict = RuleVerdict::same_bits;
  if (std::find(same.begin(), same.end(), false) == same.end()) return out;
  if (auto inlined = inline_bodies(graph); !inlined) problem = inlined.error().front().message;
  for (std::size_t i = 0; i < pairs; ++i) {
    if (same[i]) continue;
    if (!problem.empty()) {
      out.pairs[i].obligation = problem;
      continue;
    }
    Terms terms(integers);
    Elements elements(graph, terms);
    PairProof proof(elements, terms, true, graph.outputs()[i], graph.outputs()[pairs + i], ieee);
    out.pairs[i] = proof.run();
    out.granted.insert(elements.granted().begin(), elements.granted().end());
    out.granted.insert(proof.granted().begin(), proof.granted().end());
    if (terms.any_zero()) out.granted.insert(kAnyZero);
    if (integers.overflowed())
      out.pairs[i] = {RuleVerdict::unknown, "sizes beyond 64 bits", {}, ""};
  }
  return out;
}

Prover::Prover(const RuleSet& rules, const Env& params, const ProveOptions& options)
    : rules_(rules), params_(params), options_(options) {
  rules_.context = with_own_meanings(*rules.context);
  unguarded_ = rules_;
  for (std::size_t i = 0; i < unguarded_.rules.size(); ++i) {
    unguarded_.rules[RuleId(i)].where.clear();
    unguarded_.rules[RuleId(i)].assume.clear();
    unguarded_.rules[RuleId(i)].unless.clear();
  }
}

namespace {

/// Checks that both sides have the same effects; inlines both if there are any.
bool same_effects(Schema& schema) {
  Graph& graph = schema.graph;
  if (!any_effect(graph, schema.replaced) && !any_effect(graph, schema.fresh)) return true;
  return unfold(graph, schema.replaced) && unfold(graph, schema.fresh) &&
         effects_of(graph, schema.replaced) == effects_of(graph, schema.fresh);
}

bool equal_for_any_dtype(Graph& graph, std::size_t pairs, Integers& integers,
                         std::set<std::string>& granted) {
  const std::vector<bool> same = fold_pairs(graph, pairs, nullptr);
  if (std::find(same.begin(), same.end(), false) == same.end()) return true;
  if (!inline_bodies(graph)) return false;
  for (std::size_t i = 0; i < pairs; ++i) {
    if (same[i]) continue;
    Terms terms(integers, true);
    Elements elements(graph, terms);
    const PairVerdict seen =
        PairProof(elements, terms, false, graph.outputs()[i], graph.outputs()[pairs + i], nullptr)
            .run();
    if (seen.verdict != RuleVerdict::same_bits || integers.overflowed()) return false;
    granted.insert(elements.granted().begin(), elements.granted().end());
    if (terms.any_zero()) granted.insert(kAnyZero);
  }
  return true;
}

/// Returns true if both sides are equal for one choice of generic dtypes; sets `several` if two
/// variables are generic.
bool proved_for_any_dtype(const RuleSet& rules, const RuleSet& unguarded, RuleId id,
                          const Env& params, Solver& solver, std::size_t most, Proof& proof,
                          SchemaOptions options, bool& several) {
  const Rule& rule = rules.rules[id];
  const bool lists = !rule.members.empty() || !rule.lists.empty();
  std::size_t cases = 0;
  std::set<std::string> granted, guards, used;
  for (options.lists = lists ? 1 : 2; options.lists <= (lists ? 3u : 2u); ++options.lists) {
    Choices choices;
    do {
      Integers integers(solver);
      auto schema = make_schema(rules, unguarded, id, params, choices, integers, options, granted);
      if (!schema) {
        if (schema.error().mistyped) continue;
        return false;
      }
      if (++cases > most || integers.contradictory()) return false;
      several = several || schema->any_dtypes > 1;
      Graph& graph = schema->graph;
      if (!same_effects(*schema)) return false;
      integers.forget_used();
      if (!equal_for_any_dtype(graph, schema->outputs.size(), integers, granted)) return false;
      for (const SchemaGuard& guard : schema->guards) {
        guards.insert(guard.text);
        if (integers.used().contains(guard.fact)) used.insert(guard.text);
      }
    } while (choices.next());
  }
  if (cases == 0) return false;
  proof.needed.clear();
  proof.unneeded.clear();
  for (const std::string& guard : guards)
    (used.contains(guard) ? proof.needed : proof.unneeded).push_back(guard);
  if (lists) granted.insert("lists of one to three elements");
  proof.granted = std::move(granted);
  proof.cases = cases;
  return true;
}

bool proved_for_any_dtype(const RuleSet& rules, const RuleSet& unguarded, RuleId id,
                          const Env& params, Solver& solver, std::size_t most, Proof& proof) {
  SchemaOptions options;
  bool several = false;
  options.any_dtype = SchemaOptions::AnyDType::one_way;
  if (!proved_for_any_dtype(rules, unguarded, id, params, solver, most, proof, options, several))
    return false;
  options.any_dtype = SchemaOptions::AnyDType::other_way;
  return !several ||
         proved_for_any_dtype(rules, unguarded, id, params, solver, most, proof, options, several);
}

}  // namespace

namespace {

/// Returns true if the pattern has an extreme of two values that may both be zero: it matches the
/// operands in either order, which decides between zeros.
bool matches_either_zero(const RuleSet& rules, const Rule& rule) {
  const auto never_zero = [&](PatternValueId id) {
    const std::optional<Attribute>& literal = rule.values[id].literal;
    const auto* real = literal ? std::get_if<double>(&*literal) : nullptr;
    const auto* whole = literal ? std::get_if<std::int64_t>(&*literal) : nullptr;
    return (real != nullptr && *real != 0) || (whole != nullptr && *whole != 0);
  };
  return std::any_of(rule.nodes.begin(), rule.nodes.end(), [&](const PatternNode& node) {
    const Primitive op = rules.context->ops[node.op].primitive;
    return among(op, {Primitive::maximum, Primitive::minimum}) &&
           std::none_of(node.operands.begin(), node.operands.end(), never_zero);
  });
}

/// Adds the assumption that the order of matched operands leaves open.
Proof with_orders(Proof proof, const RuleSet& rules, const Rule& rule) {
  if (proof.proved() && matches_either_zero(rules, rule)) proof.granted.insert(kAnyZero);
  return proof;
}

/// Returns an obligation with its output. A limit precedes the output, because it is not about it.
std::string reason_of(const std::string& output, const std::string& obligation) {
  if (obligation.starts_with("limit: ")) return fmt::format("{} (`{}`)", obligation, output);
  return fmt::format("`{}`: {}", output, obligation);
}

/// Adds the verdicts on the outputs of one case to those of the cases before. `overflow` is the
/// first place that may overflow.
void take_verdicts(const Comparison& seen, const Schema& schema, Proof& proof,
                   std::string& overflow) {
  proof.granted.insert(seen.granted.begin(), seen.granted.end());
  proof.verdict = worse(proof.verdict, seen.verdict());
  for (const PairVerdict& pair : seen.pairs) {
    proof.specials.add(pair.specials);
    // An element shows the worst verdict; a solver also finds those that only round.
    const bool worst = pair.verdict == RuleVerdict::unknown ||
                       (pair.verdict == RuleVerdict::may_overflow && overflow.empty());
    if (!pair.element.empty() && (worst || proof.element.empty())) proof.element = pair.element;
    proof.flips = proof.flips || pair.flips;
  }
  if (proof.verdict == RuleVerdict::differs_only_for &&
      proof.specials.verdict() == RuleVerdict::rounds)
    proof.verdict = RuleVerdict::rounds;
  for (std::size_t i = 0; i < seen.pairs.size() && proof.reason.empty(); ++i)
    if (seen.pairs[i].verdict == RuleVerdict::unknown)
      proof.reason = reason_of(schema.outputs[i].name, seen.pairs[i].obligation);
  for (std::size_t i = 0; i < seen.pairs.size() && seen.verdict() == RuleVerdict::may_overflow; ++i)
    if (seen.pairs[i].verdict == RuleVerdict::may_overflow && overflow.empty())
      overflow = fmt::format("`{}`: {}", schema.outputs[i].name, seen.pairs[i].element);
}

void leave_unknown(Proof& proof, std::string reason) {
  proof.verdict = RuleVerdict::unknown;
  proof.reason = std::move(reason);
}

}  // namespace

/// State that the cases of a rule share.
struct Prover::Cases {
  Choices choices;
  SchemaOptions options;
  int ieee = 12;                       ///< remaining IEEE queries
  std::string none;                    ///< why a choice makes no case
  std::string overflow;                ///< the first place that may overflow
  std::set<std::string> guards, used;  ///< the texts of all guards, and of those used
};

/// Proves the case of the current choices, if they make one.
void Prover::prove_case(RuleId id, Cases& cases, Proof& proof) {
  if (proof.cases > options_.cases)
    return leave_unknown(proof, fmt::format("limit: more than {} cases", options_.cases));
  Integers integers(solver_);
  auto schema = make_schema(rules_, unguarded_, id, params_, cases.choices, integers, cases.options,
                            proof.granted);
  if (!schema) {
    if (cases.none.empty() || !schema.error().mistyped) cases.none = schema.error().why;
    if (schema.error().mistyped) return;
    if (schema.error().undecided)
      return leave_unknown(proof, "sizes that are not solved for: " + schema.error().why);
    // The left side matches there, but the right side cannot replace it.
    proof.uncovered = fmt::format("{} ({})", schema.error().shapes, schema.error().why);
    return leave_unknown(proof, "not every match can be applied: " + proof.uncovered);
  }
  if (integers.contradictory()) {
    cases.none = "its guards contradict each other";
    return;
  }
  ++proof.cases;
  for (const SchemaGuard& guard : schema->guards) cases.guards.insert(guard.text);
  integers.forget_used();
  if (!same_effects(*schema)) return leave_unknown(proof, "both sides have the same effects");
  const Comparison seen =
      compare_pairs(schema->graph, schema->outputs.size(), integers, &cases.ieee);
  for (const SchemaGuard& guard : schema->guards)
    if (integers.used().contains(guard.fact)) cases.used.insert(guard.text);
  take_verdicts(seen, *schema, proof, cases.overflow);
}

/// Proves all cases of a rule, up to the first that is unknown.
void Prover::prove_cases(RuleId id, Proof& proof) {
  const Rule& rule = rules_.rules[id];
  const bool lists = !rule.members.empty() || !rule.lists.empty();
  Cases cases;
  std::size_t& length = cases.options.lists;
  for (length = lists ? 1 : 2; length <= (lists ? 3u : 2u); ++length) {
    cases.choices = {};
    do prove_case(id, cases, proof);
    while (proof.verdict != RuleVerdict::unknown && cases.choices.next());
    if (proof.verdict == RuleVerdict::unknown) break;
  }
  if (proof.verdict == RuleVerdict::may_overflow) proof.reason = cases.overflow;
  if (lists) proof.granted.insert("lists of one to three elements");
  if (proof.cases == 0 && proof.verdict != RuleVerdict::unknown)
    leave_unknown(proof, "no general graph could be made: " + cases.none);
  for (const std::string& guard : cases.guards)
    (cases.used.contains(guard) ? proof.needed : proof.unneeded).push_back(guard);
}

Proof Prover::prove(RuleId id) {
  const auto start = std::chrono::steady_clock::now();
  const Rule& rule = rules_.rules[id];
  Proof proof;
  proof.rule = rule.name;
  proof.verdict = RuleVerdict::same_bits;
  if (rule.nodes.size() > kMostPatternOps) {
    leave_unknown(proof, fmt::format("limit: a pattern of more than {} ops", kMostPatternOps));
    return proof;
  }
  if (!proved_for_any_dtype(rules_, unguarded_, id, params_, solver_, options_.cases, proof)) {
    proof = {};
    proof.rule = rule.name;
    proof.verdict = RuleVerdict::same_bits;
    prove_cases(id, proof);
  }
  proof.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return with_orders(std::move(proof), rules_, rule);
}

}  // namespace pw::proof
