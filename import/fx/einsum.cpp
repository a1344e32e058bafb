#include "import/fx/einsum.hpp"

#include <algorithm>

namespace pw {
namespace {

constexpr std::string_view kEllipsis = "...";
using Failure = tl::unexpected<std::string>;

bool stands_twice(std::string_view term) {
  for (std::size_t i = 0; i < term.size(); ++i)
    if (term.find(term[i], i + 1) != std::string_view::npos) return true;
  return false;
}

/// Returns the terms as written: with ellipses, and without a result if none is stated.
OrReason<EinsumTerms> written_terms(std::string equation) {
  std::erase(equation, ' ');
  for (const char sign : equation)
    if ((sign < 'a' || sign > 'z') && (sign < 'A' || sign > 'Z') &&
        std::string_view("->.,").find(sign) == std::string_view::npos)
      return Failure("the equation has an unsupported character");
  EinsumTerms out;
  const std::size_t arrow = equation.find("->");
  const std::string left = equation.substr(0, arrow);
  for (std::size_t begin = 0; begin <= left.size();) {
    const std::size_t comma = std::min(left.find(',', begin), left.size());
    out.operands.push_back(left.substr(begin, comma - begin));
    begin = comma + 1;
  }
  if (arrow != std::string::npos) {
    out.result = equation.substr(arrow + 2);
    return out;
  }
  std::string sorted = left;
  std::ranges::sort(sorted);
  if (left.find(kEllipsis) != std::string::npos) out.result = kEllipsis;
  for (const char letter : sorted)
    if (letter != ',' && letter != '.' && std::ranges::count(left, letter) == 1)
      out.result += letter;
  return out;
}

/// Replaces the ellipsis by digits.
OrReason<std::string> spelt_out(const std::string& term, std::size_t axes) {
  const std::size_t at = term.find(kEllipsis);
  if (at == std::string::npos) return term;
  if (axes > 10) return Failure("the ellipsis covers more than ten axes");
  std::string digits;
  for (std::size_t i = axes; i-- > 0;) digits += static_cast<char>('0' + i);
  return term.substr(0, at) + digits + term.substr(at + kEllipsis.size());
}

}  // namespace

OrReason<EinsumTerms> einsum_terms(std::string_view equation,
                                   const std::vector<std::size_t>& ranks) {
  OrReason<EinsumTerms> terms = written_terms(std::string(equation));
  if (!terms) return terms;
  if (terms->operands.size() != ranks.size())
    return Failure("the number of terms in the equation differs from the number of operands");
  std::size_t most = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    std::string& term = terms->operands[i];
    const bool open = term.find(kEllipsis) != std::string::npos;
    const std::size_t named = term.size() - (open ? kEllipsis.size() : 0),
                      axes = ranks[i] >= named ? ranks[i] - named : 0;
    if (open) most = std::max(most, axes);
    const OrReason<std::string> spelt = spelt_out(term, axes);
    if (!spelt) return Failure(spelt.error());
    term = *spelt;
    if (stands_twice(term)) return Failure("a letter occurs twice in one term");
    if (term.size() != ranks[i]) return Failure("a term does not have one letter for each axis");
  }
  const OrReason<std::string> result = spelt_out(terms->result, most);
  if (!result) return Failure(result.error());
  terms->result = *result;
  for (const char letter : terms->result)
    if (std::ranges::none_of(terms->operands, [&](const std::string& term) {
          return term.find(letter) != std::string::npos;
        }))
      return Failure("a letter of the result is in no term");
  if (stands_twice(terms->result)) return Failure("a letter occurs twice in the result");
  return terms;
}

}  // namespace pw
