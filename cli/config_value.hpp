// Parses piecewise.toml into keys and values with locations. No other file depends on the TOML
// library.
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.hpp"

namespace pw::cli {

struct ConfigValue {
  enum class Kind { flag, scalar, list, table, other };  ///< other: dates, and lists of tables
  std::string key;
  Span span;  ///< of the key
  Kind kind = Kind::other;
  bool flag = false;
  std::string scalar = {};              ///< a text unchanged, a number in decimal
  std::vector<std::string> list = {};   ///< of scalars
  std::vector<ConfigValue> table = {};  ///< in the order of the file
};

/// Returns the top-level values in order. Fails with PW1501 on invalid TOML.
Result<std::vector<ConfigValue>> parse_config(SourceMap& sources, std::string text,
                                              const std::string& file);
/// Reads a file, up to a size limit.
Result<std::string> read_config(const std::string& path);

}  // namespace pw::cli
