// The most general sizes at which two forms are well typed and have outputs of one type: what was
// enumerated at a few small numbers becomes a rule for symbols.
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
  std::vector<std::int64_t> values;  ///< what each was in the forms that it was found in
};
struct General {
  Pair pair;  ///< types and attributes with symbols
  Symbols symbols;
};

/// By size: the sizes that it is the sum of, where it is taken apart somewhere.
using Parts = std::map<std::int64_t, std::vector<std::int64_t>>;

/// Each axis of an input gets a symbol for each of its parts; those that the ops need to be equal
/// become one. Nothing where symbols do not do.
[[nodiscard]] std::optional<General> generalised(Context& context, const Pair& pair,
                                                 const Parts& parts);
/// The same forms with a number for each symbol.
[[nodiscard]] std::optional<Pair> at_sizes(Context& context, const General& general,
                                           const std::vector<std::int64_t>& sizes);

}  // namespace pw::discover
