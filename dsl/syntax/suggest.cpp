#include "dsl/syntax/suggest.hpp"

#include <iterator>

#include "graph/dtype_names.hpp"

namespace pw {

std::string in_ticks(std::string_view text) { return "`" + std::string(text) + "`"; }

std::vector<std::string> ticked(std::string_view message) {
  std::vector<std::string> out;
  for (std::size_t at = message.find('`'); at != std::string_view::npos;) {
    const std::size_t end = message.find('`', at + 1);
    if (end == std::string_view::npos) break;
    out.emplace_back(message.substr(at + 1, end - at - 1));
    at = message.find('`', end + 1);
  }
  return out;
}

std::string suggested_name(std::string_view help) {
  constexpr std::string_view kBegins = "did you mean `", kEnds = "`?";
  if (!help.starts_with(kBegins) || !help.ends_with(kEnds)) return {};
  help.remove_prefix(kBegins.size());
  help.remove_suffix(kEnds.size());
  return help.find('`') == std::string_view::npos ? std::string(help) : std::string();
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates,
                         std::string otherwise) {
  std::string near;  // any other letter is near a name of one letter
  if (word.size() > 1) near = nearest(word, candidates);
  return near.empty() ? otherwise : "did you mean " + in_ticks(near) + "?";
}

std::string did_you_mean_name(std::string_view word, const std::vector<std::string>& candidates,
                              std::string otherwise) {
  return looks_like_dtype(word) ? dtype_hint(word)
                                : did_you_mean(word, candidates, std::move(otherwise));
}

void append(Diagnostics& to, Diagnostics from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace pw
