// Quantities as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace pw {

/// Formats a time: "12 µs", "3.4 ms", "1.20 s".
[[nodiscard]] std::string seconds(double s);
/// Formats a size: "512 B", "64.0 KiB", "12.5 MiB".
[[nodiscard]] std::string bytes(std::int64_t n);

}  // namespace pw
