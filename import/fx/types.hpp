// Private to the importer: types of inputs that stand elsewhere than in the dump's signature.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "import/fx/ast.hpp"
#include "import/fx/fx.hpp"

namespace pw::fx {

/// `l_x_` is the node of the argument `L_x_`; both name the input.
[[nodiscard]] bool names_input(std::string_view given, std::string_view input);

/// Gives inputs without a type the ones that `load_args` of Inductor's script states further down
/// in the text; returns how many.
std::size_t take_load_args(std::string_view text, Function& function);

/// Gives inputs the types of the options. PW0505 and PW0506 where one is no type, or not what the
/// dump states; names that are no parameters are left to the module's attributes.
Status take_given_types(Context& context, const FxOptions& options, Function& function);

}  // namespace pw::fx
