// A share file: rules, and a graph to see them work on, in one file. docs/formats.md describes it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.hpp"

namespace pw::cli {

inline constexpr std::string_view kShareFormat = "piecewise.share/1";
inline constexpr std::size_t kMostRuleBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMostGraphBytes = std::size_t{24} << 20;
inline constexpr std::size_t kMostShareBytes = 2 * (kMostRuleBytes + kMostGraphBytes);

struct SharedGraph {
  std::string name;                       ///< of the file it was in: "model.fx.txt"
  std::vector<std::string> symbols = {};  ///< of a dump: n=arg0_1.0
  std::string text = {};
};

struct Share {
  std::string rules;
  std::string pipeline;  ///< what is run; empty: what the rules declare
  std::optional<SharedGraph> graph;
};

[[nodiscard]] std::string share_to_json(const Share& share);
/// PW1602 with the place for what is no share file, of another version, or larger than is shared.
Result<Share> share_from_json(std::string_view text, const std::string& file);

/// What the page begins with where nothing was named.
[[nodiscard]] Share example_share();

/// Whether a text is UTF-8 without zero bytes.
[[nodiscard]] bool is_text(std::string_view bytes);
/// Whether a name may stand for a file: one line without slashes, of 200 bytes at most.
[[nodiscard]] bool is_file_name(std::string_view name);

}  // namespace pw::cli
