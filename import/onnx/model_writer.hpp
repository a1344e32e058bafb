// Private to the exporter: writes an ONNX model, node by node.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/contents.hpp"
#include "graph/graph_format.hpp"
#include "import/onnx/wire.hpp"

namespace pw::onnx {

// Attributes of nodes.
[[nodiscard]] WireWriter integer_attribute(std::string_view name, std::int64_t value);
[[nodiscard]] WireWriter integers_attribute(std::string_view name,
                                            const std::vector<std::int64_t>& values);
[[nodiscard]] WireWriter text_attribute(std::string_view name, std::string_view value);
/// Returns an attribute of any kind; symbolic dims are text.
[[nodiscard]] WireWriter any_attribute(const Context& context, std::string_view name,
                                       const Attribute& value);

/// Body of an ONNX model. Values have the names of the graph's; others are generated. Invariant:
/// the first failure is kept, and write() reports it.
class ModelWriter {
 public:
  /// Creates a writer; the graph must outlive it.
  explicit ModelWriter(const Graph& graph) : graph_(graph), context_(graph.context()) {}

  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] const Type& type(ValueId v) const { return context_.types[graph_.type(v)]; }
  [[nodiscard]] std::string name(ValueId v) const { return std::string(graph_.value_name(v)); }
  [[nodiscard]] std::vector<std::string> results(NodeId n) const;
  [[nodiscard]] std::vector<std::string> operands(NodeId n) const;

  // Inputs and outputs of the model.
  Status input(ValueId v);
  Status output(ValueId v);

  // Values of known contents.
  std::string numbers(const std::vector<std::int64_t>& values);
  std::string scalar(std::int64_t value);
  /// Writes one number in any dtype.
  std::string number(double value, DType dtype);
  /// Writes a dim as a number of rank 0; symbols are read off inputs.
  std::string dim(DimId d);
  /// Writes a list of dims as a tensor of rank 1.
  std::string dims(const Shape& shape);

  // Nodes.
  void emit(std::string_view op, const std::vector<std::string>& inputs,
            const std::vector<std::string>& outputs, const std::vector<WireWriter>& attributes = {},
            std::string_view domain = "");
  /// Writes a node with one generated result, and returns its name.
  std::string made(std::string_view op, const std::vector<std::string>& inputs,
                   const std::vector<WireWriter>& attributes = {});
  std::string cast(const std::string& x, DType to);
  /// Returns the value in this dtype.
  std::string as(ValueId v, DType dtype);
  /// Writes a node of an op that ONNX lacks, in the library's own domain.
  void custom(NodeId n);

  [[nodiscard]] tl::unexpected<Diagnostics> refuse(const std::string& why) const;
  /// Returns the first failure of a node, if any.
  [[nodiscard]] Status status() const { return why_.empty() ? Status() : Status(refuse(why_)); }
  Result<WrittenGraph> write();

 private:
  [[nodiscard]] std::string fresh(std::string_view base);
  [[nodiscard]] Result<WireWriter> value_info(ValueId v, const std::string& called) const;
  void initialiser(const std::string& called, const StoredContents& contents);
  std::string constant(const std::shared_ptr<const StoredContents>& contents);

  const Graph& graph_;
  Context& context_;
  WireWriter body_;
  std::map<std::string, std::pair<std::string, std::int64_t>>
      symbols_;  ///< an input and an axis of each
  std::set<std::string> custom_, returned_;
  std::string why_;
  std::size_t next_ = 0;
};

}  // namespace pw::onnx
