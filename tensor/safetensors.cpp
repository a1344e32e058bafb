#include "tensor/safetensors.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "base/try.hpp"
#include "dsl/graph_formats.hpp"

namespace pw {
namespace {

constexpr std::array<std::pair<std::string_view, DType>, 11> kNames{{{"BOOL", DType::b8},
                                                                     {"U8", DType::u8},
                                                                     {"I8", DType::i8},
                                                                     {"I32", DType::i32},
                                                                     {"I64", DType::i64},
                                                                     {"F8_E4M3", DType::f8e4m3},
                                                                     {"F8_E5M2", DType::f8e5m2},
                                                                     {"F16", DType::f16},
                                                                     {"BF16", DType::bf16},
                                                                     {"F32", DType::f32},
                                                                     {"F64", DType::f64}}};

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

}  // namespace

std::optional<DType> dtype_stored_as(std::string_view written) {
  for (const auto& [name, dtype] : kNames)
    if (name == written) return dtype;
  return std::nullopt;
}
std::string_view stored_name(DType dtype) {
  const auto found = std::find_if(kNames.begin(), kNames.end(),
                                  [&](const auto& entry) { return entry.second == dtype; });
  return found->first;
}

Result<Safetensors> Safetensors::open(const std::string& path, std::size_t number) {
  Safetensors out;
  out.path_ = path;
  auto file = PW_TRY(MappedFile::open(path));
  out.file_ = std::move(file);
  const std::string_view bytes = text_of(out.file_);
  if (const GraphFormat* format = format_with_tensors(bytes)) {
    auto tensors = format->tensors(bytes, path, number);
    PW_TRY(out.file_.check_unchanged());
    if (!tensors) return forward(tensors);
    out.file_ = MappedFile::of(*tensors);
  }
  auto header = parse_safetensors(text_of(out.file_), path);
  PW_TRY(out.file_.check_unchanged());
  if (!header) return forward(header);
  out.header_ = std::move(*header);
  return out;
}

const StoredTensor* Safetensors::find(std::string_view name) const {
  const auto found = std::lower_bound(
      header_.tensors.begin(), header_.tensors.end(), name,
      [](const StoredTensor& tensor, std::string_view wanted) { return tensor.name < wanted; });
  return found == header_.tensors.end() || found->name != name ? nullptr : &*found;
}

Result<Tensor> Safetensors::tensor(const StoredTensor& stored) const {
  const auto dtype = dtype_stored_as(stored.dtype);
  if (!dtype)
    return fail(error_in(fmt::format("{} at {}", path_, stored.name), "PW1272",
                         fmt::format("tensors of {} are not supported", stored.dtype)));
  if (stored.begin == stored.end) return Tensor(*dtype, stored.extents);
  auto part = file_.part(header_.data + stored.begin);
  constexpr std::uintptr_t kAligned = 64;
  if (reinterpret_cast<std::uintptr_t>(part.get()) % kAligned == 0)
    return Tensor(*dtype, stored.extents, std::move(part));
  Tensor copy(*dtype, stored.extents);
  std::memcpy(copy.data(), part.get(), stored.end - stored.begin);
  return copy;
}

}  // namespace pw
