// Extents that the kernels of scaled_attention read from their calls.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "backends/kernel.hpp"

namespace pw::eager {

/// Extents of the call; `planes` counts query planes, one for each head.
struct AttentionSizes {
  std::int64_t batch = 1, heads, key_heads, queries, keys, width, value_width;
  bool causal = false;
  double scale = 1;
  [[nodiscard]] std::int64_t planes() const { return batch * heads; }
  [[nodiscard]] std::int64_t group() const { return heads / key_heads; }
  /// Returns the number of keys that queries below `end` see.
  [[nodiscard]] std::int64_t seen(std::int64_t end) const {
    return causal ? std::min(keys, end) : keys;
  }
};

inline AttentionSizes sizes_of(const Call& call, std::size_t first) {
  const Extents &q = call.operand(first).extents, &k = call.operand(first + 1).extents,
                &v = call.operand(first + 2).extents;
  const std::size_t at = q.size() - 3;
  AttentionSizes out{.heads = q[at],
                     .key_heads = k[at],
                     .queries = q[at + 1],
                     .keys = k[at + 1],
                     .width = q[at + 2],
                     .value_width = v[at + 2]};
  for (std::size_t i = 0; i < at; ++i) out.batch *= q[i];
  out.causal = call.integer("causal", 0) != 0;
  out.scale = call.real("scale", 1 / std::sqrt(static_cast<double>(out.width)));
  return out;
}

inline Status check_heads(const Call& call, const AttentionSizes& sizes) {
  if (sizes.key_heads > 0 ? sizes.heads % sizes.key_heads == 0 : sizes.heads == 0) return {};
  return fail_call(call, "PW1203",
                   fmt::format("{} query heads are not a multiple of {} key heads", sizes.heads,
                               sizes.key_heads));
}

/// Returns the last `last` dims of an operand, at index `place` of the leading dims in row-major
/// order.
inline Array plane_of(const Array& x, std::int64_t place, std::size_t last) {
  const std::size_t before = x.extents.size() - last;
  std::int64_t offset = 0;
  for (std::size_t i = before; i-- > 0; place /= x.extents[i])
    offset += place % x.extents[i] * x.strides[i];
  Array out = x;
  out.data = x.at(offset);
  out.extents.erase(out.extents.begin(), out.extents.begin() + static_cast<std::ptrdiff_t>(before));
  out.strides.erase(out.strides.begin(), out.strides.begin() + static_cast<std::ptrdiff_t>(before));
  return out;
}

}  // namespace pw::eager
