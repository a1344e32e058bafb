// A share file: rules and an example graph in one file. docs/formats.md describes it.
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
  std::string name;                       ///< name of its file: "model.fx.txt"
  std::vector<std::string> symbols = {};  ///< for a dump: n=arg0_1.0
  std::string text = {};
};

struct Share {
  std::string rules;
  std::string pipeline;  ///< what to run; empty: what the rules declare
  std::optional<SharedGraph> graph;
};

[[nodiscard]] std::string share_to_json(const Share& share);
/// Parses a share file. Fails with PW1602 and the location if it is malformed, of another version,
/// or too large.
Result<Share> share_from_json(std::string_view text, const std::string& file);

/// Returns the initial content of the page if no file was named.
[[nodiscard]] Share example_share();

/// Returns true if the bytes are UTF-8 without NUL.
[[nodiscard]] bool is_text(std::string_view bytes);
/// Returns true for a valid file name: one line without slashes, at most 200 bytes.
[[nodiscard]] bool is_file_name(std::string_view name);

}  // namespace pw::cli
