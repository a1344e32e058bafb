#include <algorithm>

#include <fmt/format.h>

#include "base/try.hpp"
#include "import/fx/calls/apply.hpp"

namespace pw::fx {
namespace {

// Returns what is subtracted from the count of a variance, or nothing if it is not an integer.
std::optional<std::int64_t> correction_of(const Dims& dims, const Value& correction) {
  if (correction.kind == Value::Kind::none) return 1;
  if (correction.kind == Value::Kind::real && correction.real == 0) return 0;
  return as_int(dims, correction);
}

// Unifies two symbols that an op requires to be equal. The dump's graph is valid only where they
// are; a note among the substitutions reports it.
void make_equal(Emitter& emitter, DimId from, DimId to, std::string_view target) {
  Context& context = emitter.context();
  Dims& dims = context.dims;
  if (from == to || !dims.is_symbol(from) || !dims.is_symbol(to)) return;
  const std::string old = dims.print(from), name = dims.print(to);
  Symbols& symbols = emitter.symbols();
  symbols.merge(old, to);
  emitter.effects().note(fmt::format("{} is {}: `{}` requires equal sizes", old, name, target));
  const auto changed = [&](TypeId id) {
    if (id == Types::unknown()) return id;
    Type type = context.types[id];
    for (DimId& dim : type.shape) dim = symbols.merged(dim);
    return context.types.get(type.dtype, type.shape);
  };
  Graph& graph = emitter.graph();
  for (ValueId v : graph.inputs()) graph.set_type(v, changed(graph.type(v)));
  for (NodeId n : graph.order()) {
    for (std::size_t i = 0; i < graph.result_count(n); ++i)
      graph.set_type(graph.result(n, i), changed(graph.type(graph.result(n, i))));
    AttributeList attributes = context.attributes[graph.attributes(n)];
    for (auto& [key, value] : attributes) {
      if (auto* dim = std::get_if<DimId>(&value)) *dim = symbols.merged(*dim);
      if (auto* shape = std::get_if<std::vector<DimId>>(&value))
        for (DimId& dim : *shape) dim = symbols.merged(dim);
    }
    graph.set_attributes(n, context.attributes.intern(std::move(attributes)));
  }
  auto& facts = graph.facts.symbols;
  if (auto it = facts.find(old); it != facts.end()) {
    if (!it->second.role.empty()) facts[name].role = it->second.role;
    facts.erase(it);
  }
}

}  // namespace

// Norms of vLLM's own IR: without a weight it is one of ones; a residual sum stays in f32 for the
// norm, as the IR defines it.
Applied convert_ir_norm(const KnownCall& call) {
  std::optional<ValueId> x = tensor_of(call.find("x")), weight = tensor_of(call.find("weight"));
  const Type* type = x ? call.type_of(*x) : nullptr;
  std::optional<Attribute> eps =
      as_attribute(call.dims(), *call.find("epsilon"), AttributeKind::float_);
  if (!type || type->shape.empty() || !eps) return kNotThis;
  if (!weight) {
    if (call.find("weight")->kind != Value::Kind::none) return kNotThis;
    Applied ones = call.unnamed().emit(
        "full", {}, {{"shape", Shape{type->shape.back()}}, {"value", 1.0}, {"dtype", type->dtype}});
    if (!ones) return ones;
    weight = (*ones)->front();
  }
  std::vector<ValueId> operands = {*x};
  NamedAttributes attributes = {{"eps", std::move(*eps)}};
  if (call.find("x_residual")) {
    std::optional<ValueId> residual = tensor_of(call.find("x_residual"));
    if (!residual) return kNotThis;
    operands.push_back(*residual);
    attributes.emplace_back("wide", true);
  }
  operands.push_back(*weight);
  return call.emit(call.bound.mapping->op, operands, attributes);
}

// Positions are one a row, also where the dump has another symbol for their number; heads may have
// an axis of their own.
Applied convert_rotary(const KnownCall& call) {
  std::optional<ValueId> positions = tensor_of(call.find("positions")),
                         q = tensor_of(call.find("query")), k = tensor_of(call.find("key"));
  if (!positions || !q || !k || !call.type_of(*positions) || !call.type_of(*q) || !call.type_of(*k))
    return kNotThis;
  const Shape rows = call.type_of(*positions)->shape, of_q = call.type_of(*q)->shape,
              of_k = call.type_of(*k)->shape;
  if (rows.size() == 1 && !of_q.empty())
    make_equal(call.emitter, rows[0], of_q[0], call.bound.mapping->target);
  const Op& op = call.op();
  std::optional<NamedAttributes> attributes = attributes_of(call, op);
  std::optional<std::vector<ValueId>> operands = operands_of(call, op);
  if (!attributes || !operands) return kNotThis;
  if (of_q.size() != rows.size() + 2 || of_k.size() != of_q.size())
    return call.emit(op.name, *operands, *attributes);

  const auto flat = [&](ValueId x) {
    Shape shape = call.type_of(x)->shape;
    shape[rows.size()] = call.dims().mul(shape[rows.size()], shape.back());
    shape.pop_back();
    return reshape_to(call.unnamed(), x, std::move(shape));
  };
  for (std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    Applied rows_of_heads = flat((*operands)[i]);
    if (!rows_of_heads) return rows_of_heads;
    (*operands)[i] = (*rows_of_heads)->front();
  }
  Results turned =
      PW_TRY(call.emitter.emit(op.name, *operands, *attributes, Outputs(2), call.site));
  Results out;
  for (std::size_t i = 0; i < 2; ++i) {
    Outputs one = {call.name_of(i)};
    Applied back = reshape_to(call.naming(one), turned[i], call.type_of(i == 0 ? *q : *k)->shape);
    if (!back) return back;
    out.push_back((*back)->front());
  }
  return std::optional(std::move(out));
}

// Reads what only the output buffer determines: its dtype, if not the query's, and its width.
Applied convert_attention(const KnownCall& call) {
  const Op& op = call.op();
  const auto [buffer, out] = call.tensor("output");
  std::optional<NamedAttributes> attributes = attributes_of(call, op);
  std::optional<std::vector<ValueId>> operands = operands_of(call, op);
  if (!out || out->shape.empty() || !attributes || !operands) return kNotThis;
  const Type* query = call.type_of(operands->front());
  if (query && query->dtype != out->dtype) attributes->emplace_back("out", out->dtype);
  if (op.attribute("width")) {
    std::optional<std::int64_t> width = call.dims().value(out->shape.back());
    if (!width) return kNotThis;
    attributes->emplace_back("width", *width);
  }
  return call.emit(op.name, *operands, *attributes);
}

// A product of quantised matrices: one scale for all, one a row or column, or one a block. Targets
// that name their weight `weight` take it row by row, as it is stored.
Applied convert_scaled_product(const KnownCall& call) {
  const bool stored = call.find("weight") != nullptr;
  std::optional<ValueId> a = tensor_of(call.find(stored ? "q_input" : "a")),
                         b = tensor_of(call.find(stored ? "weight" : "b")),
                         sa = tensor_of(call.find(stored ? "input_scale" : "a_scales")),
                         sb = tensor_of(call.find(stored ? "weight_scale" : "b_scales")),
                         buffer = tensor_of(call.find(stored ? "output" : "out"));
  for (const auto& v : {a, b, sa, sb, buffer})
    if (!v || !call.type_of(*v)) return kNotThis;
  const auto turned = [&](ValueId x) -> Result<ValueId> {
    Result<Results> y =
        call.emitter.emit("transpose", {x}, {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}},
                          kUnnamed, call.site);
    if (!y) return forward(y);
    return y->front();
  };
  NamedAttributes attributes = {{"out", call.type_of(*buffer)->dtype}};
  const Shape of_a = call.type_of(*a)->shape, of_sa = call.type_of(*sa)->shape;
  const bool blocks = of_a.size() == 2 && of_sa.size() == 2 && call.dims().value(of_sa[1]) != 1 &&
                      call.type_of(*sb)->shape.size() == 2;
  if (!blocks && stored) return kNotThis;
  if (blocks) {
    std::optional<std::int64_t> columns = call.dims().value(of_a[1]),
                                parts = call.dims().value(of_sa[1]);
    if (!columns || !parts || *parts == 0 || *columns % *parts != 0) return kNotThis;
    attributes.emplace_back("group", *columns / *parts);
    for (std::optional<ValueId>* x : {&b, &sb}) {
      if (!stored) break;
      ValueId y = PW_TRY(turned(**x));
      *x = y;
    }
    return call.emit("block_scaled_mm", {*a, *b, *sa, *sb}, attributes);
  }
  for (std::optional<ValueId>* scale : {&sa, &sb}) {
    if (!call.type_of(**scale)->shape.empty()) continue;
    Applied list = reshape_to(call.unnamed(), **scale, Shape{call.dims().constant(1)});
    if (!list) return list;
    *scale = (*list)->front();
  }
  return call.emit("scaled_mm", {*a, *b, *sa, *sb}, attributes);
}

// Variance and mean along one axis, from deviations: var = sum((x - mean)^2) / (count -
// correction).
Applied convert_var_mean_of_axis(const KnownCall& call) {
  const auto [x, type] = call.tensor("self");
  if (!type || !is_float(type->dtype)) return kNotThis;
  const auto rank = static_cast<std::int64_t>(type->shape.size());
  std::optional<Shape> axes = as_shape(*call.find("dim"));
  std::optional<std::int64_t> axis;
  if (axes && axes->size() == 1) axis = call.dims().value(axes->front());
  const std::optional<std::int64_t> less = correction_of(call.dims(), *call.find("correction"));
  if (!axis || *axis < -rank || *axis >= rank || !less) return kNotThis;
  const std::int64_t at = *axis < 0 ? *axis + rank : *axis;
  std::optional<std::int64_t> count = call.dims().value(type->shape[static_cast<std::size_t>(at)]);
  if (*less != 0 && (!count || *count <= *less)) return kNotThis;
  const bool keepdim = call.find("keepdim")->boolean;
  const DType dtype = type->dtype;
  const bool narrow = dtype != DType::f32 && dtype != DType::f64;

  const auto one = [&](std::string_view op, const std::vector<ValueId>& operands,
                       const NamedAttributes& attributes, const Outputs& names) -> Result<ValueId> {
    return PW_TRY(call.emitter.emit(op, operands, attributes, names, call.site)).front();
  };
  const auto over_axis = [&](bool keep) -> NamedAttributes {
    return {{"dim", at}, {"keepdim", keep}};
  };
  const auto name_of = [&](std::size_t i) { return Outputs{call.name_of(i)}; };
  ValueId h = *x;
  if (narrow) {
    h = PW_TRY(one("cast", {h}, {{"dtype", DType::f32}}, kUnnamed));
  }
  Result<ValueId> mean =
      one("mean", {h}, over_axis(true), keepdim && !narrow ? name_of(1) : kUnnamed);
  if (!mean) return forward(mean);
  ValueId off = PW_TRY(one("sub", {h, *mean}, {}, kUnnamed));
  ValueId square = PW_TRY(one("mul", {off, off}, {}, kUnnamed));
  const bool divided = *less != 0;
  Result<ValueId> variance = one(divided ? "sum" : "mean", {square}, over_axis(keepdim),
                                 divided || narrow ? kUnnamed : name_of(0));
  if (variance && divided) {
    std::optional<ValueId> by =
        call.emitter.as_operand(integer(call.dims(), *count - *less), call.site);
    if (!by) return kNotThis;
    variance = one("div", {*variance, *by}, {}, narrow ? kUnnamed : name_of(0));
  }
  if (!variance) return forward(variance);
  if (!keepdim) mean = one("mean", {h}, over_axis(false), narrow ? kUnnamed : name_of(1));
  if (!mean) return forward(mean);
  if (narrow) {
    variance = one("cast", {*variance}, {{"dtype", dtype}}, name_of(0));
    if (!variance) return forward(variance);
    mean = one("cast", {*mean}, {{"dtype", dtype}}, name_of(1));
    if (!mean) return forward(mean);
  }
  return std::optional(Results{*variance, *mean});
}

}  // namespace pw::fx
