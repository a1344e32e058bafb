// What tensors of an ONNX model hold, wherever it stands: in the message, as bytes or typed
// numbers, or in a file beside the model.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/contents.hpp"
#include "graph/dtype.hpp"
#include "import/onnx/model.hpp"

namespace pw::onnx {

/// Of a TensorProto.DataType; nothing where the library lacks it.
[[nodiscard]] std::optional<DType> dtype_of(std::int64_t element);
[[nodiscard]] std::int64_t element_type_of(DType dtype);
/// As ONNX calls it: "FLOAT", "INT4".
[[nodiscard]] std::string element_name(std::int64_t element);

/// What a model has read of the files beside it.
struct ExternalFiles {
  std::string folder;           ///< of the model; empty: it has none
  std::set<std::string> paths;  ///< of those that were read
  std::uint64_t stored = 0;     ///< bytes that they take on the disk, without holes
  std::uint64_t read = 0;       ///< bytes of tensors
  /// Counts a tensor. Returns false once tensors share parts, or are holes, to a multiple of what
  /// the disk holds.
  bool count(const std::string& path, std::uint64_t bytes);
};

/// Returns null if the library has no such dtype. PW0521 where the numbers are not those of the
/// shape, and where external data lies outside of the model's folder or is not all there.
Result<std::shared_ptr<const StoredContents>> contents_of(const OnnxTensor& tensor,
                                                          ExternalFiles& files,
                                                          const std::string& file);

[[nodiscard]] std::int64_t count_of(const StoredContents& contents);
/// The element at a place; nothing for the dtypes of 16 and 8 bits that are floats.
[[nodiscard]] std::optional<double> real_at(const StoredContents& contents, std::int64_t at);
/// All elements of whole numbers and booleans; nothing for floats, and for more than `most`.
[[nodiscard]] std::optional<std::vector<std::int64_t>> whole_numbers(const StoredContents& contents,
                                                                     std::int64_t most);
/// The bytes of numbers in a dtype: whole numbers, booleans, f32 and f64.
[[nodiscard]] std::shared_ptr<const StoredContents> stored(DType dtype,
                                                           std::vector<std::int64_t> extents,
                                                           const std::vector<double>& numbers);
[[nodiscard]] std::shared_ptr<const StoredContents> stored(
    DType dtype, std::vector<std::int64_t> extents, const std::vector<std::int64_t>& numbers);

}  // namespace pw::onnx
