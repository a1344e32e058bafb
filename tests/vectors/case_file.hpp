// Reads the vector files: the results that an op must compute for stated inputs. The format is in
// README.md of this folder.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/context.hpp"
#include "tensor/tensor.hpp"

namespace pw::vectors {

struct Expected {
  Tensor tensor;
  double ulps = 0;  ///< largest error in steps of the dtype at max(|expected|, floor)
  double floor = 0;
  double equal = 0;  ///< least share of elements equal after rounding
};

struct Case {
  std::string name;
  std::vector<std::pair<std::string, Attribute>> attributes;
  std::vector<Tensor> inputs;
  std::vector<Expected> outputs;
};

struct CaseFile {
  std::string op;
  std::vector<Case> cases;
};

/// Lists among the attributes are of `dims`. Throws std::runtime_error for a file that README.md
/// does not describe; it is test data, so this is a bug.
CaseFile read_case_file(const std::string& path, Dims& dims);

/// Why `actual` is not what is expected, with the worst element; empty when it is near enough.
std::string mismatch(const Expected& expected, const TensorView& actual);

}  // namespace pw::vectors
