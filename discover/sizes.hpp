// Generalizes sizes: finds the most general symbols at which two forms are well typed and have
// outputs of equal types.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "discover/form.hpp"

namespace pw::discover {

struct Symbols {
  std::vector<std::string> names;
  std::vector<std::int64_t> values;  ///< value of each symbol in the original forms
};
struct General {
  Pair pair;  ///< types and attributes with symbols
  Symbols symbols;
};

/// Maps a size to the sizes that it is split into somewhere.
using Parts = std::map<std::int64_t, std::vector<std::int64_t>>;

/// Generalizes a pair: each axis of an input gets a symbol for each of its parts, and symbols that
/// the ops require to be equal are merged. Nothing if symbols do not suffice.
[[nodiscard]] std::optional<General> generalised(Context& context, const Pair& pair,
                                                 const Parts& parts);
/// Returns the same forms with a number for each symbol.
[[nodiscard]] std::optional<Pair> at_sizes(Context& context, const General& general,
                                           const std::vector<std::int64_t>& sizes);

}  // namespace pw::discover
