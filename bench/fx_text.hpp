// FX text of a decoder of any size, as print_readable() writes what AOT autograd traced: comments
// with the places of calls, types, and names let go behind their last use.
#pragma once

#include <cstdint>
#include <string>

namespace pw::bench {

[[nodiscard]] std::string fx_text(std::int64_t layers);

}  // namespace pw::bench
