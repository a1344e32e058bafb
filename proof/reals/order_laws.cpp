// Maxima and minima form a distributive lattice in normal form: the least of the greatest of each
// clause. A literal below another of its clause is absorbed, and so is a clause above another.
// Comparisons are functions of the sign of a difference, which is scaled to have a first
// coefficient of 1 or -1. A dual can have exponentially many clauses, so their number is limited.
#include "proof/reals/order_laws.hpp"

#include <algorithm>

namespace pw::proof {
namespace {

constexpr std::size_t kMostClauses = 64;

}  // namespace

bool OrderLaws::is_extreme(Factor factor) const {
  const Atom::Kind kind = field_.atom(factor).kind;
  return kind == Atom::Kind::clauses || kind == Atom::Kind::whole_clauses;
}

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

bool OrderLaws::below(FractionId a, FractionId b) {
  if (a == b) return true;
  const Fraction &x = field_[a], y = field_[b];
  const auto difference = constant(field_.add(y, x, -1));
  if (difference) return *difference >= 0;
  return ranges_.interval(field_.add(y, x, -1)).at_least(0);
}

void OrderLaws::absorb(Clauses& clauses) {
  Clauses shorter;
  for (const auto& clause : clauses) {
    std::set<FractionId> kept;
    for (FractionId literal : clause) {
      const bool covered = std::any_of(clause.begin(), clause.end(), [&](FractionId other) {
        return other != literal && below(literal, other);
      });
      if (!covered) kept.insert(literal);
    }
    shorter.insert(kept.empty() ? clause : kept);
  }
  clauses.clear();
  for (const auto& clause : shorter) {
    const bool implied = std::any_of(shorter.begin(), shorter.end(), [&](const auto& other) {
      if (other == clause) return false;
      return std::all_of(other.begin(), other.end(), [&](FractionId x) {
        return std::any_of(clause.begin(), clause.end(), [&](FractionId y) { return below(x, y); });
      });
    });
    if (!implied) clauses.insert(clause);
  }
}

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
  const Rational scale = pw::abs(lead(x));
  return field_.function(Atom::Kind::above, {field_.intern(field_.multiply(number(1 / scale), x))},
                         true);
}

Fraction OrderLaws::is_zero(const Fraction& x) {
  if (const auto value = constant(x)) return number(*value == 0 ? 1 : 0);
  if (x.over.size() == 1 && x.over.begin()->first.size() == 1 &&
      field_.atom(x.over.begin()->first.begin()->first).boolean && lead(x) == 1)
    return field_.add(number(1), x, -1);
  return field_.function(Atom::Kind::zero, {field_.intern(field_.multiply(number(1 / lead(x)), x))},
                         true);
}

/// Returns |x|, whose square equals that of x.
Fraction OrderLaws::absolute(const Fraction& x) {
  if (const auto value = constant(x)) return number(pw::abs(*value));
  const Rational scale = lead(x);
  return field_.multiply(
      number(pw::abs(scale)),
      field_.function(Atom::Kind::abs, {field_.intern(field_.multiply(number(1 / scale), x))}));
}

Fraction OrderLaws::unsigned_zero(const std::string& name, const Fraction& difference) {
  if (const auto known = constant(difference)) return number(*known == 0 ? 1 : 0);
  const RationalInterval seen = ranges_.interval(difference);
  if (seen.above(0) || seen.below(0)) return number(0);
  const Fraction x = lead(difference) < 0 ? field_.multiply(number(-1), difference) : difference;
  if (x.over.size() == 1 && x.over.begin()->first.size() == 1 && lead(x) == 1 &&
      field_.atom(x.over.begin()->first.begin()->first).boolean)
    return field_.add(number(1), x, -1);
  return field_.function(name, {field_.intern(x)}, true);
}

}  // namespace pw::proof
