#include "viz/views.hpp"

#include <algorithm>
#include <array>

namespace pw {
namespace {

constexpr std::array kViewNames{
    std::string_view("auto"),
#define PW_VIEW(name, title, needs) std::string_view(#name),
#include "viz/views.def"
#undef PW_VIEW
};

}  // namespace

std::string_view name(View view) { return kViewNames[static_cast<std::size_t>(view)]; }

std::vector<std::string> view_names() { return {kViewNames.begin(), kViewNames.end()}; }

std::optional<View> view_named(std::string_view name) {
  const auto found = std::find(kViewNames.begin(), kViewNames.end(), name);
  if (found == kViewNames.end()) return std::nullopt;
  return static_cast<View>(found - kViewNames.begin());
}

}  // namespace pw
