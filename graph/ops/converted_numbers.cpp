#include "graph/ops/converted_numbers.hpp"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>

#include <fmt/format.h>

namespace pw {
namespace {

struct Converted {
  std::string_view op;
  std::array<std::string_view, 2> numbers;
};

// Found by calls of PyTorch 2.15 with f16 and 65519, which would round to 65504.
constexpr auto kConverted = std::to_array<Converted>({
    {"add", {"alpha"}},
    {"clamp", {"min", "max"}},
    {"clamp_max", {"max"}},
    {"clamp_min", {"min"}},
    {"constant_pad_nd", {"value"}},
    {"fill", {"value"}},
    {"full", {"fill_value"}},
    {"full_like", {"fill_value"}},
    {"hardshrink", {"lambd"}},
    {"hardtanh", {"min_val", "max_val"}},
    {"index_add", {"alpha"}},
    {"index_fill", {"value"}},
    {"linspace", {"start", "end"}},
    {"masked_fill", {"value"}},
    {"new_full", {"fill_value"}},
    {"pow", {"exponent"}},
    {"rsub", {"alpha"}},
    {"scatter", {"value"}},
    {"sub", {"alpha"}},
    {"threshold", {"value"}},
});

/// Returns the largest finite number of a float dtype; infinity for any other, and for f64.
double largest_of(DType dtype) {
  switch (dtype) {
    case DType::f8e4m3: return 448;
    case DType::f8e5m2: return 57344;
    case DType::f16: return 65504;
    case DType::bf16: return 0x1.fep127;
    case DType::f32: return FLT_MAX;
    case DType::f64:
    case DType::b8:
    case DType::i8:
    case DType::i32:
    case DType::i64:
    case DType::u8: break;
  }
  return HUGE_VAL;
}

}  // namespace

std::string number_beyond_range(
    std::string_view target, DType result,
    const std::function<std::optional<double>(std::string_view)>& number) {
  constexpr std::string_view kPyTorch = "aten.";
  if (!target.starts_with(kPyTorch)) return {};
  target.remove_prefix(kPyTorch.size());
  const auto* row =
      std::ranges::find(kConverted, target.substr(0, target.find('.')), &Converted::op);
  if (row == kConverted.end()) return {};
  for (const std::string_view name : row->numbers) {
    const std::optional<double> given = name.empty() ? std::nullopt : number(name);
    if (given && std::isfinite(*given) && std::abs(*given) > largest_of(result))
      return fmt::format("{} = {} is beyond the range of {}", name, *given, pw::name(result));
  }
  return {};
}

}  // namespace pw
