#include "import/onnx/tensors.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/parse_number.hpp"
#include "base/try.hpp"

namespace pw::onnx {
namespace {

static_assert(std::endian::native == std::endian::little,
              "elements are stored as the file has them");

constexpr std::size_t kMostDims = 32;

constexpr std::array<std::string_view, 27> kElementNames = {
    "UNDEFINED",      "FLOAT",    "UINT8",        "INT8",           "UINT16",
    "INT16",          "INT32",    "INT64",        "STRING",         "BOOL",
    "FLOAT16",        "DOUBLE",   "UINT32",       "UINT64",         "COMPLEX64",
    "COMPLEX128",     "BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2",
    "FLOAT8E5M2FNUZ", "UINT4",    "INT4",         "FLOAT4E2M1",     "FLOAT8E8M0",
    "UINT2",          "INT2"};

template <class T>
void append_bytes(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T element_at(const StoredContents& contents, std::int64_t at) {
  T out;
  std::memcpy(&out, contents.bytes.data() + at * static_cast<std::int64_t>(sizeof out), sizeof out);
  return out;
}

/// Returns the bytes of one whole number; narrower dtypes take the lowest.
template <class Number>
void append_whole(std::string& out, DType dtype, Number value) {
  const auto whole = static_cast<std::int64_t>(value);
  out.append(reinterpret_cast<const char*>(&whole), static_cast<std::size_t>(size_of(dtype)));
}

template <class Number>
std::shared_ptr<const StoredContents> stored_numbers(DType dtype, std::vector<std::int64_t> extents,
                                                     const std::vector<Number>& numbers) {
  auto out = std::make_shared<StoredContents>();
  out->dtype = dtype;
  out->extents = std::move(extents);
  for (const Number number : numbers) {
    if (dtype == DType::f32)
      append_bytes(out->bytes, static_cast<float>(number));
    else if (dtype == DType::f64)
      append_bytes(out->bytes, static_cast<double>(number));
    else
      append_whole(out->bytes, dtype, number);
  }
  return out;
}

/// Returns the bytes of the elements for the extents; nothing if a file cannot hold them.
std::optional<std::uint64_t> bytes_of(DType dtype, const std::vector<std::int64_t>& extents) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
  std::uint64_t out = static_cast<std::uint64_t>(size_of(dtype));
  bool empty = false;
  for (const std::int64_t extent : extents) {
    if (extent < 0) return std::nullopt;
    empty = empty || extent == 0;
    if (extent > 0 && out > kMost / static_cast<std::uint64_t>(extent)) return std::nullopt;
    if (extent > 0) out *= static_cast<std::uint64_t>(extent);
  }
  return empty ? 0 : out;
}

std::string typed_bytes(const OnnxTensor& tensor, DType dtype) {
  std::string out;
  for (const float value : tensor.floats) append_bytes(out, value);
  for (const double value : tensor.doubles) append_bytes(out, value);
  for (const std::int64_t value : tensor.integers) append_whole(out, dtype, value);
  return out;
}

/// Returns true if the message fills the typed list of the dtype.
bool typed_as(const OnnxTensor& tensor, DType dtype) {
  if (!tensor.floats.empty() && dtype != DType::f32) return false;
  if (!tensor.doubles.empty() && dtype != DType::f64) return false;
  return tensor.integers.empty() || (dtype != DType::f32 && dtype != DType::f64);
}

/// A part of a file next to the model.
class ExternalPart {
 public:
  ExternalPart(const OnnxTensor& tensor, ExternalFiles& files, std::string place)
      : tensor_(tensor), files_(files), folder_(files.folder), place_(std::move(place)) {}

  Result<std::string> read(std::uint64_t bytes) {
    std::string location;
    std::uint64_t offset = 0, length = bytes;
    for (const auto& [key, value] : tensor_.external_data) {
      if (key == "location") location = value;
      if (key == "offset" && !number(value, offset))
        return refuse("its offset `" + value + "` is not a number");
      if (key == "length" && !number(value, length))
        return refuse("its length `" + value + "` is not a number");
    }
    if (length != bytes)
      return refuse(
          fmt::format("its external data has {} bytes, but its shape requires {}", length, bytes));
    auto path = PW_TRY(path_of(location));
    return part_of(path, location, offset, length);
  }

 private:
  static bool number(const std::string& text, std::uint64_t& out) {
    const auto parsed = parse_number<std::uint64_t>(text);
    out = parsed.value_or(out);
    return parsed.has_value();
  }
  tl::unexpected<Diagnostics> refuse(std::string why) const {
    return fail(error_in(place_, "PW0521", std::move(why),
                         "external data must be in files in the model's folder"));
  }
  /// Returns the path of a file that is inside the folder after following all links.
  Result<std::filesystem::path> path_of(const std::string& location) const {
    namespace fs = std::filesystem;
    const fs::path given(location);
    if (folder_.empty())
      return refuse("its data is in another file, but the folder of the model is unknown");
    if (location.empty() || location.find('\0') != std::string::npos || given.is_absolute())
      return refuse(
          fmt::format("its data is at `{}`, which is not a file in the model's folder", location));
    for (const fs::path& part : given)
      if (part == "..")
        return refuse(fmt::format("its data is at `{}`, which is not a file in the model's folder",
                                  location));
    std::error_code wrong;
    const fs::path root = fs::canonical(folder_, wrong);
    const fs::path file = wrong ? fs::path() : fs::canonical(root / given, wrong);
    if (wrong) return refuse(fmt::format("there is no `{}` in the model's folder", location));
    const fs::path within = file.lexically_relative(root);
    if (within.empty() || *within.begin() == ".." || !fs::is_regular_file(file, wrong))
      return refuse(
          fmt::format("its data is at `{}`, which is not a file in the model's folder", location));
    return file;
  }
  Result<std::string> part_of(const std::filesystem::path& path, const std::string& location,
                              std::uint64_t offset, std::uint64_t length) const {
    std::error_code wrong;
    const std::uint64_t size = std::filesystem::file_size(path, wrong);
    if (wrong || offset > size || length > size - offset)
      return refuse(fmt::format("its data is bytes {} to {} of `{}`, which has {} bytes", offset,
                                offset + length, location, wrong ? 0 : size));
    if (!files_.count(path.string(), length))
      return refuse(
          fmt::format("the tensors up to this one read {} bytes of files that hold only {}",
                      files_.read, files_.stored));
    std::string out(length, '\0');
    std::ifstream file(path, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    file.read(out.data(), static_cast<std::streamsize>(length));
    if (!file) return refuse(fmt::format("`{}` cannot be read", location));
    return out;
  }

  const OnnxTensor& tensor_;
  ExternalFiles& files_;
  const std::string& folder_;
  std::string place_;
};

}  // namespace

std::optional<DType> dtype_of(std::int64_t element) {
  switch (static_cast<ElementType>(element)) {
    case ElementType::f32: return DType::f32;
    case ElementType::u8: return DType::u8;
    case ElementType::i8: return DType::i8;
    case ElementType::i32: return DType::i32;
    case ElementType::i64: return DType::i64;
    case ElementType::b8: return DType::b8;
    case ElementType::f16: return DType::f16;
    case ElementType::f64: return DType::f64;
    case ElementType::bf16: return DType::bf16;
    case ElementType::f8e4m3fn: return DType::f8e4m3;
    case ElementType::f8e5m2: return DType::f8e5m2;
    case ElementType::undefined:
    case ElementType::string: return std::nullopt;
  }
  return std::nullopt;
}

std::int64_t element_type_of(DType dtype) {
  for (std::int64_t element = 1; element < static_cast<std::int64_t>(kElementNames.size());
       ++element)
    if (dtype_of(element) == dtype) return element;
  return 0;
}

std::string element_name(std::int64_t element) {
  if (element >= 0 && element < static_cast<std::int64_t>(kElementNames.size()))
    return std::string(kElementNames[static_cast<std::size_t>(element)]);
  return fmt::format("element type {}", element);
}

bool ExternalFiles::count(const std::string& path, std::uint64_t bytes) {
  constexpr std::uint64_t kAlways = std::uint64_t{64} << 20, kMostTimes = 4, kBlock = 512;
  struct stat info{};
  if (paths.insert(path).second && ::stat(path.c_str(), &info) == 0)
    stored += static_cast<std::uint64_t>(info.st_blocks) * kBlock;
  read += bytes;
  return read <= kAlways + kMostTimes * stored;
}

Result<std::shared_ptr<const StoredContents>> contents_of(const OnnxTensor& tensor,
                                                          ExternalFiles& files,
                                                          const std::string& file) {
  const std::string place = fmt::format("{}, tensor `{}`", file, tensor.name);
  const std::optional<DType> dtype = dtype_of(tensor.element);
  if (!dtype) return std::shared_ptr<const StoredContents>();
  if (tensor.extents.size() > kMostDims)
    return fail(error_in(place, "PW0521", fmt::format("it has more than {} dims", kMostDims)));
  const std::optional<std::uint64_t> bytes = bytes_of(*dtype, tensor.extents);
  if (!bytes)
    return fail(error_in(place, "PW0521", "its shape has a negative extent or is too large"));
  if (!typed_as(tensor, *dtype))
    return fail(
        error_in(place, "PW0521",
                 "its numbers are not stored in the field for " + element_name(tensor.element)));
  auto out = std::make_shared<StoredContents>();
  out->dtype = *dtype;
  out->extents = tensor.extents;
  if (tensor.external) {
    auto part = PW_TRY(ExternalPart(tensor, files, place).read(*bytes));
    out->bytes = std::move(part);
  } else {
    out->bytes = tensor.raw ? std::string(*tensor.raw) : typed_bytes(tensor, *dtype);
  }
  if (out->bytes.size() != *bytes)
    return fail(error_in(place, "PW0521",
                         fmt::format("it has {} bytes of elements, but its shape requires {}",
                                     out->bytes.size(), *bytes)));
  return std::shared_ptr<const StoredContents>(std::move(out));
}

std::int64_t count_of(const StoredContents& contents) {
  return static_cast<std::int64_t>(contents.bytes.size()) / size_of(contents.dtype);
}

std::optional<double> real_at(const StoredContents& contents, std::int64_t at) {
  switch (contents.dtype) {
    case DType::f32: return element_at<float>(contents, at);
    case DType::f64: return element_at<double>(contents, at);
    case DType::b8: return element_at<std::uint8_t>(contents, at) != 0;
    case DType::u8: return element_at<std::uint8_t>(contents, at);
    case DType::i8: return element_at<std::int8_t>(contents, at);
    case DType::i32: return element_at<std::int32_t>(contents, at);
    case DType::i64: return static_cast<double>(element_at<std::int64_t>(contents, at));
    case DType::f8e4m3:
    case DType::f8e5m2:
    case DType::f16:
    case DType::bf16: return std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::vector<std::int64_t>> whole_numbers(const StoredContents& contents,
                                                       std::int64_t most) {
  if (is_float(contents.dtype) || count_of(contents) > most) return std::nullopt;
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < count_of(contents); ++i)
    out.push_back(contents.dtype == DType::i64 ? element_at<std::int64_t>(contents, i)
                                               : static_cast<std::int64_t>(*real_at(contents, i)));
  return out;
}

std::shared_ptr<const StoredContents> stored(DType dtype, std::vector<std::int64_t> extents,
                                             const std::vector<double>& numbers) {
  return stored_numbers(dtype, std::move(extents), numbers);
}

std::shared_ptr<const StoredContents> stored(DType dtype, std::vector<std::int64_t> extents,
                                             const std::vector<std::int64_t>& numbers) {
  return stored_numbers(dtype, std::move(extents), numbers);
}

}  // namespace pw::onnx
