// Generates FX text of a decoder of any size, in the form in which print_readable() writes a trace
// of AOT autograd: comments with source locations, types, and names released after their last use.
#pragma once

#include <cstdint>
#include <string>

namespace pw::bench {

[[nodiscard]] std::string fx_text(std::int64_t layers);

}  // namespace pw::bench
