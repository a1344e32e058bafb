// An ONNX model as stored in its file (onnx.ai/onnx/repo-docs/IR.html): the messages that computing
// needs, with views of the file for contents. Plain data; model.cpp lists the field numbers.
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
  std::int64_t type = 0;  ///< AttributeProto.AttributeType; 0: older files omit it
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
  std::string scopes;  ///< metadata `pkg.torch.onnx.name_scopes`, as it is printed
  std::vector<std::string> inputs, outputs;  ///< empty: omitted
  std::vector<OnnxAttribute> attributes;
};

struct OnnxDim {
  std::optional<std::int64_t> extent;
  std::string parameter;  ///< the symbol if there is no number; may be empty, too
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

/// Returns true if the bytes begin like a model.
[[nodiscard]] bool looks_like_onnx(std::string_view bytes);
/// Reads a model. The text must outlive it. PW0520, with the place in the file, for anything else.
[[nodiscard]] Result<OnnxModel> read_model(std::string_view bytes, const std::string& file);

}  // namespace pw::onnx
