#include "import/onnx/export.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/try.hpp"
#include "graph/build.hpp"
#include "import/onnx/model_writer.hpp"
#include "import/onnx/tensors.hpp"

namespace pw {
namespace {

using onnx::integer_attribute;
using onnx::integers_attribute;
using onnx::ModelWriter;
using onnx::text_attribute;

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

std::int64_t integer(const Graph& graph, NodeId n, std::string_view of) {
  const Attribute* a = graph.attribute(n, of);
  if (a == nullptr) return 0;
  if (const auto* truth = std::get_if<bool>(a)) return *truth;
  const auto* value = std::get_if<std::int64_t>(a);
  return value == nullptr ? 0 : *value;
}
DimId bound(const Graph& graph, NodeId n, std::string_view of) {
  const Attribute* a = graph.attribute(n, of);
  if (const auto* d = a ? std::get_if<DimId>(a) : nullptr) return *d;
  return graph.context().dims.constant(integer(graph, n, of));
}
Shape shape_of(const Graph& graph, NodeId n, std::string_view of) {
  const Attribute* a = graph.attribute(n, of);
  const auto* list = a ? std::get_if<Shape>(a) : nullptr;
  return list == nullptr ? Shape() : *list;
}

// Operands of several dtypes are brought to the one in which the op computes.
void write_same(ModelWriter& model, NodeId n, std::string_view onnx_op) {
  const std::vector<ValueId> given = model.graph().operands(n);
  std::vector<std::string> inputs;
  if (given.size() == 2 && onnx_op != "MatMul") {
    const DType common = promote(model.type(given[0]).dtype, model.type(given[0]).shape.empty(),
                                 model.type(given[1]).dtype, model.type(given[1]).shape.empty());
    for (const ValueId v : given) inputs.push_back(model.as(v, common));
  } else {
    inputs = model.operands(n);
  }
  model.emit(onnx_op, inputs, model.results(n));
}
void write_unequal(ModelWriter& model, NodeId n) {
  const ValueId a = model.graph().operand(n, 0), b = model.graph().operand(n, 1);
  const DType common = promote(model.type(a).dtype, model.type(a).shape.empty(),
                               model.type(b).dtype, model.type(b).shape.empty());
  model.emit("Not", {model.made("Equal", {model.as(a, common), model.as(b, common)})},
             model.results(n));
}
void write_rsqrt(ModelWriter& model, NodeId n) {
  model.emit("Reciprocal", {model.made("Sqrt", model.operands(n))}, model.results(n));
}
void write_rest(ModelWriter& model, NodeId n) {
  const DType dtype = model.type(model.graph().result(n)).dtype;
  const bool sign_of_x = model.graph().op_of(n).name == "fmod";
  const std::vector<std::string> inputs{model.as(model.graph().operand(n, 0), dtype),
                                        model.as(model.graph().operand(n, 1), dtype)};
  if (is_float(dtype) && !sign_of_x) return model.custom(n);
  model.emit("Mod", inputs, model.results(n), {integer_attribute("fmod", sign_of_x)});
}
void write_bits(ModelWriter& model, NodeId n) {
  const DType dtype = model.type(model.graph().result(n)).dtype;
  std::string op(model.graph().op_of(n).name.substr(std::string_view("bitwise_").size()));
  op[0] = static_cast<char>(op[0] - 'a' + 'A');
  std::vector<std::string> inputs;
  for (const ValueId v : model.graph().operands(n)) inputs.push_back(model.as(v, dtype));
  model.emit(dtype == DType::b8 ? op : "Bitwise" + op, inputs, model.results(n));
}
void write_select(ModelWriter& model, NodeId n) {
  const DType dtype = model.type(model.graph().result(n)).dtype;
  model.emit("Where",
             {model.name(model.graph().operand(n, 0)), model.as(model.graph().operand(n, 1), dtype),
              model.as(model.graph().operand(n, 2), dtype)},
             model.results(n));
}
void write_cast(ModelWriter& model, NodeId n) {
  const DType to = model.type(model.graph().result(n)).dtype;
  model.emit("Cast", model.operands(n), model.results(n),
             {integer_attribute("to", onnx::element_type_of(to))});
}

double fill(const Graph& graph, NodeId n) {
  const Attribute* a = graph.attribute(n, "value");
  const auto* value = a ? std::get_if<double>(a) : nullptr;
  return value == nullptr ? static_cast<double>(integer(graph, n, "value")) : *value;
}
void write_constant(ModelWriter& model, NodeId n) {
  model.emit("Identity",
             {model.number(fill(model.graph(), n), model.type(model.graph().result(n)).dtype)},
             model.results(n));
}
void write_full(ModelWriter& model, NodeId n) {
  const Type& of = model.type(model.graph().result(n));
  model.emit("Expand", {model.number(fill(model.graph(), n), of.dtype), model.dims(of.shape)},
             model.results(n));
}
void write_iota(ModelWriter& model, NodeId n) {
  const Type& of = model.type(model.graph().result(n));
  const std::string row =
      model.made("Range", {model.scalar(0), model.dim(of.shape.back()), model.scalar(1)});
  model.emit("Expand", {model.cast(row, of.dtype), model.dims(of.shape)}, model.results(n));
}
void write_reshape(ModelWriter& model, NodeId n) {
  Shape shape = model.type(model.graph().result(n)).shape;
  const auto open = [&](DimId d) { return !model.graph().context().dims.value(d); };
  const bool zero = std::ranges::any_of(
      shape, [&](DimId d) { return model.graph().context().dims.value(d) == 0; });
  if (std::ranges::count_if(shape, open) == 1 && !zero)
    *std::ranges::find_if(shape, open) = model.graph().context().dims.constant(-1);
  model.emit("Reshape", {model.name(model.graph().operand(n, 0)), model.dims(shape)},
             model.results(n), {integer_attribute("allowzero", zero)});
}
void write_expand(ModelWriter& model, NodeId n) {
  model.emit("Expand",
             {model.name(model.graph().operand(n, 0)),
              model.dims(model.type(model.graph().result(n)).shape)},
             model.results(n));
}
void write_transpose(ModelWriter& model, NodeId n) {
  std::vector<std::int64_t> order(model.type(model.graph().operand(n, 0)).shape.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  std::swap(order[static_cast<std::size_t>(integer(model.graph(), n, "dim0"))],
            order[static_cast<std::size_t>(integer(model.graph(), n, "dim1"))]);
  model.emit("Transpose", model.operands(n), model.results(n), {integers_attribute("perm", order)});
}
void write_slice(ModelWriter& model, NodeId n) {
  model.emit(
      "Slice",
      {model.name(model.graph().operand(n, 0)), model.dims({bound(model.graph(), n, "start")}),
       model.dims({bound(model.graph(), n, "end")}),
       model.numbers({integer(model.graph(), n, "dim")}),
       model.numbers({integer(model.graph(), n, "step")})},
      model.results(n));
}
void write_split(ModelWriter& model, NodeId n) {
  model.emit(
      "Split",
      {model.name(model.graph().operand(n, 0)), model.dims(shape_of(model.graph(), n, "sizes"))},
      model.results(n), {integer_attribute("axis", integer(model.graph(), n, "dim"))});
}
void write_cat(ModelWriter& model, NodeId n) {
  model.emit("Concat", model.operands(n), model.results(n),
             {integer_attribute("axis", integer(model.graph(), n, "dim"))});
}

void write_reduction(ModelWriter& model, NodeId n) {
  static const std::map<std::string_view, std::string_view> kNames = {{"sum", "ReduceSum"},
                                                                      {"mean", "ReduceMean"},
                                                                      {"amax", "ReduceMax"},
                                                                      {"amin", "ReduceMin"},
                                                                      {"prod", "ReduceProd"}};
  model.emit(
      kNames.at(model.graph().op_of(n).name),
      {model.name(model.graph().operand(n, 0)), model.numbers({integer(model.graph(), n, "dim")})},
      model.results(n), {integer_attribute("keepdims", integer(model.graph(), n, "keepdim"))});
}
void write_place(ModelWriter& model, NodeId n) {
  model.emit(model.graph().op_of(n).name == "argmax" ? "ArgMax" : "ArgMin", model.operands(n),
             model.results(n),
             {integer_attribute("axis", integer(model.graph(), n, "dim")),
              integer_attribute("keepdims", integer(model.graph(), n, "keepdim"))});
}
void write_scan(ModelWriter& model, NodeId n) {
  model.emit(
      "CumSum",
      {model.name(model.graph().operand(n, 0)), model.scalar(integer(model.graph(), n, "dim"))},
      model.results(n));
}
void write_sort(ModelWriter& model, NodeId n) {
  const std::int64_t axis = integer(model.graph(), n, "dim");
  const DimId size = model.type(model.graph().operand(n, 0)).shape[static_cast<std::size_t>(axis)];
  model.emit("TopK", {model.name(model.graph().operand(n, 0)), model.dims({size})},
             model.results(n),
             {integer_attribute("axis", axis),
              integer_attribute("largest", integer(model.graph(), n, "descending"))});
}
void write_rows(ModelWriter& model, NodeId n) {
  model.emit("Gather", model.operands(n), model.results(n), {integer_attribute("axis", 0)});
}
void write_index(ModelWriter& model, NodeId n) {
  if (model.graph().operand_count(n) != 2) return model.custom(n);
  model.emit("Gather", model.operands(n), model.results(n),
             {integer_attribute("axis", integer(model.graph(), n, "dim"))});
}
void write_addmm(ModelWriter& model, NodeId n) {
  const std::vector<std::string> in = model.operands(n);
  model.emit("Gemm", {in[1], in[2], in[0]}, model.results(n));
}
void write_gelu(ModelWriter& model, NodeId n) {
  model.emit(
      "Gelu", model.operands(n), model.results(n),
      {text_attribute("approximate", model.graph().op_of(n).name == "gelu" ? "none" : "tanh")});
}

Status write_node(ModelWriter& model, NodeId n) {
  const Graph& graph = model.graph();
  for (const ValueId v : graph.operands(n))
    if (v.valid() && graph.type(v) == Types::unknown())
      return model.refuse("the type of `" + model.name(v) + "` is not known");
  using Write = void (*)(ModelWriter&, NodeId);
  static const std::map<std::string_view, Write> kWrites = {
      {"constant", &write_constant},   {"full", &write_full},
      {"empty", &write_full},          {"iota", &write_iota},
      {"reshape", &write_reshape},     {"expand", &write_expand},
      {"transpose", &write_transpose}, {"slice", &write_slice},
      {"split", &write_split},         {"cat", &write_cat},
      {"cast", &write_cast},           {"select", &write_select},
      {"ne", &write_unequal},          {"rsqrt", &write_rsqrt},
      {"fmod", &write_rest},           {"remainder", &write_rest},
      {"bitwise_and", &write_bits},    {"bitwise_or", &write_bits},
      {"bitwise_xor", &write_bits},    {"bitwise_not", &write_bits},
      {"sum", &write_reduction},       {"mean", &write_reduction},
      {"amax", &write_reduction},      {"amin", &write_reduction},
      {"prod", &write_reduction},      {"argmax", &write_place},
      {"argmin", &write_place},        {"cumsum", &write_scan},
      {"sort", &write_sort},           {"embedding", &write_rows},
      {"index", &write_index},         {"addmm", &write_addmm},
      {"gelu", &write_gelu},           {"gelu_tanh", &write_gelu},
  };
  const std::string& op = graph.op_of(n).name;
  if (const auto same =
          std::ranges::find_if(kSame, [&](const SameOp& row) { return row.op == op; });
      same != kSame.end())
    write_same(model, n, same->onnx);
  else if (const auto found = kWrites.find(op); found != kWrites.end())
    found->second(model, n);
  else
    model.custom(n);
  return model.status();
}

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
  ModelWriter model(graph);
  for (ValueId v : graph.inputs()) PW_TRY(model.input(v));
  for (NodeId n : graph.order()) PW_TRY(write_node(model, n));
  for (ValueId v : graph.outputs()) PW_TRY(model.output(v));
  return model.write();
}

}  // namespace pw
