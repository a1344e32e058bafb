// The version that programs, reports and modules state: that of CMakeLists.txt.
#pragma once

namespace pw {

[[nodiscard]] const char* version();

}  // namespace pw
