// The keys and values of a piecewise.toml, each with its place. The only place that knows TOML.
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
  std::string scalar = {};              ///< a text as it is, a number as it is written in decimal
  std::vector<std::string> list = {};   ///< of scalars
  std::vector<ConfigValue> table = {};  ///< in the order of the file
};

/// The top level of a text, in its order. PW1501 where it is no TOML.
Result<std::vector<ConfigValue>> parse_config(SourceMap& sources, std::string text,
                                              const std::string& file);
/// Reads the text of a file, up to a size that no piecewise.toml has.
Result<std::string> read_config(const std::string& path);

}  // namespace pw::cli
