// The version that both programs and their reports state.
#pragma once

namespace pw::cli {

inline constexpr const char* kVersion = "0.1";

}  // namespace pw::cli
