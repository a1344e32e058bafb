// What inputs of a graph hold, as the file says that the graph was read from: bytes, as tensors are
// above this folder.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/dtype.hpp"

namespace pw {

/// Row-major elements in their own dtype, little-endian.
struct StoredContents {
  DType dtype = DType::f32;
  std::vector<std::int64_t> extents;
  std::string bytes;
};
/// By the name of the input.
using InputContents = std::map<std::string, std::shared_ptr<const StoredContents>, std::less<>>;

}  // namespace pw
