// Contents of a graph's inputs in the file that the graph was read from. They are bytes: tensors
// belong to a higher layer.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/dtype.hpp"

namespace pw {

/// Contents of one input: row-major elements in their own dtype, little-endian.
struct StoredContents {
  DType dtype = DType::f32;
  std::vector<std::int64_t> extents;
  std::string bytes;
};
/// Contents by the name of the input.
using InputContents = std::map<std::string, std::shared_ptr<const StoredContents>, std::less<>>;

}  // namespace pw
