// Files of named tensors in the safetensors format: eight bytes with the length of a header, the
// header as JSON, then the tensors' bytes without holes.
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

/// One entry of a header. Places count from the end of the header.
struct StoredTensor {
  std::string name;
  std::string dtype;  ///< as it is written: "BF16"
  Extents extents;
  std::uint64_t begin = 0, end = 0;
};
/// Null for what graphs do not have: unsigned integers above u8, 16-bit ones.
[[nodiscard]] std::optional<DType> dtype_stored_as(std::string_view written);
[[nodiscard]] std::string_view stored_name(DType dtype);

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  ///< by name
  std::uint64_t data = 0;             ///< where the tensors' bytes begin in the file
};
/// Of a whole file's bytes. PW1271, with the tensor where it is one's: a length beyond the file or
/// above 100 MB, more than 131072 tensors or 32 dims of one, no JSON, an entry without dtype, shape
/// or data_offsets, an unknown dtype, bytes that are not the shape's, that overlap, leave a hole or
/// end beyond the file, a name twice.
Result<SafetensorsHeader> parse_safetensors(std::string_view bytes, const std::string& file);
/// Header and bytes, by name.
[[nodiscard]] std::string safetensors_text(std::vector<std::pair<std::string, TensorView>> tensors);

/// A file that is mapped for as long as one of its tensors lives.
class Safetensors {
 public:
  /// Also of a PT2 archive: its tensors by the names of the graph's inputs, in memory; `number`
  /// chooses one of its models, from 1 (PW1274, see pt2_tensors.hpp).
  static Result<Safetensors> open(const std::string& path, std::size_t number = 0);
  [[nodiscard]] const std::vector<StoredTensor>& tensors() const { return header_.tensors; }
  /// Null when absent.
  [[nodiscard]] const StoredTensor* find(std::string_view name) const;
  /// PW1272 for a dtype that graphs do not have. Bytes that are not aligned are copied.
  [[nodiscard]] Result<Tensor> tensor(const StoredTensor& stored) const;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const MappedFile& file() const { return file_; }

 private:
  std::string path_;
  MappedFile file_;
  SafetensorsHeader header_;
};

}  // namespace pw
