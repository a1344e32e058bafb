// Conversion loops, one per pair of storage and compute type.
#include <cmath>
#include <limits>
#include <type_traits>

#include "tensor/array.hpp"
#include "tensor/convert.hpp"
#include "tensor/numerics.hpp"

namespace pw {
namespace {

using convert::read, convert::write;

template <class T>
constexpr bool kReal = std::is_floating_point_v<T>;

/// Converts between two plain types.
template <class To, class From>
To to(From value) {
  if constexpr (kReal<From> && !kReal<To>) {
    if (std::isnan(value)) return 0;
    if (value >= static_cast<From>(std::numeric_limits<To>::max()))
      return std::numeric_limits<To>::max();
    if (value <= static_cast<From>(std::numeric_limits<To>::min()))
      return std::numeric_limits<To>::min();
  }
  return static_cast<To>(value);
}

template <class T, class Out, class Decode>
void load_loop(const std::byte* data, std::int64_t step, std::int64_t n, Out* out, Decode decode) {
  if (step == 1) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = to<Out>(decode(read<T>(data, i)));
  } else if (step == 0) {
    const Out value = to<Out>(decode(read<T>(data, 0)));
    for (std::int64_t i = 0; i < n; ++i) out[i] = value;
  } else {
    for (std::int64_t i = 0; i < n; ++i) out[i] = to<Out>(decode(read<T>(data, i * step)));
  }
}
template <class T, class In, class Encode>
void store_loop(std::byte* data, std::int64_t step, std::int64_t n, const In* in, Encode encode) {
  if (step == 1) {
    for (std::int64_t i = 0; i < n; ++i) write<T>(data, i, encode(in[i]));
  } else {
    for (std::int64_t i = 0; i < n; ++i) write<T>(data, i * step, encode(in[i]));
  }
}

template <class Out>
void load_any(DType dtype, const std::byte* data, std::int64_t step, std::int64_t n, Out* out) {
  const auto same = [](auto x) { return x; };
  switch (dtype) {
    case DType::b8:
      return load_loop<std::uint8_t>(
          data, step, n, out, [](std::uint8_t x) { return static_cast<std::uint8_t>(x != 0); });
    case DType::i8: return load_loop<std::int8_t>(data, step, n, out, same);
    case DType::i32: return load_loop<std::int32_t>(data, step, n, out, same);
    case DType::i64: return load_loop<std::int64_t>(data, step, n, out, same);
    case DType::u8: return load_loop<std::uint8_t>(data, step, n, out, same);
    case DType::f8e4m3: return load_loop<std::uint8_t>(data, step, n, out, convert::f8e4m3_to_f32);
    case DType::f8e5m2: return load_loop<std::uint8_t>(data, step, n, out, convert::f8e5m2_to_f32);
    case DType::f16: return load_loop<std::uint16_t>(data, step, n, out, convert::f16_to_f32);
    case DType::bf16: return load_loop<std::uint16_t>(data, step, n, out, convert::bf16_to_f32);
    case DType::f32: return load_loop<float>(data, step, n, out, same);
    case DType::f64: return load_loop<double>(data, step, n, out, same);
  }
}

/// The float from which a narrow type is rounded; from double it is rounded to odd, so that there
/// is one rounding in all.
inline float narrow(float x) { return x; }
inline float narrow(double x) { return convert::f64_to_f32_odd(x); }
inline float narrow(std::int64_t x) { return convert::f64_to_f32_odd(static_cast<double>(x)); }

template <class In>
void store_any(DType dtype, std::byte* data, std::int64_t step, std::int64_t n, const In* in) {
  switch (dtype) {
    case DType::b8:
      return store_loop<std::uint8_t>(data, step, n, in,
                                      [](In x) { return static_cast<std::uint8_t>(x != 0); });
    case DType::i8: return store_loop<std::int8_t>(data, step, n, in, to<std::int8_t, In>);
    case DType::i32: return store_loop<std::int32_t>(data, step, n, in, to<std::int32_t, In>);
    case DType::i64: return store_loop<std::int64_t>(data, step, n, in, to<std::int64_t, In>);
    case DType::u8: return store_loop<std::uint8_t>(data, step, n, in, to<std::uint8_t, In>);
    case DType::f8e4m3:
      return store_loop<std::uint8_t>(data, step, n, in,
                                      [](In x) { return convert::f32_to_f8e4m3(narrow(x)); });
    case DType::f8e5m2:
      return store_loop<std::uint8_t>(data, step, n, in,
                                      [](In x) { return convert::f32_to_f8e5m2(narrow(x)); });
    case DType::f16:
      return store_loop<std::uint16_t>(data, step, n, in,
                                       [](In x) { return convert::f32_to_f16(narrow(x)); });
    case DType::bf16:
      return store_loop<std::uint16_t>(data, step, n, in,
                                       [](In x) { return convert::f32_to_bf16(narrow(x)); });
    case DType::f32:
      return store_loop<float>(data, step, n, in, [](In x) { return static_cast<float>(x); });
    case DType::f64:
      return store_loop<double>(data, step, n, in, [](In x) { return static_cast<double>(x); });
  }
}

}  // namespace

void load_run(DType dtype, const std::byte* data, std::int64_t step, std::int64_t n, float* out) {
  load_any(dtype, data, step, n, out);
}
void load_run(DType dtype, const std::byte* data, std::int64_t step, std::int64_t n, double* out) {
  load_any(dtype, data, step, n, out);
}
void load_run(DType dtype, const std::byte* data, std::int64_t step, std::int64_t n,
              std::int64_t* out) {
  load_any(dtype, data, step, n, out);
}
void store_run(DType dtype, std::byte* data, std::int64_t step, std::int64_t n, const float* in) {
  store_any(dtype, data, step, n, in);
}
void store_run(DType dtype, std::byte* data, std::int64_t step, std::int64_t n, const double* in) {
  store_any(dtype, data, step, n, in);
}
void store_run(DType dtype, std::byte* data, std::int64_t step, std::int64_t n,
               const std::int64_t* in) {
  store_any(dtype, data, step, n, in);
}

}  // namespace pw
