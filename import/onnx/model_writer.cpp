#include "import/onnx/model_writer.hpp"

#include <fmt/format.h>

#include "base/try.hpp"
#include "import/onnx/tensors.hpp"

namespace pw::onnx {
namespace {

constexpr std::int64_t kOpsetVersion = 21, kIrVersion = 10;
constexpr std::size_t kMostBytes = std::size_t{1} << 31;
constexpr std::string_view kDomain = "piecewise";

// Values of AttributeProto.AttributeType.
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
}  // namespace

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

WireWriter any_attribute(const Context& context, std::string_view of, const Attribute& value) {
  if (const auto* truth = std::get_if<bool>(&value)) return integer_attribute(of, *truth);
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return integer_attribute(of, *whole);
  if (const auto* real = std::get_if<double>(&value))
    return attribute_start(of, OnnxKind::real).real(2, static_cast<float>(*real));
  if (const auto* dtype = std::get_if<DType>(&value)) return text_attribute(of, pw::name(*dtype));
  if (const auto* text = std::get_if<std::string>(&value)) return text_attribute(of, *text);
  if (const auto* list = std::get_if<Shape>(&value)) {
    std::vector<std::int64_t> values;
    for (const DimId d : *list)
      if (const auto number = context.dims.value(d)) values.push_back(*number);
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
  return text_attribute(of, context.attributes.print(value));  // symbolic dims
}

std::string ModelWriter::fresh(std::string_view base) {
  return fmt::format("{}__onnx_{}", base, next_++);
}

tl::unexpected<Diagnostics> ModelWriter::refuse(const std::string& why) const {
  return fail(error_in("graph " + graph_.name, "PW0526", why));
}

std::vector<std::string> ModelWriter::results(NodeId n) const {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < graph_.result_count(n); ++i) out.push_back(name(graph_.result(n, i)));
  return out;
}

std::vector<std::string> ModelWriter::operands(NodeId n) const {
  std::vector<std::string> out;
  for (const ValueId v : graph_.operands(n)) out.push_back(v.valid() ? name(v) : "");
  return out;
}

Result<WireWriter> ModelWriter::value_info(ValueId v, const std::string& called) const {
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
  tensor.integer(1, element_type_of(type(v).dtype)).message(2, shape);
  of.message(1, tensor);
  return out.text(1, called).message(2, of);
}

Status ModelWriter::input(ValueId v) {
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
Status ModelWriter::output(ValueId v) {
  std::string called = name(v);
  if (graph_.is_input(v) || !returned_.insert(called).second) {
    called = fresh(called);
    emit("Identity", {name(v)}, {called});
  }
  auto info = PW_TRY(value_info(v, called));
  body_.message(12, info);
  return {};
}

void ModelWriter::initialiser(const std::string& called, const StoredContents& contents) {
  WireWriter tensor;
  for (const std::int64_t extent : contents.extents) tensor.integer(1, extent);
  tensor.integer(2, element_type_of(contents.dtype)).text(8, called).text(9, contents.bytes);
  body_.message(5, tensor);
}

std::string ModelWriter::constant(const std::shared_ptr<const StoredContents>& contents) {
  const std::string out = fresh("c");
  initialiser(out, *contents);
  return out;
}

std::string ModelWriter::numbers(const std::vector<std::int64_t>& values) {
  return constant(stored(DType::i64, {static_cast<std::int64_t>(values.size())}, values));
}

std::string ModelWriter::scalar(std::int64_t value) {
  return constant(stored(DType::i64, {}, std::vector<std::int64_t>{value}));
}

std::string ModelWriter::number(double value, DType dtype) {
  if (dtype == DType::f32 || dtype == DType::f64 || !is_float(dtype))
    return constant(
        is_float(dtype)
            ? stored(dtype, {}, std::vector<double>{value})
            : stored(dtype, {}, std::vector<std::int64_t>{static_cast<std::int64_t>(value)}));
  return cast(constant(stored(DType::f32, {}, std::vector<double>{value})), dtype);
}

void ModelWriter::emit(std::string_view op, const std::vector<std::string>& inputs,
                       const std::vector<std::string>& outputs,
                       const std::vector<WireWriter>& attributes, std::string_view domain) {
  WireWriter out;
  for (const std::string& in : inputs) out.text(1, in);
  for (const std::string& of : outputs) out.text(2, of);
  out.text(4, op);
  for (const WireWriter& attribute : attributes) out.message(5, attribute);
  if (!domain.empty()) out.text(7, domain);
  body_.message(1, out);
}

std::string ModelWriter::made(std::string_view op, const std::vector<std::string>& inputs,
                              const std::vector<WireWriter>& attributes) {
  const std::string out = fresh("v");
  emit(op, inputs, {out}, attributes);
  return out;
}

std::string ModelWriter::cast(const std::string& x, DType to) {
  return made("Cast", {x}, {integer_attribute("to", element_type_of(to))});
}

std::string ModelWriter::as(ValueId v, DType dtype) {
  return type(v).dtype == dtype ? name(v) : cast(name(v), dtype);
}

std::string ModelWriter::dim(DimId d) {
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

std::string ModelWriter::dims(const Shape& shape) {
  std::vector<std::int64_t> values;
  for (const DimId d : shape)
    if (const auto value = context_.dims.value(d)) values.push_back(*value);
  if (values.size() == shape.size()) return numbers(values);
  std::vector<std::string> parts;
  for (const DimId d : shape) parts.push_back(made("Unsqueeze", {dim(d), numbers({0})}));
  return made("Concat", parts, {integer_attribute("axis", 0)});
}

void ModelWriter::custom(NodeId n) {
  std::vector<WireWriter> attributes;
  for (const auto& [key, value] : context_.attributes[graph_.attributes(n)])
    if (!std::holds_alternative<None>(value))
      attributes.push_back(any_attribute(context_, context_.strings.text(key), value));
  custom_.insert(graph_.op_of(n).name);
  emit(graph_.op_of(n).name, operands(n), results(n), attributes, kDomain);
}

Result<WrittenGraph> ModelWriter::write() {
  if (!why_.empty()) return refuse(why_);
  body_.text(2, graph_.name);
  WireWriter model, opset;
  opset.text(1, "").integer(2, kOpsetVersion);
  model.integer(1, kIrVersion).text(2, "piecewise").message(7, body_).message(8, opset);
  if (!custom_.empty()) {
    WireWriter own;
    model.message(8, own.text(1, kDomain).integer(2, 1));
  }
  if (model.str().size() >= kMostBytes)
    return refuse("the model is larger than 2 GiB, the limit of protobuf");
  return WrittenGraph{model.str(), {custom_.begin(), custom_.end()}};
}

}  // namespace pw::onnx
