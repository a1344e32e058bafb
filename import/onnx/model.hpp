// An ONNX model as its file says it (onnx.ai/onnx/repo-docs/IR.html): the messages that computing
// needs, with views of the file for contents. Plain data; the numbers of the fields stand in
// model.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostic.hpp"

namespace pw::onnx {

/// TensorProto.DataType, as far as the library has the dtypes.
enum class ElementType : std::int64_t {
  undefined = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  i32 = 6,
  i64 = 7,
  string = 8,
  b8 = 9,
  f16 = 10,
  f64 = 11,
  bf16 = 16,
  f8e4m3fn = 17,
  f8e5m2 = 19,
};

struct OnnxTensor {
  std::string name;
  std::int64_t element = 0;  ///< an ElementType, or another number
  std::vector<std::int64_t> extents;
  // One of these holds the elements.
  std::optional<std::string_view> raw;
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<std::int64_t> integers;  ///< int32_data, int64_data or uint64_data
  bool strings = false;
  bool external = false;
  std::vector<std::pair<std::string, std::string>> external_data;  ///< location, offset, length, …
};

struct OnnxAttribute {
  std::string name;
  std::string reference;  ///< of a node in a function: the function's attribute that it is
  std::int64_t type = 0;  ///< AttributeProto.AttributeType; 0: older files do not say
  std::optional<float> real;
  std::optional<std::int64_t> integer;
  std::optional<std::string> text;
  std::optional<OnnxTensor> tensor;
  std::vector<float> reals;
  std::vector<std::int64_t> integers;
  std::vector<std::string> texts;
  bool other = false;  ///< graphs, types, sparse tensors and lists of tensors
};

struct OnnxNode {
  std::string name, op, domain, overload;
  std::vector<std::string> inputs, outputs;  ///< empty: left out
  std::vector<OnnxAttribute> attributes;
};

struct OnnxDim {
  std::optional<std::int64_t> extent;
  std::string parameter;  ///< the symbol, where there is no number; may be empty, too
};

struct OnnxValue {
  std::string name;
  bool tensor = false;
  std::int64_t element = 0;
  std::optional<std::vector<OnnxDim>> shape;  ///< nothing: not even the rank is known
};

struct OnnxGraph {
  std::string name;
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> initializers;
  std::vector<OnnxValue> inputs, outputs, values;
  bool sparse = false;  ///< it has sparse initialisers
};

using OpsetVersions = std::vector<std::pair<std::string, std::int64_t>>;  ///< by domain

struct OnnxFunction {
  std::string name, domain, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<OnnxAttribute> defaults;
  std::vector<OnnxNode> nodes;
  OpsetVersions opsets;
};

struct OnnxModel {
  std::int64_t ir_version = 0;
  OpsetVersions opsets;
  OnnxGraph graph;
  std::vector<OnnxFunction> functions;
};

/// Whether the bytes begin as those of a model do.
[[nodiscard]] bool looks_like_onnx(std::string_view bytes);
/// The text must outlive the model. PW0520, with the place in the file, for what is no model.
[[nodiscard]] Result<OnnxModel> read_model(std::string_view bytes, const std::string& file);

}  // namespace pw::onnx
