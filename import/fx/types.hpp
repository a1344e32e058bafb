// Private to the importer: types of inputs that are stated outside the dump's signature.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "import/fx/fx.hpp"
#include "import/fx/text/ast.hpp"

namespace pw::fx {

/// Returns true if both names refer to one input: `l_x_` is the node of the argument `L_x_`.
[[nodiscard]] bool names_input(std::string_view given, std::string_view input);

/// Gives inputs without a type those that `load_args` of Inductor's script states later in the
/// text; returns how many.
std::size_t take_load_args(std::string_view text, Function& function);

/// Gives inputs the types of the options. PW0505 and PW0506 if one is not a type, or contradicts
/// the dump; names that are not parameters are left to the module's attributes.
Status take_given_types(Context& context, const FxOptions& options, Function& function);

}  // namespace pw::fx
