// Contents of an ONNX model's tensors, wherever they are stored: in the message, as bytes or typed
// numbers, or in a file next to the model.
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

/// Returns the dtype of a TensorProto.DataType; nothing if the library lacks it.
[[nodiscard]] std::optional<DType> dtype_of(std::int64_t element);
[[nodiscard]] std::int64_t element_type_of(DType dtype);
/// Returns ONNX's name: "FLOAT", "INT4".
[[nodiscard]] std::string element_name(std::int64_t element);

/// Files next to the model that have been read.
struct ExternalFiles {
  std::string folder;           ///< of the model; empty: it has none
  std::set<std::string> paths;  ///< of those that were read
  std::uint64_t stored = 0;     ///< bytes that they take on the disk, without holes
  std::uint64_t read = 0;       ///< bytes of tensors
  /// Counts a tensor. Returns false once tensors share parts, or are holes, to a multiple of what
  /// the disk holds.
  bool count(const std::string& path, std::uint64_t bytes);
};

/// Returns the contents; null if the library has no such dtype. PW0521 if the numbers do not fit
/// the shape, or if external data is outside the model's folder or incomplete.
Result<std::shared_ptr<const StoredContents>> contents_of(const OnnxTensor& tensor,
                                                          ExternalFiles& files,
                                                          const std::string& file);

[[nodiscard]] std::int64_t count_of(const StoredContents& contents);
/// Returns the element at a place; nothing for float dtypes of 16 and 8 bits.
[[nodiscard]] std::optional<double> real_at(const StoredContents& contents, std::int64_t at);
/// Returns all elements of whole numbers and booleans; nothing for floats, and for more than
/// `most`.
[[nodiscard]] std::optional<std::vector<std::int64_t>> whole_numbers(const StoredContents& contents,
                                                                     std::int64_t most);
/// Returns the bytes of numbers in a dtype: whole numbers, booleans, f32 and f64.
[[nodiscard]] std::shared_ptr<const StoredContents> stored(DType dtype,
                                                           std::vector<std::int64_t> extents,
                                                           const std::vector<double>& numbers);
[[nodiscard]] std::shared_ptr<const StoredContents> stored(
    DType dtype, std::vector<std::int64_t> extents, const std::vector<std::int64_t>& numbers);

}  // namespace pw::onnx
