// Facts about a whole term: the precision it computes with, the inputs it reads, and whether it
// contains sums, floats, or integers.
#pragma once

#include <set>

#include "proof/terms.hpp"

namespace pw::proof {

/// Returns the least mantissa width of any rounding in the term.
int least_precision(const Terms& terms, TermId id);
/// Returns the least mantissa width that the term computes with. Casts of the result count only if
/// there is nothing else.
int computing_precision(const Terms& terms, TermId id);
/// Returns the least mantissa width of a rounding before an addition. Addends that nearly cancel
/// magnify such an error; factors do not.
int addend_precision(const Terms& terms, TermId id);
/// Returns true if `b` narrows no f64 that `a` computes with, which may overflow.
bool reads_as_widely(const Terms& terms, TermId b, TermId a);
/// Returns the opaque ops in the term with float results.
std::set<TermId> opaque_floats(const Terms& terms, TermId id);
/// Returns true if the term contains a sum.
bool adds_up(const Terms& terms, TermId id);
/// Returns true if the term or an operand of it is a float.
bool any_float(const Terms& terms, TermId id);
/// Returns true if the term computes with integers; only then do laws preserve every bit.
bool computes_with_integers(const Terms& terms, TermId id);

}  // namespace pw::proof
