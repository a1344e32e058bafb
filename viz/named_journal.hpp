// Reads files for pictures: the journal of a trace, by names, and overlays of numbers.
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
  std::string rule;                                           ///< empty for a built-in pass
  std::uint32_t pass = 0;                                     ///< number of the pass, from 1
  std::vector<std::string> matched, created, erased;          ///< node names
  std::vector<std::pair<std::string, std::string>> bindings;  ///< variable, and name of its value
};

/// Parses journal.jsonl; fails on an invalid line with its number.
Result<std::vector<NamedRewrite>> named_journal_from_json(std::string_view text,
                                                          const std::string& file);

/// Parses an object of names and finite numbers; fails on anything else.
Result<Overlay> overlay_from_json(std::string_view text, const std::string& file);

}  // namespace pw
