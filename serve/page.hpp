// The fixed style and script of the page.
#pragma once

#include <string_view>

namespace pw::cli {

extern const std::string_view kPageStyle;
extern const std::string_view kPageScript;

}  // namespace pw::cli
