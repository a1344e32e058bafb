// What is read from files for a picture: the journal of a trace, by names, and numbers to colour
// by.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "viz/viz.hpp"

namespace pw {

/// One rewrite of a journal.jsonl.
struct NamedRewrite {
  std::string rule;                                           ///< empty: a built-in pass
  std::uint32_t pass = 0;                                     ///< the how many-th, from 1
  std::vector<std::string> matched, created, erased;          ///< names of nodes
  std::vector<std::pair<std::string, std::string>> bindings;  ///< variable, name of its value
};

/// Fails on a line that is no journal event, with its number.
Result<std::vector<NamedRewrite>> named_journal_from_json(std::string_view text,
                                                          const std::string& file);

/// An object of names and numbers. Fails on anything else, and on numbers that are not finite.
Result<Overlay> overlay_from_json(std::string_view text, const std::string& file);

}  // namespace pw
