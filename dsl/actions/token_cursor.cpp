#include "dsl/actions/token_cursor.hpp"

#include <charconv>
#include <utility>

namespace pw {

void refuse(Span at, std::string_view code, std::string message, std::string help) {
  throw Refused{error_at(at, code, std::move(message), std::move(help))};
}

std::string TokenCursor::word() const {
  return last().kind == Tok::quoted ? string() : std::string(text());
}

double TokenCursor::real() const {
  const std::string_view digits = text();
  double out = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), out);
  return out;
}

std::int64_t TokenCursor::integer(bool negative) const {
  std::uint64_t magnitude = 0;
  const std::string_view digits = text();
  std::from_chars(digits.data(), digits.data() + digits.size(), magnitude);
  const std::uint64_t limit = std::uint64_t{1} << 63;
  if (magnitude >= limit && !(negative && magnitude == limit))
    refuse(span(), "PW0104", "the number is out of range", "integers are signed, with 64 bits");
  return static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
}

}  // namespace pw
