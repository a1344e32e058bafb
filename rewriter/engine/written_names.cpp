// One pass over the text: a `#` between a name and digits starts a number, which is dropped with
// its underscores.
#include "rewriter/engine/written_names.hpp"

#include "base/characters.hpp"

namespace pw {
namespace {

bool in_number(char c) { return is_digit(c) || c == '_'; }

}  // namespace

std::string with_written_names(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool numbered = text[at] == '#' && !out.empty() && is_in_name(out.back()) &&
                          at + 1 < text.size() && in_number(text[at + 1]);
    if (!numbered) {
      out += text[at];
      continue;
    }
    while (at + 1 < text.size() && in_number(text[at + 1])) ++at;
  }
  return out;
}

}  // namespace pw
