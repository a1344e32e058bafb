// Special values of dtypes and their arrangement. Two columns of a sample must contain all pairs of
// special values. Rows are points of an affine plane over a prime field and columns are lines of
// different slopes, so any two meet once for each pair, which is an orthogonal array of strength 2.
#include "verify/samples/special_values.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "tensor/numerics.hpp"

namespace pw {
namespace {

ElementBits bits_of(DType dtype, double value) {
  const Tensor one(dtype, {1});
  store(dtype, one.data(), 0, value);
  return load_bits(one, 0);
}

class Values {
 public:
  Values(DType dtype, Contents contents) : dtype_(dtype) {
    if (dtype == DType::b8) {
      add(0), add(1);
    } else if (!is_float(dtype)) {
      if (contents == Contents::edges) whole();
    } else if (contents == Contents::edges) {
      edges();
    } else if (contents == Contents::infinite) {
      infinities();
    } else if (contents == Contents::nan) {
      add(std::numeric_limits<double>::quiet_NaN());
    }
  }
  std::vector<ElementBits> take() { return std::move(values_); }

 private:
  void add(double value) { add_bits(bits_of(dtype_, value)); }
  void add_bits(ElementBits bits) {
    if (std::find(values_.begin(), values_.end(), bits) == values_.end()) values_.push_back(bits);
  }

  /// Adds a value in two's complement unless the type cannot hold it.
  void add_whole(std::int64_t value) {
    const int width = 8 * size_of(dtype_);
    const bool has_sign = dtype_ != DType::u8;
    const std::int64_t least = has_sign ? std::int64_t{-1} << (width - 1) : 0;
    const std::int64_t most = width == 64 ? std::numeric_limits<std::int64_t>::max()
                              : has_sign  ? (std::int64_t{1} << (width - 1)) - 1
                                          : (std::int64_t{1} << width) - 1;
    if (value < least || value > most) return;
    const auto bits = static_cast<ElementBits>(value);
    add_bits(width == 64 ? bits : bits & ((ElementBits{1} << width) - 1));
  }

  void whole() {
    for (const std::int64_t near : {0, 1, 2, 3, 7, 100}) add_whole(near), add_whole(-near);
    for (const int width : {7, 8, 15, 16, 31, 32, 53, 63}) {
      const std::int64_t negative = std::int64_t{-1} << width;  // 2^63 is out of range
      for (const std::int64_t end : {width == 63 ? negative : -negative, negative})
        for (const std::int64_t step : {-2, -1, 0, 1}) {
          std::int64_t value = 0;
          if (!__builtin_add_overflow(end, step, &value)) add_whole(value);
        }
    }
    add_whole(std::numeric_limits<std::int64_t>::max());
    add_whole(std::numeric_limits<std::int64_t>::max() - 1);
  }

  static constexpr double kWide = 1e30;  // f16 and fp8 have few numbers near the end of exp

  void edges() {
    const FloatFormat format = format_of(dtype_);
    const double least = std::ldexp(1.0, format.smallest), step = std::ldexp(1.0, -format.mantissa),
                 smallest = least * step;
    const std::array magnitudes = {0.0,
                                   smallest,
                                   least / 4,
                                   least - smallest,
                                   least,
                                   std::sqrt(least),
                                   0.5,
                                   1.0,
                                   1 + step,
                                   1 - step / 2,
                                   1.5,
                                   2.5,
                                   100.0,
                                   448.0,
                                   65504.0,
                                   1e5,
                                   std::sqrt(format.largest),
                                   format.largest / 2,
                                   format.largest};
    for (double value : magnitudes) {
      value = std::min(value, format.largest);
      add(value), add(-value);
    }
    if (format.largest < kWide) return;
    const double past_exp = std::log(format.largest) + 0.3;  // exp overflows, sinh does not
    add(past_exp), add(-past_exp);
  }

  /// Numbers beyond the range of fp8 saturate where they are stored: e5m2's infinities are bits.
  void infinities() {
    if (dtype_ == DType::f8e4m3) return;
    if (dtype_ == DType::f8e5m2) return add_bits(0x7c), add_bits(0xfc);
    add(std::numeric_limits<double>::infinity());
    add(-std::numeric_limits<double>::infinity());
  }

  DType dtype_;
  std::vector<ElementBits> values_;
};

bool is_prime(std::int64_t n) {
  for (std::int64_t d = 2; d * d <= n; ++d)
    if (n % d == 0) return false;
  return n > 1;
}

/// A prime, so that rows meet in pairs. At least a third of the rows are ordinary numbers if any
/// exist.
std::int64_t levels_for(DType dtype, Contents contents, std::size_t values) {
  if (values == 0) return 1;
  const auto count = static_cast<std::int64_t>(values);
  std::int64_t levels = dtype == DType::b8            ? count
                        : contents == Contents::edges ? count + count / 2
                                                      : 3 * count + 1;
  while (!is_prime(levels)) ++levels;
  return levels;
}

struct Entry {
  std::vector<ElementBits> values;
  std::int64_t levels = 1;
};

const Entry& entry_of(DType dtype, Contents contents) {
  using Table = std::array<std::array<Entry, std::size(kContents)>, kDTypeCount>;
  static const Table kTable = [] {
    Table table;
    for (int d = 0; d < kDTypeCount; ++d)
      for (const Contents c : kContents) {
        Entry& entry = table[static_cast<std::size_t>(d)][static_cast<std::size_t>(c)];
        entry.values = Values(static_cast<DType>(d), c).take();
        entry.levels = levels_for(static_cast<DType>(d), c, entry.values.size());
      }
    return table;
  }();
  return kTable[static_cast<std::size_t>(dtype)][static_cast<std::size_t>(contents)];
}

}  // namespace

const std::vector<ElementBits>& special_values(DType dtype, Contents contents) {
  return entry_of(dtype, contents).values;
}

std::int64_t cycle_of(DType dtype, Contents contents) { return entry_of(dtype, contents).levels; }

std::size_t special_at(DType dtype, Contents contents, std::uint64_t row, std::uint64_t column) {
  const auto levels = static_cast<std::uint64_t>(entry_of(dtype, contents).levels);
  if (levels == 1) return 0;
  // Lines of a plane over a prime field: two of different slopes meet once. No slope is 0.
  const std::uint64_t slope = 1 + column % (levels - 1);
  return static_cast<std::size_t>((row / levels + row % levels * slope) % levels);
}

void store_bits(const Tensor& tensor, std::int64_t i, ElementBits bits) {
  const auto size = static_cast<std::size_t>(size_of(tensor.dtype()));
  std::memcpy(tensor.data() + static_cast<std::size_t>(i) * size, &bits, size);
}

ElementBits load_bits(const Tensor& tensor, std::int64_t i) {
  const auto size = static_cast<std::size_t>(size_of(tensor.dtype()));
  ElementBits bits = 0;
  std::memcpy(&bits, tensor.data() + static_cast<std::size_t>(i) * size, size);
  return bits;
}

}  // namespace pw
