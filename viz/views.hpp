// The views of the page: where it opens, and its tabs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pw {

/// Where a page opens, and whether a picture shows whole groups: `overview` closes them and draws
/// equal ones once, `graph` opens them, `all` draws every copy by itself, `side` two versions; of a
/// picture, `changes` is cropped to what changed.
enum class View : std::uint8_t {
  automatic,
#define PW_VIEW(name, title, needs) name,
#include "viz/views.def"
#undef PW_VIEW
};

/// "auto" and the names of views.def.
[[nodiscard]] std::string_view name(View view);
[[nodiscard]] std::vector<std::string> view_names();
[[nodiscard]] std::optional<View> view_named(std::string_view name);

}  // namespace pw
