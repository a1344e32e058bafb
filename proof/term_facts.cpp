// Facts about a whole term that decide what a proof over the reals may claim: to how many bits it
// rounds, whether an addition can magnify such an error, and which inputs it reads in f64. Each is
// one walk over the shared DAG, so its cost is linear in the number of distinct subterms.
#include "proof/term_facts.hpp"

#include <algorithm>
#include <string>

namespace pw::proof {
namespace {

constexpr int kMostBits = 53;

/// Returns true if the result is an operand, or its negative or magnitude.
bool is_kept(const Terms& terms, const Term& term) {
  return among(term.function, {Function::neg, Function::abs, Function::maximum, Function::minimum,
                               Function::select, Function::amax, Function::amin}) ||
         (term.function == Function::cast && holds_all(term.dtype, terms[term.args[0]].dtype));
}

TermId without_casts(const Terms& terms, TermId id) {
  while (terms[id].function == Function::cast && terms[id].args.size() == 1) id = terms[id].args[0];
  return id;
}

bool adds(const Term& term) {
  return is_float(term.dtype) && (term.kind == Term::Kind::reduce ||
                                  among(term.function, {Function::add, Function::sub,
                                                        Function::addmm, Function::join_sum}));
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

}  // namespace

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

int computing_precision(const Terms& terms, TermId id) {
  const TermId computed = without_casts(terms, id);
  return least_precision(terms, terms[computed].args.empty() ? id : computed);
}

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

bool reads_as_widely(const Terms& terms, TermId b, TermId a) {
  const std::set<TermId> left = read_as_f64(terms, a), right = read_as_f64(terms, b);
  std::set<std::string> narrowed;  // inputs with a narrowed element
  for (TermId read : reads_of(terms, b))
    if (!right.contains(read)) narrowed.insert(terms[read].name);
  return std::all_of(left.begin(), left.end(), [&](TermId read) {
    return right.contains(read) || !narrowed.contains(terms[read].name);
  });
}

std::set<TermId> opaque_floats(const Terms& terms, TermId id) {
  std::set<TermId> found;
  terms.walk(id, [&](TermId at, std::vector<TermId>& next) {
    const Term& term = terms[at];
    next.insert(next.end(), term.args.begin(), term.args.end());
    if (term.kind == Term::Kind::opaque && is_float(term.dtype)) found.insert(at);
  });
  return found;
}

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

}  // namespace pw::proof
