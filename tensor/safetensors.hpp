// Reads and writes files of named tensors in the safetensors format: eight bytes with the length of
// a header, the header as JSON, then the tensors' bytes without gaps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensor/mapped_file.hpp"
#include "tensor/tensor.hpp"

namespace pw {

/// One entry of a header. Offsets count from the end of the header.
struct StoredTensor {
  std::string name;
  std::string dtype;  ///< as written in the file: "BF16"
  Extents extents;
  std::uint64_t begin = 0, end = 0;
};
/// Returns the dtype for its name in a file; nothing for dtypes that graphs lack, such as 16-bit
/// integers and unsigned integers above u8.
[[nodiscard]] std::optional<DType> dtype_stored_as(std::string_view written);
[[nodiscard]] std::string_view stored_name(DType dtype);

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  ///< by name
  std::uint64_t data = 0;             ///< file offset of the tensors' bytes
};
/// Parses the header in a whole file's bytes. Fails with PW1271, and the tensor's name if it
/// concerns one. Errors are: a length beyond the file or above 100 MB; more than 131072 tensors or
/// 32 dims; invalid JSON; an entry without dtype, shape or data_offsets; an unknown dtype; a byte
/// range that does not match the shape, overlaps, leaves a gap or exceeds the file; a duplicate
/// name.
Result<SafetensorsHeader> parse_safetensors(std::string_view bytes, const std::string& file);
/// Returns the header and bytes of a file, sorted by name.
[[nodiscard]] std::string safetensors_text(std::vector<std::pair<std::string, TensorView>> tensors);

/// A file that stays mapped while any of its tensors lives.
class Safetensors {
 public:
  /// Opens a file. For a PT2 archive it holds the tensors in memory, under the names of the graph's
  /// inputs; `number` selects one of its models, from 1 (PW1274, see pt2_tensors.hpp).
  static Result<Safetensors> open(const std::string& path, std::size_t number = 0);
  [[nodiscard]] const std::vector<StoredTensor>& tensors() const { return header_.tensors; }
  /// Returns a header entry, or null.
  [[nodiscard]] const StoredTensor* find(std::string_view name) const;
  /// Returns a tensor; fails with PW1272 if graphs lack its dtype. Unaligned bytes are copied.
  [[nodiscard]] Result<Tensor> tensor(const StoredTensor& stored) const;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const MappedFile& file() const { return file_; }

 private:
  std::string path_;
  MappedFile file_;
  SafetensorsHeader header_;
};

}  // namespace pw
