// Which ops the proof engine knows the elements of without unfolding.
#pragma once

#include <string_view>

namespace pw::proof {

/// An op of the library without a body whose operands broadcast, and whose result is computed
/// element by element. The trait `pointwise` says no less of an op that nothing else is known of,
/// and whose attributes a term would not hold.
[[nodiscard]] bool is_pointwise_primitive(std::string_view op);

}  // namespace pw::proof
