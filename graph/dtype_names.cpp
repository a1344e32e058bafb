#include "graph/dtype_names.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace pw {
namespace {

struct Alias {
  std::string_view name;
  DType dtype;
};
/// Names in lower case, without `_` and `torch.`. "e4m3fnuz" has another bias and no equivalent
/// here.
constexpr std::array kAliases = std::to_array<Alias>({
    {"bool", DType::b8},
    {"boolean", DType::b8},
    {"b1", DType::b8},
    {"int8", DType::i8},
    {"char", DType::i8},
    {"s8", DType::i8},
    {"int32", DType::i32},
    {"int", DType::i32},
    {"s32", DType::i32},
    {"int64", DType::i64},
    {"long", DType::i64},
    {"s64", DType::i64},
    {"uint8", DType::u8},
    {"byte", DType::u8},
    {"fp8", DType::f8e4m3},
    {"f8", DType::f8e4m3},
    {"float8", DType::f8e4m3},
    {"fp8e4m3", DType::f8e4m3},
    {"float8e4m3", DType::f8e4m3},
    {"e4m3", DType::f8e4m3},
    {"fp8e4m3fn", DType::f8e4m3},
    {"f8e4m3fn", DType::f8e4m3},
    {"float8e4m3fn", DType::f8e4m3},
    {"e4m3fn", DType::f8e4m3},
    {"fp8e5m2", DType::f8e5m2},
    {"float8e5m2", DType::f8e5m2},
    {"e5m2", DType::f8e5m2},
    {"half", DType::f16},
    {"fp16", DType::f16},
    {"float16", DType::f16},
    {"bfloat16", DType::bf16},
    {"bfloat", DType::bf16},
    {"bfp16", DType::bf16},
    {"brain16", DType::bf16},
    {"float", DType::f32},
    {"single", DType::f32},
    {"fp32", DType::f32},
    {"float32", DType::f32},
    {"double", DType::f64},
    {"fp64", DType::f64},
    {"float64", DType::f64},
});

std::string plain(std::string_view name) {
  if (const std::size_t dot = name.rfind('.'); dot != std::string_view::npos)
    name.remove_prefix(dot + 1);
  std::string out;
  for (char c : name)
    if (c != '_') out.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  return out;
}

/// Returns true for a kind of number with its bits: "i16", "uint32", "float128".
bool is_sized(std::string_view name) {
  constexpr std::array<std::string_view, 9> kPrefixes{"bfloat", "float", "uint", "int", "bf",
                                                      "fp",     "f",     "i",    "u"};
  constexpr std::array<std::string_view, 6> kBits{"4", "8", "16", "32", "64", "128"};
  for (std::string_view prefix : kPrefixes) {
    if (!name.starts_with(prefix)) continue;
    const std::string_view rest = name.substr(prefix.size());
    if (std::find(kBits.begin(), kBits.end(), rest) != kBits.end()) return true;
  }
  return false;
}

}  // namespace

std::optional<DType> dtype_meant(std::string_view name) {
  if (dtype_named(name)) return std::nullopt;
  const std::string wanted = plain(name);
  if (auto here = dtype_named(wanted)) return here;
  for (const Alias& alias : kAliases)
    if (alias.name == wanted) return alias.dtype;
  return std::nullopt;
}

bool looks_like_dtype(std::string_view name) {
  return !dtype_named(name) && (dtype_meant(name) || is_sized(plain(name)));
}

std::string dtype_hint(std::string_view name) {
  if (auto meant = dtype_meant(name))
    return "did you mean `" + std::string(pw::name(*meant)) + "`?";
  std::string out = "dtypes are ";
  for (int i = 0; i < kDTypeCount; ++i)
    out += (i == 0 ? "" : ", ") + std::string(pw::name(static_cast<DType>(i)));
  return out;
}

}  // namespace pw
