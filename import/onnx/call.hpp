// A node of an ONNX model during its translation into calls of known ops: its inputs, its
// attributes, and the calls.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/contents.hpp"
#include "import/fx/call_importer.hpp"
#include "import/onnx/model.hpp"

namespace pw::onnx {

/// Thrown if a node has a form that its lowering does not accept; it then stays a separate call.
/// The importer catches it.
struct GiveUp {
  std::string reason;
};

/// Whole numbers that are known during the import, such as shapes and axes; some may be symbolic.
struct KnownNumbers {
  DType dtype = DType::i64;
  std::vector<std::int64_t> extents;
  Shape numbers;  ///< row-major
};

/// A value of the model, in each form in which it is known.
struct ModelValue {
  std::string name;
  std::optional<fx::Value> tensor = {};
  std::shared_ptr<const StoredContents> contents = {};
  std::optional<KnownNumbers> known = {};
};
using ModelValues = std::vector<ModelValue>;

/// Largest number of elements that are known one by one.
inline constexpr std::int64_t kMostKnown = 4096;

/// Tensors of known values: numbers, fills and weights.
class Constants {
 public:
  explicit Constants(fx::CallImporter& to) : to_(to) {}
  /// Returns the tensor of a value; made on first use.
  const fx::Value& tensor(ModelValue& value);
  fx::Value tensor(std::shared_ptr<const StoredContents> contents, const std::string& name);
  /// Counts the bytes of a constant that a lowering made. GiveUp if the total is too large.
  void count_made(const StoredContents& contents);
  static constexpr std::size_t kMostMadeBytes = std::size_t{128} << 20;
  [[nodiscard]] bool made_too_much() const { return made_ > kMostMadeBytes; }
  /// Returns the contents of the created weights, by name.
  [[nodiscard]] const InputContents& contents() const { return contents_; }

 private:
  fx::Value of_dims(const KnownNumbers& known, const std::string& name);
  fx::CallImporter& to_;
  InputContents contents_;
  std::size_t made_ = 0;  // bytes
};

// Arguments of calls.
[[nodiscard]] fx::Value tensor_list(std::vector<fx::Value> items);
[[nodiscard]] fx::Value real(double value);
[[nodiscard]] fx::Value truth(bool value);
[[nodiscard]] fx::Value word(std::string value);
[[nodiscard]] fx::Value type_name(DType dtype);
[[nodiscard]] fx::Value none();

/// Inputs and attributes of a node. Invariant: what was read is recorded, as a lowering must read
/// all that are given; otherwise the node is not its own. GiveUp if one is missing, or has another
/// form.
class OnnxArguments {
 public:
  OnnxArguments(fx::CallImporter& to, Constants& constants, const OnnxNode& node,
                std::vector<ModelValue*> inputs, std::int64_t version)
      : to_(to),
        constants_(constants),
        node_(node),
        inputs_(std::move(inputs)),
        version_(version) {}

  [[nodiscard]] const OnnxNode& node() const { return node_; }
  [[nodiscard]] std::int64_t version() const { return version_; }  ///< of its opset

  // ---- inputs
  [[nodiscard]] std::size_t count() const { return inputs_.size(); }
  [[nodiscard]] bool has(std::size_t i) const {
    return i < inputs_.size() && inputs_[i] != nullptr;
  }
  fx::Value tensor(std::size_t i);
  Type type(std::size_t i);
  std::size_t rank(std::size_t i) { return type(i).shape.size(); }
  ModelValue& value(std::size_t i);
  /// Returns known numbers; nothing if they are unknown during the import.
  const KnownNumbers* known(std::size_t i);
  /// Returns whole numbers of rank 0 or 1.
  Shape dims(std::size_t i);
  std::vector<std::int64_t> integers(std::size_t i);
  std::int64_t integer(std::size_t i);
  std::vector<double> reals(std::size_t i);
  double real(std::size_t i);

  // ---- attributes
  [[nodiscard]] const OnnxAttribute* find(std::string_view name);
  [[nodiscard]] bool has(std::string_view name) { return find(name) != nullptr; }
  std::int64_t integer(std::string_view name, std::int64_t otherwise);
  std::int64_t integer(std::string_view name);
  double real(std::string_view name, double otherwise);
  std::string text(std::string_view name, std::string otherwise);
  std::vector<std::int64_t> integers(std::string_view name, std::vector<std::int64_t> otherwise);
  void ignore(std::string_view name) { (void)find(name); }
  /// Checks that all given inputs and attributes were read; GiveUp otherwise.
  void check_all_read() const;
  /// Returns the contents of an attribute that is a tensor; GiveUp if the library lacks its dtype.
  [[nodiscard]] ModelValue contents_of_attribute(const OnnxTensor& tensor) const;

  // ---- types and dims
  [[nodiscard]] Type type(const fx::Value& x) const;
  [[nodiscard]] Dims& dims() const { return to_.context().dims; }
  [[nodiscard]] std::optional<std::int64_t> extent(DimId dim) const { return dims().value(dim); }
  /// Returns all extents, or throws GiveUp.
  [[nodiscard]] std::vector<std::int64_t> extents(const Shape& shape) const;

 protected:
  fx::CallImporter& to_;
  Constants& constants_;
  const OnnxNode& node_;

 private:
  std::vector<ModelValue*> inputs_;
  std::int64_t version_;
  std::set<std::size_t> read_inputs_;
  std::set<std::string, std::less<>> read_attributes_;
};

/// A node during its lowering: its arguments, and the calls that it becomes. Their results are
/// named after the node's.
class OnnxCall : public OnnxArguments {
 public:
  using OnnxArguments::OnnxArguments;

  fx::Value call(std::string_view target, std::vector<fx::Value> arguments,
                 std::vector<std::pair<std::string, fx::Value>> keywords = {});
  /// Attributes of a node with one result, of an op of the library. Numbers among the operands get
  /// the first tensor's dtype.
  using OpAttributes = std::vector<std::pair<std::string_view, Attribute>>;
  fx::Value op(std::string_view op, const std::vector<fx::Value>& operands,
               const OpAttributes& attributes = {});
  std::vector<fx::Value> ops(std::string_view op, const std::vector<fx::Value>& operands,
                             const OpAttributes& attributes = {});
  fx::Value constant(std::shared_ptr<const StoredContents> contents);
  fx::Value cast(const fx::Value& x, DType dtype);
  fx::Value reshape(const fx::Value& x, const Shape& shape);
  /// Returns 0, 1, 2, … along one of `rank` axes.
  fx::Value places_along(DimId extent, std::size_t axis, std::size_t rank);
  fx::Value expand(const fx::Value& x, const Shape& shape);
  fx::Value permute(const fx::Value& x, const std::vector<std::size_t>& order);
  fx::Value slice(const fx::Value& x, std::size_t axis, DimId begin, DimId end,
                  std::int64_t step = 1);
  fx::Value number(std::int64_t value) { return integer_value(dims().constant(value)); }
  fx::Value integer_value(DimId dim);
  fx::Value list(const Shape& dims);
  fx::Value list(const std::vector<std::int64_t>& numbers);
  [[nodiscard]] const Facts& facts() const { return to_.facts(); }

  ModelValue result(fx::Value tensor) const { return {"", std::move(tensor)}; }
  ModelValue result(KnownNumbers known) const { return {"", {}, {}, std::move(known)}; }
  /// Returns a value for a constant that the lowering made.
  ModelValue result(std::shared_ptr<const StoredContents> contents) const {
    constants_.count_made(*contents);
    return {"", {}, std::move(contents)};
  }
};

/// Largest constant that is made. GiveUp if one would have more elements, or if a number is not a
/// count.
inline constexpr std::int64_t kMostMade = std::int64_t{1} << 22;
void check_made(std::int64_t count);
/// Returns the axis counted from the front; GiveUp if there is no such axis.
[[nodiscard]] std::size_t axis_in(std::int64_t axis, std::size_t rank);
/// Returns a constant's whole numbers; nothing if there are too many.
[[nodiscard]] std::optional<KnownNumbers> known_of(const StoredContents& contents, Dims& dims);

}  // namespace pw::onnx
