// PyTorch's enumerations as PT2 archives write them: numbers of torch/_export/serde/schema.py,
// which are not those of c10.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "graph/dtype.hpp"

namespace pw::pt2 {

struct ScalarType {
  std::int64_t number;
  std::string_view torch;         ///< "torch.float32"
  std::string_view abbreviation;  ///< "f32", as torch prints it in types
  std::optional<DType> dtype;     ///< of the library; nothing if it has none
};
/// Returns the type with that number, or null.
[[nodiscard]] const ScalarType* scalar_type(std::int64_t number);

inline constexpr std::int64_t kStrided = 7;  ///< the layout of dense tensors
/// Returns "torch.strided"; empty if none has that number.
[[nodiscard]] std::string_view layout_name(std::int64_t number);
/// Returns "torch.channels_last"; empty if none has that number.
[[nodiscard]] std::string_view memory_format_name(std::int64_t number);

}  // namespace pw::pt2
