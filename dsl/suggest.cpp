// Exports the help lines of suggest.hpp.
#include "dsl/suggest.hpp"

#include <iterator>

#include "graph/dtype_names.hpp"

namespace pw {

std::string in_ticks(std::string_view text) { return "`" + std::string(text) + "`"; }

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates,
                         std::string otherwise) {
  std::string near = nearest(word, candidates);
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
