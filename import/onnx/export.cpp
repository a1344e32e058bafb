#include "import/onnx/export.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/try.hpp"
#include "graph/build.hpp"
#include "import/onnx/tensors.hpp"
#include "import/onnx/wire.hpp"

namespace pw {
namespace {

using onnx::WireWriter;

constexpr std::int64_t kOpset = 21, kIrVersion = 10;
constexpr std::size_t kMostBytes = std::size_t{1} << 31;
constexpr std::string_view kDomain = "piecewise";

// Of AttributeProto.AttributeType.
enum class OnnxKind : std::int64_t {
  real = 1,
  integer = 2,
  text = 3,
  reals = 6,
  integers = 7,
  texts = 8
};

WireWriter attribute_start(std::string_view name, OnnxKind kind) {
  WireWriter out;
  out.text(1, name).integer(20, static_cast<std::int64_t>(kind));
  return out;
}
WireWriter integer_attribute(std::string_view name, std::int64_t value) {
  return attribute_start(name, OnnxKind::integer).integer(3, value);
}
WireWriter integers_attribute(std::string_view name, const std::vector<std::int64_t>& values) {
  WireWriter out = attribute_start(name, OnnxKind::integers);
  for (const std::int64_t value : values) out.integer(8, value);
  return out;
}
WireWriter text_attribute(std::string_view name, std::string_view value) {
  return attribute_start(name, OnnxKind::text).text(4, value);
}

/// Ops with exactly one ONNX counterpart of the same operands.
struct SameOp {
  std::string_view op, onnx;
};
constexpr auto kSame = std::to_array<SameOp>({
    {"add", "Add"},     {"sub", "Sub"},         {"mul", "Mul"},        {"div", "Div"},
    {"pow", "Pow"},     {"maximum", "Max"},     {"minimum", "Min"},    {"eq", "Equal"},
    {"lt", "Less"},     {"le", "LessOrEqual"},  {"gt", "Greater"},     {"ge", "GreaterOrEqual"},
    {"neg", "Neg"},     {"abs", "Abs"},         {"floor", "Floor"},    {"ceil", "Ceil"},
    {"round", "Round"}, {"sqrt", "Sqrt"},       {"exp", "Exp"},        {"log", "Log"},
    {"tanh", "Tanh"},   {"sin", "Sin"},         {"cos", "Cos"},        {"tan", "Tan"},
    {"asin", "Asin"},   {"acos", "Acos"},       {"atan", "Atan"},      {"sinh", "Sinh"},
    {"cosh", "Cosh"},   {"asinh", "Asinh"},     {"acosh", "Acosh"},    {"atanh", "Atanh"},
    {"erf", "Erf"},     {"sigmoid", "Sigmoid"}, {"relu", "Relu"},      {"mm", "MatMul"},
    {"bmm", "MatMul"},  {"detach", "Identity"}, {"clone", "Identity"},
});

class OnnxWriter {
 public:
  explicit OnnxWriter(const Graph& graph) : graph_(graph), context_(graph.context()) {}

  Result<WrittenGraph> write() {
    for (ValueId v : graph_.inputs()) PW_TRY(input(v));
    for (NodeId n : graph_.order()) PW_TRY(node(n));
    for (ValueId v : graph_.outputs()) PW_TRY(output(v));
    if (!why_.empty()) return refuse(why_);
    body_.text(2, graph_.name);
    WireWriter model, opset;
    opset.text(1, "").integer(2, kOpset);
    model.integer(1, kIrVersion).text(2, "piecewise").message(7, body_).message(8, opset);
    if (!custom_.empty()) {
      WireWriter own;
      model.message(8, own.text(1, kDomain).integer(2, 1));
    }
    if (model.str().size() >= kMostBytes)
      return refuse("the model is larger than 2 GiB, the limit of protobuf");
    return WrittenGraph{model.str(), {custom_.begin(), custom_.end()}};
  }

 private:
  tl::unexpected<Diagnostics> refuse(const std::string& why) const {
    return fail(error_in("graph " + graph_.name, "PW0526", why));
  }

  // ---- values

  [[nodiscard]] const Type& type(ValueId v) const { return context_.types[graph_.type(v)]; }
  std::string name(ValueId v) const { return std::string(graph_.value_name(v)); }
  std::string fresh(std::string_view base) { return fmt::format("{}__onnx_{}", base, next_++); }

  Result<WireWriter> value_info(ValueId v, const std::string& called) const {
    if (graph_.type(v) == Types::unknown())
      return refuse("the type of `" + called + "` is not known");
    WireWriter shape, tensor, of, out;
    for (const DimId d : type(v).shape) {
      WireWriter dim;
      if (const auto extent = context_.dims.value(d))
        dim.integer(1, *extent);
      else
        dim.text(2, context_.dims.print(d));
      shape.message(1, dim);
    }
    tensor.integer(1, onnx::element_type_of(type(v).dtype)).message(2, shape);
    of.message(1, tensor);
    return out.text(1, called).message(2, of);
  }

  Status input(ValueId v) {
    if (graph_.contents) {
      if (const auto found = graph_.contents->find(name(v)); found != graph_.contents->end()) {
        initialiser(name(v), *found->second);
        return {};
      }
    }
    auto info = PW_TRY(value_info(v, name(v)));
    body_.message(11, info);
    if (graph_.type(v) == Types::unknown()) return {};
    for (std::size_t i = 0; i < type(v).shape.size(); ++i) {
      const DimId d = type(v).shape[i];
      if (context_.dims.is_symbol(d))
        symbols_.try_emplace(context_.dims.print(d), name(v), static_cast<std::int64_t>(i));
    }
    return {};
  }

  // A graph may return a value twice, or an input; ONNX's outputs have names of their own.
  Status output(ValueId v) {
    std::string called = name(v);
    if (graph_.is_input(v) || !returned_.insert(called).second) {
      called = fresh(called);
      emit("Identity", {name(v)}, {called});
    }
    auto info = PW_TRY(value_info(v, called));
    body_.message(12, info);
    return {};
  }

  void initialiser(const std::string& called, const StoredContents& contents) {
    WireWriter tensor;
    for (const std::int64_t extent : contents.extents) tensor.integer(1, extent);
    tensor.integer(2, onnx::element_type_of(contents.dtype))
        .text(8, called)
        .text(9, contents.bytes);
    body_.message(5, tensor);
  }
  std::string constant(const std::shared_ptr<const StoredContents>& contents) {
    const std::string out = fresh("c");
    initialiser(out, *contents);
    return out;
  }
  std::string numbers(const std::vector<std::int64_t>& values) {
    return constant(onnx::stored(DType::i64, {static_cast<std::int64_t>(values.size())}, values));
  }
  std::string scalar(std::int64_t value) {
    return constant(onnx::stored(DType::i64, {}, std::vector<std::int64_t>{value}));
  }

  /// Returns the bytes of one number in any dtype.
  std::string number(double value, DType dtype) {
    if (dtype == DType::f32 || dtype == DType::f64 || !is_float(dtype))
      return constant(is_float(dtype) ? onnx::stored(dtype, {}, std::vector<double>{value})
                                      : onnx::stored(dtype, {},
                                                     std::vector<std::int64_t>{
                                                         static_cast<std::int64_t>(value)}));
    return cast(constant(onnx::stored(DType::f32, {}, std::vector<double>{value})), dtype);
  }

  // ---- nodes

  WireWriter& emit(std::string_view op, const std::vector<std::string>& inputs,
                   const std::vector<std::string>& outputs,
                   const std::vector<WireWriter>& attributes = {}, std::string_view domain = "") {
    WireWriter out;
    for (const std::string& in : inputs) out.text(1, in);
    for (const std::string& of : outputs) out.text(2, of);
    out.text(4, op);
    for (const WireWriter& attribute : attributes) out.message(5, attribute);
    if (!domain.empty()) out.text(7, domain);
    return body_.message(1, out);
  }
  std::string made(std::string_view op, const std::vector<std::string>& inputs,
                   const std::vector<WireWriter>& attributes = {}) {
    const std::string out = fresh("v");
    emit(op, inputs, {out}, attributes);
    return out;
  }
  std::string cast(const std::string& x, DType to) {
    return made("Cast", {x}, {integer_attribute("to", onnx::element_type_of(to))});
  }
  std::string as(ValueId v, DType dtype) {
    return type(v).dtype == dtype ? name(v) : cast(name(v), dtype);
  }

  /// Writes a dim as a number of rank 0; symbols are read off inputs.
  std::string dim(DimId d) {
    if (const auto value = context_.dims.value(d)) return scalar(*value);
    if (context_.dims.is_symbol(d)) {
      const auto found = symbols_.find(context_.dims.print(d));
      if (found == symbols_.end()) {
        why_ = "no input's shape determines `" + context_.dims.print(d) + "`";
        return {};
      }
      return made("Gather", {made("Shape", {found->second.first}), scalar(found->second.second)});
    }
    for (const std::string& symbol : context_.dims.symbols(d))
      if (const auto line = context_.dims.rising(d, symbol, graph_.facts))
        return made("Add", {made("Mul", {dim(line->factor), dim(context_.dims.symbol(symbol))}),
                            dim(line->rest)});
    why_ = "the dim `" + context_.dims.print(d) + "` is not a sum of products";
    return {};
  }
  /// Writes a list of dims as a tensor of rank 1.
  std::string dims(const Shape& shape) {
    std::vector<std::int64_t> values;
    for (const DimId d : shape)
      if (const auto value = context_.dims.value(d)) values.push_back(*value);
    if (values.size() == shape.size()) return numbers(values);
    std::vector<std::string> parts;
    for (const DimId d : shape) parts.push_back(made("Unsqueeze", {dim(d), numbers({0})}));
    return made("Concat", parts, {integer_attribute("axis", 0)});
  }

  [[nodiscard]] const Attribute* attribute(NodeId n, std::string_view of) const {
    return graph_.attribute(n, of);
  }
  [[nodiscard]] std::int64_t integer(NodeId n, std::string_view of) const {
    const Attribute* a = attribute(n, of);
    if (a == nullptr) return 0;
    if (const auto* truth = std::get_if<bool>(a)) return *truth;
    const auto* value = std::get_if<std::int64_t>(a);
    return value == nullptr ? 0 : *value;
  }
  DimId bound(NodeId n, std::string_view of) {
    const Attribute* a = attribute(n, of);
    if (const auto* d = a ? std::get_if<DimId>(a) : nullptr) return *d;
    return context_.dims.constant(integer(n, of));
  }
  [[nodiscard]] Shape shape_of(NodeId n, std::string_view of) const {
    const Attribute* a = attribute(n, of);
    const auto* list = a ? std::get_if<Shape>(a) : nullptr;
    return list == nullptr ? Shape() : *list;
  }

  std::vector<std::string> results(NodeId n) const {
    std::vector<std::string> out;
    for (std::size_t i = 0; i < graph_.result_count(n); ++i)
      out.push_back(name(graph_.result(n, i)));
    return out;
  }
  std::vector<std::string> operands(NodeId n) const {
    std::vector<std::string> out;
    for (const ValueId v : graph_.operands(n)) out.push_back(v.valid() ? name(v) : "");
    return out;
  }

  Status node(NodeId n) {
    for (const ValueId v : graph_.operands(n))
      if (v.valid() && graph_.type(v) == Types::unknown())
        return refuse("the type of `" + name(v) + "` is not known");
    using Write = void (OnnxWriter::*)(NodeId);
    static const std::map<std::string_view, Write> kWrites = {
        {"constant", &OnnxWriter::write_constant},   {"full", &OnnxWriter::write_full},
        {"empty", &OnnxWriter::write_full},          {"iota", &OnnxWriter::write_iota},
        {"reshape", &OnnxWriter::write_reshape},     {"expand", &OnnxWriter::write_expand},
        {"transpose", &OnnxWriter::write_transpose}, {"slice", &OnnxWriter::write_slice},
        {"split", &OnnxWriter::write_split},         {"cat", &OnnxWriter::write_cat},
        {"cast", &OnnxWriter::write_cast},           {"select", &OnnxWriter::write_select},
        {"ne", &OnnxWriter::write_unequal},          {"rsqrt", &OnnxWriter::write_rsqrt},
        {"fmod", &OnnxWriter::write_rest},           {"remainder", &OnnxWriter::write_rest},
        {"bitwise_and", &OnnxWriter::write_bits},    {"bitwise_or", &OnnxWriter::write_bits},
        {"bitwise_xor", &OnnxWriter::write_bits},    {"bitwise_not", &OnnxWriter::write_bits},
        {"sum", &OnnxWriter::write_reduction},       {"mean", &OnnxWriter::write_reduction},
        {"amax", &OnnxWriter::write_reduction},      {"amin", &OnnxWriter::write_reduction},
        {"prod", &OnnxWriter::write_reduction},      {"argmax", &OnnxWriter::write_place},
        {"argmin", &OnnxWriter::write_place},        {"cumsum", &OnnxWriter::write_scan},
        {"sort", &OnnxWriter::write_sort},           {"embedding", &OnnxWriter::write_rows},
        {"index", &OnnxWriter::write_index},         {"addmm", &OnnxWriter::write_addmm},
        {"gelu", &OnnxWriter::write_gelu},           {"gelu_tanh", &OnnxWriter::write_gelu},
    };
    const std::string& op = graph_.op_of(n).name;
    if (const auto same = std::find_if(kSame.begin(), kSame.end(),
                                       [&](const SameOp& row) { return row.op == op; });
        same != kSame.end())
      write_same(n, same->onnx);
    else if (const auto found = kWrites.find(op); found != kWrites.end())
      (this->*found->second)(n);
    else
      write_custom(n);
    return why_.empty() ? Status() : Status(refuse(why_));
  }

  // Operands of several dtypes are brought to the one in which the op computes.
  void write_same(NodeId n, std::string_view onnx_op) {
    const std::vector<ValueId> given = graph_.operands(n);
    std::vector<std::string> inputs;
    if (given.size() == 2 && onnx_op != "MatMul") {
      const DType common = promote(type(given[0]).dtype, type(given[0]).shape.empty(),
                                   type(given[1]).dtype, type(given[1]).shape.empty());
      for (const ValueId v : given) inputs.push_back(as(v, common));
    } else {
      inputs = operands(n);
    }
    emit(onnx_op, inputs, results(n));
  }
  void write_unequal(NodeId n) {
    const ValueId a = graph_.operand(n, 0), b = graph_.operand(n, 1);
    const DType common =
        promote(type(a).dtype, type(a).shape.empty(), type(b).dtype, type(b).shape.empty());
    emit("Not", {made("Equal", {as(a, common), as(b, common)})}, results(n));
  }
  void write_rsqrt(NodeId n) { emit("Reciprocal", {made("Sqrt", operands(n))}, results(n)); }
  void write_rest(NodeId n) {
    const DType dtype = type(graph_.result(n)).dtype;
    const bool sign_of_x = graph_.op_of(n).name == "fmod";
    const std::vector<std::string> inputs{as(graph_.operand(n, 0), dtype),
                                          as(graph_.operand(n, 1), dtype)};
    if (is_float(dtype) && !sign_of_x) return write_custom(n);
    emit("Mod", inputs, results(n), {integer_attribute("fmod", sign_of_x)});
  }
  void write_bits(NodeId n) {
    const DType dtype = type(graph_.result(n)).dtype;
    std::string op(graph_.op_of(n).name.substr(std::string_view("bitwise_").size()));
    op[0] = static_cast<char>(op[0] - 'a' + 'A');
    std::vector<std::string> inputs;
    for (const ValueId v : graph_.operands(n)) inputs.push_back(as(v, dtype));
    emit(dtype == DType::b8 ? op : "Bitwise" + op, inputs, results(n));
  }
  void write_select(NodeId n) {
    const DType dtype = type(graph_.result(n)).dtype;
    emit("Where",
         {name(graph_.operand(n, 0)), as(graph_.operand(n, 1), dtype),
          as(graph_.operand(n, 2), dtype)},
         results(n));
  }
  void write_cast(NodeId n) {
    const DType to = type(graph_.result(n)).dtype;
    emit("Cast", operands(n), results(n), {integer_attribute("to", onnx::element_type_of(to))});
  }

  // ---- tensors from nothing, and shapes

  [[nodiscard]] double fill(NodeId n) const {
    const Attribute* a = attribute(n, "value");
    const auto* value = a ? std::get_if<double>(a) : nullptr;
    return value == nullptr ? static_cast<double>(integer(n, "value")) : *value;
  }
  void write_constant(NodeId n) {
    emit("Identity", {number(fill(n), type(graph_.result(n)).dtype)}, results(n));
  }
  void write_full(NodeId n) {
    const Type& of = type(graph_.result(n));
    emit("Expand", {number(fill(n), of.dtype), dims(of.shape)}, results(n));
  }
  void write_iota(NodeId n) {
    const Type& of = type(graph_.result(n));
    const std::string row = made("Range", {scalar(0), dim(of.shape.back()), scalar(1)});
    emit("Expand", {cast(row, of.dtype), dims(of.shape)}, results(n));
  }
  void write_reshape(NodeId n) {
    Shape shape = type(graph_.result(n)).shape;
    const auto open = [&](DimId d) { return !context_.dims.value(d); };
    const bool zero = std::any_of(shape.begin(), shape.end(),
                                  [&](DimId d) { return context_.dims.value(d) == 0; });
    if (std::count_if(shape.begin(), shape.end(), open) == 1 && !zero)
      *std::find_if(shape.begin(), shape.end(), open) = context_.dims.constant(-1);
    emit("Reshape", {name(graph_.operand(n, 0)), dims(shape)}, results(n),
         {integer_attribute("allowzero", zero)});
  }
  void write_expand(NodeId n) {
    emit("Expand", {name(graph_.operand(n, 0)), dims(type(graph_.result(n)).shape)}, results(n));
  }
  void write_transpose(NodeId n) {
    std::vector<std::int64_t> order(type(graph_.operand(n, 0)).shape.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
    std::swap(order[static_cast<std::size_t>(integer(n, "dim0"))],
              order[static_cast<std::size_t>(integer(n, "dim1"))]);
    emit("Transpose", operands(n), results(n), {integers_attribute("perm", order)});
  }
  void write_slice(NodeId n) {
    emit("Slice",
         {name(graph_.operand(n, 0)), dims({bound(n, "start")}), dims({bound(n, "end")}),
          numbers({integer(n, "dim")}), numbers({integer(n, "step")})},
         results(n));
  }
  void write_split(NodeId n) {
    emit("Split", {name(graph_.operand(n, 0)), dims(shape_of(n, "sizes"))}, results(n),
         {integer_attribute("axis", integer(n, "dim"))});
  }
  void write_cat(NodeId n) {
    emit("Concat", operands(n), results(n), {integer_attribute("axis", integer(n, "dim"))});
  }

  // ---- along an axis

  void write_reduction(NodeId n) {
    static const std::map<std::string_view, std::string_view> kNames = {{"sum", "ReduceSum"},
                                                                        {"mean", "ReduceMean"},
                                                                        {"amax", "ReduceMax"},
                                                                        {"amin", "ReduceMin"},
                                                                        {"prod", "ReduceProd"}};
    emit(kNames.at(graph_.op_of(n).name),
         {name(graph_.operand(n, 0)), numbers({integer(n, "dim")})}, results(n),
         {integer_attribute("keepdims", integer(n, "keepdim"))});
  }
  void write_place(NodeId n) {
    emit(graph_.op_of(n).name == "argmax" ? "ArgMax" : "ArgMin", operands(n), results(n),
         {integer_attribute("axis", integer(n, "dim")),
          integer_attribute("keepdims", integer(n, "keepdim"))});
  }
  void write_scan(NodeId n) {
    emit("CumSum", {name(graph_.operand(n, 0)), scalar(integer(n, "dim"))}, results(n));
  }
  void write_sort(NodeId n) {
    const std::int64_t axis = integer(n, "dim");
    const DimId size = type(graph_.operand(n, 0)).shape[static_cast<std::size_t>(axis)];
    emit("TopK", {name(graph_.operand(n, 0)), dims({size})}, results(n),
         {integer_attribute("axis", axis), integer_attribute("largest", integer(n, "descending"))});
  }
  void write_rows(NodeId n) {
    emit("Gather", operands(n), results(n), {integer_attribute("axis", 0)});
  }
  void write_index(NodeId n) {
    if (graph_.operand_count(n) != 2) return write_custom(n);
    emit("Gather", operands(n), results(n), {integer_attribute("axis", integer(n, "dim"))});
  }
  void write_addmm(NodeId n) {
    const std::vector<std::string> in = operands(n);
    emit("Gemm", {in[1], in[2], in[0]}, results(n));
  }
  void write_gelu(NodeId n) {
    emit("Gelu", operands(n), results(n),
         {text_attribute("approximate", graph_.op_of(n).name == "gelu" ? "none" : "tanh")});
  }

  // ---- ops that ONNX lacks

  WireWriter any_attribute(std::string_view of, const Attribute& value) {
    if (const auto* truth = std::get_if<bool>(&value)) return integer_attribute(of, *truth);
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return integer_attribute(of, *whole);
    if (const auto* real = std::get_if<double>(&value))
      return attribute_start(of, OnnxKind::real).real(2, static_cast<float>(*real));
    if (const auto* dtype = std::get_if<DType>(&value)) return text_attribute(of, pw::name(*dtype));
    if (const auto* text = std::get_if<std::string>(&value)) return text_attribute(of, *text);
    if (const auto* list = std::get_if<Shape>(&value)) {
      std::vector<std::int64_t> values;
      for (const DimId d : *list)
        if (const auto number = context_.dims.value(d)) values.push_back(*number);
      if (values.size() == list->size()) return integers_attribute(of, values);
    }
    if (const auto* list = std::get_if<std::vector<double>>(&value)) {
      WireWriter out = attribute_start(of, OnnxKind::reals);
      for (const double real : *list) out.real(7, static_cast<float>(real));
      return out;
    }
    if (const auto* list = std::get_if<std::vector<std::string>>(&value)) {
      WireWriter out = attribute_start(of, OnnxKind::texts);
      for (const std::string& text : *list) out.text(9, text);
      return out;
    }
    return text_attribute(of, context_.attributes.print(value));  // symbolic dims
  }

  void write_custom(NodeId n) {
    std::vector<WireWriter> attributes;
    for (const auto& [key, value] : context_.attributes[graph_.attributes(n)])
      if (!std::holds_alternative<None>(value))
        attributes.push_back(any_attribute(context_.strings.text(key), value));
    custom_.insert(graph_.op_of(n).name);
    emit(graph_.op_of(n).name, operands(n), results(n), attributes, kDomain);
  }

  const Graph& graph_;
  Context& context_;
  WireWriter body_;
  std::map<std::string, std::pair<std::string, std::int64_t>>
      symbols_;  ///< an input and an axis of each
  std::set<std::string> custom_, returned_;
  std::string why_;
  std::size_t next_ = 0;
};

/// Returns true if the writer has a form for the op, so that its body is not needed.
bool stays(const Op& op) {
  static const std::set<std::string_view> kForms = {"erf",   "sigmoid", "relu",     "detach",
                                                    "clone", "gelu",    "gelu_tanh"};
  return !op.has_body() || kForms.contains(op.name);
}

}  // namespace

Result<WrittenGraph> export_onnx(const Graph& given) {
  Graph graph = given;
  for (bool changed = true; changed;) {
    changed = false;
    for (const NodeId n : graph.order()) {
      if (!graph.alive(n) || stays(graph.op_of(n))) continue;
      PW_TRY(inline_node(graph, n));
      changed = true;
    }
  }
  graph.erase_dead();
  return OnnxWriter(graph).write();
}

}  // namespace pw
