// The ops whose elements the proof engine defines without unfolding.
#pragma once

#include <string_view>

namespace pw::proof {

/// Returns true for a library op without a body whose operands broadcast and whose result is
/// computed elementwise. The trait `pointwise` alone does not suffice: it also covers unknown ops,
/// whose attributes a term does not store.
[[nodiscard]] bool is_pointwise_primitive(std::string_view op);

}  // namespace pw::proof
