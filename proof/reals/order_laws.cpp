// Maxima and minima form a distributive lattice in normal form: the least of the greatest of each
// clause. A literal below another of its clause is absorbed, and so is a clause above another.
// Comparisons are functions of the sign of a difference, which is scaled to have a first
// coefficient of 1 or -1. A dual can have exponentially many clauses, so their number is limited.
// Soundness: over the reals, maximum and minimum are the join and meet of a total order. Such a
// lattice is distributive, so every nesting has a conjunctive normal form. Multiplication by c > 0
// preserves both; by c < 0 it exchanges them, which `dual` implements. NaN is not covered: it has
// no place in the order, and prove.cpp examines it separately. Example: max(min(a, b), a) ⇒ {{a}},
// since a clause {a, b} is above the clause {a}.
#include "proof/reals/order_laws.hpp"

#include <algorithm>

namespace pw::proof {
namespace {

constexpr std::size_t kMostClauses = 64;

}  // namespace

/// Integers have an atom of their own kind: their clauses must keep integer literals and are not
/// scaled.
bool OrderLaws::is_extreme(Factor factor) const {
  const Atom::Kind kind = field_.atom(factor).kind;
  return kind == Atom::Kind::clauses || kind == Atom::Kind::whole_clauses;
}

/// Reads a term as clauses. A multiple of an extreme distributes over the literals; for a negative
/// multiple the clauses become their dual. Any other term is a single clause with itself as
/// literal.
Clauses OrderLaws::clauses_of(const Fraction& f) {
  // A single atom of clauses.
  if (f.over.size() == 1 && f.under.size() == 1 && f.under.begin()->first.empty()) {
    const auto& [monomial, factor] = *f.over.begin();
    if (monomial.size() == 1 && monomial.begin()->second == 1 &&
        is_extreme(monomial.begin()->first)) {
      const Rational scale = factor / f.under.begin()->second;
      const std::vector<FractionId> args = field_.atom(monomial.begin()->first).args;
      Clauses out;
      std::set<FractionId> clause;
      for (FractionId arg : args) {
        if (arg == kClause) {
          out.insert(clause);
          clause.clear();
        } else {
          clause.insert(field_.intern(field_.multiply(number(scale), field_[arg])));
        }
      }
      return scale > 0 ? out : dual(out);
    }
  }
  return {{field_.intern(f)}};
}

/// Converts a maximum of minima to a minimum of maxima.
/// By distributivity, each new clause takes one literal of each old clause. n clauses of m literals
/// give up to m^n clauses, so more than 64 end the comparison as unknown.
Clauses OrderLaws::dual(const Clauses& clauses) {
  Clauses out = {{}};
  for (const auto& clause : clauses) {
    Clauses next;
    for (const auto& part : out) {
      for (FractionId literal : clause) {
        auto more = part;
        more.insert(literal);
        next.insert(std::move(more));
      }
    }
    if (next.size() > kMostClauses) throw TooLarge{};
    out = std::move(next);
  }
  return out;
}

/// Computes the maximum of two clause sets: max(min_i x_i, min_k y_k) is min over all (i, k) of
/// max(x_i, y_k).
Clauses OrderLaws::either(const Clauses& a, const Clauses& b) {
  Clauses out;
  for (const auto& x : a) {
    for (const auto& y : b) {
      auto both = x;
      both.insert(y.begin(), y.end());
      out.insert(std::move(both));
    }
  }
  if (out.size() > kMostClauses) throw TooLarge{};
  return out;
}

/// Returns true if a ≤ b is known for all inputs: their difference is a nonnegative constant, or an
/// interval shows it. False means unknown.
bool OrderLaws::below(FractionId a, FractionId b) {
  if (a == b) return true;
  const Fraction &x = field_[a], y = field_[b];
  const auto difference = constant(field_.add(y, x, -1));
  if (difference) return *difference >= 0;
  return ranges_.interval(field_.add(y, x, -1)).at_least(0);
}

/// In a maximum, a literal below another is redundant. In the minimum of clauses, a clause is
/// redundant if another one is below it: each of its literals is below some literal of the clause.
/// One is removed at a time: of two that are below each other, one has to stay.
void OrderLaws::absorb(Clauses& clauses) {
  Clauses shorter;
  for (std::set<FractionId> clause : clauses) {
    for (auto literal = clause.begin(); literal != clause.end();) {
      const bool covered = std::any_of(clause.begin(), clause.end(), [&](FractionId other) {
        return other != *literal && below(*literal, other);
      });
      literal = covered ? clause.erase(literal) : std::next(literal);
    }
    shorter.insert(std::move(clause));
  }
  clauses = std::move(shorter);
  for (auto clause = clauses.begin(); clause != clauses.end();) {
    const bool implied = std::any_of(clauses.begin(), clauses.end(), [&](const auto& other) {
      if (other == *clause) return false;
      return std::all_of(other.begin(), other.end(), [&](FractionId x) {
        return std::any_of(clause->begin(), clause->end(),
                           [&](FractionId y) { return below(x, y); });
      });
    });
    clause = implied ? clauses.erase(clause) : std::next(clause);
  }
}

/// The minimum of two clause sets is their union.
Fraction OrderLaws::extreme(bool greatest, const Fraction& a, const Fraction& b, bool whole) {
  const Clauses x = clauses_of(a), y = clauses_of(b);
  Clauses both;
  if (greatest) {
    both = either(x, y);
  } else {
    both = x;
    both.insert(y.begin(), y.end());
  }
  absorb(both);
  return of_clauses(std::move(both), whole);
}

/// Scales an extremum so that its first nonconstant literal has coefficient 1; integers are not
/// scaled.
Fraction OrderLaws::of_clauses(Clauses clauses, bool whole) {
  if (clauses.size() == 1 && clauses.begin()->size() == 1) return field_[*clauses.begin()->begin()];
  // The range of the result has the same structure: the least of the greatest ranges of the
  // literals.
  if (whole) {
    std::vector<FractionId> args;
    std::optional<RationalInterval> least;
    for (const auto& clause : clauses) {
      std::optional<RationalInterval> greatest;
      for (FractionId literal : clause) {
        const RationalInterval of = ranges_.interval(field_[literal]);
        greatest = greatest ? greater(*greatest, of) : of;
      }
      least = least ? lesser(*least, *greatest) : greatest;
      args.insert(args.end(), clause.begin(), clause.end());
      args.push_back(kClause);
    }
    return ranges_.with_range(field_.function(Atom::Kind::whole_clauses, args), *least);
  }
  std::optional<FractionId> least;
  Rational scale = 1;
  for (const auto& clause : clauses) {
    for (FractionId literal : clause) {
      const Fraction& f = field_[literal];
      if (constant(f)) continue;
      const FractionId shape = field_.intern(field_.multiply(number(1 / lead(f)), f));
      if (least && (shape > *least || (shape == *least && lead(f) <= scale))) continue;
      least = shape;
      scale = lead(f);
    }
  }
  const auto scaled = [&](const Clauses& of, const Rational& by) {
    Clauses out;
    for (const auto& clause : of) {
      std::set<FractionId> literals;
      for (FractionId literal : clause)
        literals.insert(field_.intern(field_.multiply(number(by), field_[literal])));
      out.insert(std::move(literals));
    }
    return out;
  };
  Clauses normal = scaled(clauses, 1 / scale);
  if (scale < 0) {
    normal = dual(normal);
    absorb(normal);
  }
  std::vector<FractionId> args;
  for (const auto& clause : normal) {
    args.insert(args.end(), clause.begin(), clause.end());
    args.push_back(kClause);
  }
  return field_.multiply(number(scale), field_.function(Atom::Kind::clauses, args));
}

/// `a < b` is positive_sign(b - a), and `a <= b` is 1 - positive_sign(a - b). Both are wrong for
/// NaN, where every comparison is false; these laws are for reals and integers only.
Fraction OrderLaws::positive_sign(const Fraction& x, bool whole) {
  field_.spend(1);
  if (const auto value = constant(x)) return number(*value > 0 ? 1 : 0);
  if (whole) {
    const RationalInterval range = ranges_.interval(x);
    if (range.above(0)) return number(1);
    if (range.at_most(0)) return number(0);
  }
  // For an extreme plus other terms, adds these to each literal.
  if (x.under.size() == 1 && x.under.begin()->first.empty()) {
    for (const auto& [monomial, factor] : x.over) {
      if (monomial.size() != 1 || monomial.begin()->second != 1 ||
          !is_extreme(monomial.begin()->first))
        continue;
      Fraction extreme, rest = x;
      extreme.over.emplace(monomial, factor);
      extreme.under = x.under;
      rest.over.erase(monomial);
      if (rest.over.empty()) rest = number(0);
      Fraction all = number(1);
      // min(p, q) + r > 0 if both p + r > 0 and q + r > 0; for a maximum one of them suffices. Over
      // 0/1 polynomials, `and` is a product, and `or` is 1 - (1 - p) (1 - q).
      for (const auto& clause : clauses_of(extreme)) {
        Fraction none = number(1);
        for (FractionId literal : clause) {
          const Fraction holds = positive_sign(field_.add(field_[literal], rest), whole);
          none = field_.multiply(none, field_.add(number(1), holds, -1));
        }
        all = field_.multiply(all, field_.add(number(1), none, -1));
      }
      return all;
    }
  }
  if (x.under.size() == 1 && x.under.begin()->first.empty() && field_.positive(x.over))
    return number(1);
  if (whole) return field_.function("whole above", {field_.intern(x)}, true);
  // The sign of x is that of x / |lead|, so positive multiples of one term share one atom.
  const Rational scale = pw::abs(lead(x));
  return field_.function(Atom::Kind::above, {field_.intern(field_.multiply(number(1 / scale), x))},
                         true);
}

/// Returns true for a single boolean atom, without a factor or a denominator.
bool OrderLaws::is_boolean(const Fraction& x) const {
  if (x.over.size() != 1 || x.under != number(1).over) return false;
  const auto& [monomial, factor] = *x.over.begin();
  return factor == 1 && monomial.size() == 1 && monomial.begin()->second == 1 &&
         field_.atom(monomial.begin()->first).boolean;
}

/// x and c x are 0 together, so the leading coefficient is divided out. For a boolean b, b == 0 is
/// 1 - b.
Fraction OrderLaws::is_zero(const Fraction& x) {
  if (const auto value = constant(x)) return number(*value == 0 ? 1 : 0);
  if (is_boolean(x)) return field_.add(number(1), x, -1);
  return field_.function(Atom::Kind::zero, {field_.intern(field_.multiply(number(1 / lead(x)), x))},
                         true);
}

/// Returns |x|, whose square equals that of x.
/// |c x| is |c| |x|, so x and -x share one atom.
Fraction OrderLaws::absolute(const Fraction& x) {
  if (const auto value = constant(x)) return number(pw::abs(*value));
  const Rational scale = lead(x);
  return field_.multiply(
      number(pw::abs(scale)),
      field_.function(Atom::Kind::abs, {field_.intern(field_.multiply(number(1 / scale), x))}));
}

/// `name` separates exact differences from those modulo 2^k. x and -x are 0 together, which fixes
/// the sign.
Fraction OrderLaws::unsigned_zero(const std::string& name, const Fraction& difference) {
  if (const auto known = constant(difference)) return number(*known == 0 ? 1 : 0);
  const RationalInterval seen = ranges_.interval(difference);
  if (seen.above(0) || seen.below(0)) return number(0);
  const Fraction x = lead(difference) < 0 ? field_.multiply(number(-1), difference) : difference;
  if (is_boolean(x)) return field_.add(number(1), x, -1);
  return field_.function(name, {field_.intern(x)}, true);
}

}  // namespace pw::proof
