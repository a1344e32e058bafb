#include "import/pt2/dtypes.hpp"

#include <algorithm>
#include <array>

namespace pw::pt2 {
namespace {

constexpr std::optional<DType> kLacking;
constexpr ScalarType kScalarTypes[] = {
    {1, "torch.uint8", "u8", DType::u8},
    {2, "torch.int8", "i8", DType::i8},
    {3, "torch.int16", "i16", kLacking},
    {4, "torch.int32", "i32", DType::i32},
    {5, "torch.int64", "i64", DType::i64},
    {6, "torch.float16", "f16", DType::f16},
    {7, "torch.float32", "f32", DType::f32},
    {8, "torch.float64", "f64", DType::f64},
    {9, "torch.complex32", "c32", kLacking},
    {10, "torch.complex64", "c64", kLacking},
    {11, "torch.complex128", "c128", kLacking},
    {12, "torch.bool", "b8", DType::b8},
    {13, "torch.bfloat16", "bf16", DType::bf16},
    {28, "torch.uint16", "u16", kLacking},
    {29, "torch.float8_e4m3fn", "f8e4m3fn", DType::f8e4m3},
    {30, "torch.float8_e5m2", "f8e5m2", DType::f8e5m2},
    {31, "torch.float8_e4m3fnuz", "f8e4m3fnuz", kLacking},
    {32, "torch.float8_e5m2fnuz", "f8e5m2fnuz", kLacking},
    {33, "torch.float8_e8m0fnu", "f8e8m0fnu", kLacking},
    {34, "torch.uint32", "u32", kLacking},
    {35, "torch.uint64", "u64", kLacking},
};
constexpr std::array<std::string_view, 8> kLayouts{"",
                                                   "torch.sparse_coo",
                                                   "torch.sparse_csr",
                                                   "torch.sparse_csc",
                                                   "torch.sparse_bsr",
                                                   "torch.sparse_bsc",
                                                   "torch._mkldnn",
                                                   "torch.strided"};
constexpr std::array<std::string_view, 5> kMemoryFormats{
    "", "torch.contiguous_format", "torch.channels_last", "torch.channels_last_3d",
    "torch.preserve_format"};

template <std::size_t size>
std::string_view nth(const std::array<std::string_view, size>& names, std::int64_t number) {
  return number < 0 || static_cast<std::size_t>(number) >= size
             ? std::string_view{}
             : names[static_cast<std::size_t>(number)];
}

}  // namespace

const ScalarType* scalar_type(std::int64_t number) {
  const auto* found =
      std::find_if(std::begin(kScalarTypes), std::end(kScalarTypes),
                   [number](const ScalarType& type) { return type.number == number; });
  return found == std::end(kScalarTypes) ? nullptr : found;
}

std::string_view layout_name(std::int64_t number) { return nth(kLayouts, number); }
std::string_view memory_format_name(std::int64_t number) { return nth(kMemoryFormats, number); }

}  // namespace pw::pt2
