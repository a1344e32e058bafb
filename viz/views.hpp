// The views of the page: its tabs and its initial view.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pw {

/// The initial view of a page, or the form of a picture. `overview` closes groups and draws equal
/// ones once, `graph` opens them, `all` draws every copy, and `side` shows two versions. For a
/// picture, `changes` crops to the changes.
enum class View : std::uint8_t {
  automatic,
#define PW_VIEW(name, title, needs) name,
#include "viz/views.def"
#undef PW_VIEW
};

/// Returns the name of a view: "auto" or a name of views.def.
[[nodiscard]] std::string_view name(View view);
[[nodiscard]] std::vector<std::string> view_names();
[[nodiscard]] std::optional<View> view_named(std::string_view name);

}  // namespace pw
