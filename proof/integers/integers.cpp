// Division of integer polynomials: what the divisor divides exactly moves out, a bounded number of
// periods is moved so that the rest is between 0 and the divisor, and a common factor cancels.
// Only what then remains is an atom.
// Example: (n i + k) / n with 0 ≤ k < n is i, and its remainder is k. This is how a reshape and its
// inverse cancel. Every simplification depends on the facts in scope, so their change clears all
// memos.
#include "proof/integers/integers.hpp"

#include <algorithm>

#include "base/characters.hpp"
#include "base/division.hpp"

namespace pw::proof {
namespace {

/// Parses the output of Dims::print.
/// A recursive-descent parser for sums, products, powers, quotients, remainders, max, and min. The
/// text is generated, so malformed input is not reported.
class DimReader {
 public:
  DimReader(Integers& integers, std::string text) : integers_(integers), text_(std::move(text)) {}

  Ix sum() {
    Ix out = product();
    for (skip(); at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-'); skip()) {
      const bool plus = text_[at_++] == '+';
      const Ix next = product();
      out = plus ? integers_.add(out, next) : integers_.sub(out, next);
    }
    return out;
  }

 private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  Ix product() {
    Ix out = power();
    for (skip(); at_ < text_.size(); skip()) {
      if (take('*')) {
        out = integers_.mul(out, power());
      } else if (take('/')) {
        take('/');
        out = integers_.div(out, power());
      } else if (take('%')) {
        out = integers_.mod(out, power());
      } else {
        break;
      }
    }
    return out;
  }
  Ix power() {
    const Ix base = atom();
    Ix out = base;
    if (take('^'))
      for (std::int64_t n = digits(); n > 1; --n) out = integers_.mul(out, base);
    return out;
  }
  std::int64_t digits() {
    skip();
    std::int64_t value = 0;
    while (at_ < text_.size() && is_digit(text_[at_])) value = value * 10 + (text_[at_++] - '0');
    return value;
  }
  Ix atom() {
    skip();
    if (take('-')) return integers_.sub(integers_.constant(0), power());
    if (take('(')) {
      const Ix out = sum();
      take(')');
      return out;
    }
    if (at_ < text_.size() && is_digit(text_[at_])) return integers_.constant(digits());
    std::string name;
    while (at_ < text_.size() &&
           (is_in_name(text_[at_]) || text_[at_] == '\'' || text_[at_] == '#' || text_[at_] == '.'))
      name += text_[at_++];
    if (name.empty()) ++at_;
    if (at_ < text_.size() && text_[at_] == '(') {
      const std::size_t from = at_;
      // Without a decision the text itself becomes a symbol without bounds, so equal choices still
      // agree.
      if (const auto known = extreme(name == "max")) return *known;
      at_ = from;  // unknown choice: any number
      for (int open = 0; at_ < text_.size();) {
        open += text_[at_] == '(' ? 1 : text_[at_] == ')' ? -1 : 0;
        ++at_;
        if (open == 0) break;
      }
      name += text_.substr(from, at_ - from);
      integers_.free(name);
    }
    return integers_.symbol(name);
  }

  /// Returns the largest or smallest of a list, if that is decided.
  /// The order may follow from facts, as for max(n, 1).
  std::optional<Ix> extreme(bool largest) {
    std::optional<Ix> best;
    ++at_;
    do {
      const Ix next = sum();
      const Ix more = best ? integers_.sub(next, *best) : next;
      if (!best) {
        best = next;
      } else if (integers_.nonnegative(more)) {
        if (largest) best = next;
      } else if (integers_.nonnegative(integers_.sub(*best, next))) {
        if (!largest) best = next;
      } else {
        return std::nullopt;
      }
    } while (take(','));
    return take(')') ? best : std::nullopt;
  }

  Integers& integers_;
  std::string text_;
  std::size_t at_ = 0;
};

}  // namespace

/// a = q b + r gives a / b = q + r / b for the floor quotient, for every integer q. If 0 ≤ r < b is
/// proved, the second part is 0. At most three periods move in each direction. If b is not known to
/// be positive, nothing is simplified.
Ix Integers::div(Ix a, Ix b) {
  const Ix one = constant(1), zero_ = constant(0);
  if (b == one || a == zero_) return a;
  const auto x = number(a), y = number(b);
  if (x && y && *y > 0) return constant(floor_div(*x, *y));
  const auto cached = quotients_.find({a, b});
  if (cached != quotients_.end()) return cached->second;
  const bool positive = nonnegative(sub(b, one));
  auto [quotient, rest] = positive ? split(a, b) : std::pair(zero_, a);
  if (positive) {
    for (int i = 0; i < 3 && rest != zero_ && nonnegative(sub(rest, b)); ++i) {
      rest = sub(rest, b);
      quotient = add(quotient, one);
    }
    for (int i = 0; i < 3 && rest != zero_ && nonnegative(sub(constant(-1), rest)); ++i) {
      rest = add(rest, b);
      quotient = sub(quotient, one);
    }
  }
  Ix left = zero_;
  if (rest != zero_ && !(positive && nonnegative(rest) && nonnegative(sub(sub(b, one), rest)))) {
    // floor(floor(x / f) / c) = floor(x / (f c)) justifies both cancellations below.
    const Polynomial divisor = polynomial(b);
    bool done = false;
    // b = f * c and rest = f * r + s with 0 <= s < f: rest / b = r / c.
    if (positive && divisor.size() == 1) {
      std::vector<Ix> factors;
      for (AtomNumber atom : divisor[0].first) factors.push_back(of_monomial({atom}, 1));
      if (divisor[0].second > 1) factors.push_back(constant(divisor[0].second));
      for (std::size_t i = 0; i < factors.size() && factors.size() > 1 && !done; ++i) {
        const auto [r, s] = split(rest, factors[i]);
        if (r == zero_ ||
            !(s == zero_ || (nonnegative(s) && nonnegative(sub(sub(factors[i], one), s)))))
          continue;
        left = div(r, *whole_quotient(b, factors[i]));
        done = true;
      }
    }
    if (!done) {
      const Polynomial terms = polynomial(rest);
      const Atom* inner = terms.size() == 1 && terms[0].second == 1 && terms[0].first.size() == 1
                              ? &atom(terms[0].first[0])
                              : nullptr;
      // (x / c) / b ⇒ x / (c b).
      if (inner != nullptr && inner->kind == Atom::Kind::quotient && positive)
        left = div(inner->a, mul(Ix(inner->b), b));
      else
        left = of_atom({Atom::Kind::quotient, "", 0, rest, b});
    }
  }
  const Ix out = add(quotient, left);
  quotients_.emplace(std::pair(a, b), out);
  return out;
}

/// A remainder is not an atom: b (a / b) + a mod b is then a without any rule.
Ix Integers::mod(Ix a, Ix b) { return sub(a, mul(b, div(a, b))); }

/// Dims and Integers have different atoms, so the dim is printed and parsed.
Ix Integers::of(const Dims& dims, DimId dim) {
  if (const auto value = dims.value(dim)) return constant(*value);
  const auto found = dims_.find(dim);
  if (found != dims_.end()) return found->second;
  const Ix out = DimReader(*this, dims.print(dim)).sum();
  dims_.emplace(dim, out);
  return out;
}

void Integers::assume(Ix fact) {
  facts_.list.push_back(fact);
  forget_conclusions();
}

void Integers::back_to(Mark mark) {
  if (facts_.list.size() == mark.facts) return;
  facts_.list.resize(mark.facts);
  forget_conclusions();
}

/// Quotients are computed again, since the new index may have bounds that simplify them.
Ix Integers::substituted(Ix p, std::uint32_t level, Ix with) {
  if (!mentions(p, level)) return p;
  Ix out = constant(0);
  for (const auto& [monomial, factor] : Polynomial(polynomial(p))) {
    Ix product = constant(factor);
    for (AtomNumber number : monomial) {
      const Atom atom = this->atom(number);
      Ix part = of_monomial({number}, 1);
      if (atom.kind == Atom::Kind::variable && atom.number == level) part = with;
      if (atom.kind == Atom::Kind::quotient)
        part = div(substituted(atom.a, level, with), substituted(atom.b, level, with));
      product = mul(product, part);
    }
    out = add(out, product);
  }
  return out;
}

/// Finds d in i / d for the index i alone. Sums over i split into digits at these.
void Integers::divisors(Ix p, std::uint32_t level, std::set<Ix>& out) {
  std::set<AtomNumber> atoms;
  mention(p, atoms);
  for (AtomNumber number : atoms) {
    const Atom atom = this->atom(number);
    if (atom.kind != Atom::Kind::quotient) continue;
    const Polynomial& over = polynomial(atom.a);
    const bool alone = over.size() == 1 && over[0].second == 1 && over[0].first.size() == 1;
    if (!alone) continue;
    const Atom& inner = this->atom(over[0].first[0]);
    if (inner.kind == Atom::Kind::variable && inner.number == level) out.insert(atom.b);
  }
}

void Integers::forget_conclusions() {
  samples_.forget_fits();
  search_.forget();
  quotients_.clear();
  dims_.clear();
}

}  // namespace pw::proof
