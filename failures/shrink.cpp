#include "failures/shrink.hpp"

#include <optional>
#include <set>
#include <string>

#include "base/characters.hpp"
#include "dsl/dsl.hpp"
#include "graph/text/text.hpp"

namespace pw {
namespace {

using Number = std::int64_t;
using Smaller = std::function<Number(Number)>;

constexpr Number kLeast = 8;  ///< numbers below are axes and counts more often than sizes

/// An integer that begins at `at` and is not part of a name, a real number, or a string.
std::size_t end_of_number(const std::string& line, std::size_t at) {
  std::size_t end = at;
  while (end < line.size() && is_digit(line[end])) ++end;
  if (end == at || end - at > 15) return at;
  if (at > 0 && (is_in_name(line[at - 1]) || line[at - 1] == '.')) return at;
  if (end < line.size() && (is_in_name(line[end]) || line[end] == '.')) return at;
  return end;
}

/// Calls `see` with each number of inputs and statements and replaces it by the result.
std::string with_numbers(const std::string& text, const Smaller& see) {
  std::string out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    const std::string line = text.substr(begin, end - begin);
    const std::size_t word = line.find_first_not_of(' ');
    const bool kept = word == std::string::npos || line.compare(word, 7, "symbol ") == 0 ||
                      line.compare(word, 3, "op ") == 0 || line.compare(word, 6, "graph ") == 0;
    char quote = 0;
    for (std::size_t i = 0; i < line.size();) {
      if (line[i] == '"' || line[i] == '`')
        quote = quote == 0 ? line[i] : quote == line[i] ? 0 : quote;
      const std::size_t stop = kept || quote != 0 ? i : end_of_number(line, i);
      if (stop == i) {
        out += line[i++];
        continue;
      }
      out += std::to_string(see(std::stoll(line.substr(i, stop - i))));
      i = stop;
    }
    begin = end;
  }
  return out;
}

std::set<Number> numbers_of(const std::string& text) {
  std::set<Number> out;
  with_numbers(text, [&](Number n) {
    if (n >= kLeast) out.insert(n);
    return n;
  });
  return out;
}

}  // namespace

Graph shrink_dims(const Graph& graph, const StillShows& shows) {
  Graph best = graph.compact();
  const auto keep = [&](const Smaller& smaller) {
    const std::string text = print_pwg(best), fewer = with_numbers(text, smaller);
    if (fewer == text) return false;
    const auto made = parse_graph(graph.context_ptr(), fewer, "reduced");
    if (!made || !shows(*made)) return false;
    best = made->compact();
    return true;
  };
  for (const Number factor : {64, 16, 4, 2})
    while (keep([&](Number n) { return n >= kLeast && n % factor == 0 ? n / factor : n; })) {
    }
  for (const Number each : numbers_of(print_pwg(best)))
    for (Number now = each; now >= kLeast && now % 2 == 0; now /= 2)
      if (!keep([&](Number n) { return n == now ? now / 2 : n; })) break;
  return best;
}

}  // namespace pw
