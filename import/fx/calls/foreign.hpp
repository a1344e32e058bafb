// Private to the importer: calls of foreign ops, declared in rule files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "import/fx/emit/emitter.hpp"
#include "import/fx/ops.hpp"

namespace pw::fx {

/// Returns the rows of a target. Items of rule files precede the table's own rows; a declaration
/// comes last. Null if there are none.
const std::vector<Mapping>* mappings_of(Table& table, Context& context, std::string_view target);
/// Binds arguments to parameters. Omitted ones stay omitted: the item has their defaults.
std::optional<Bound> bind_foreign_call(Graph& graph, const Mapping& mapping,
                                       const Arguments& arguments, std::string& why);
/// Builds the body of an item. `last`: no other row may agree with a type that the dump states.
Applied convert_foreign(const KnownCall& call, bool last);

}  // namespace pw::fx
