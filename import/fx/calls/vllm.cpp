#include <algorithm>

#include <fmt/format.h>

#include "base/try.hpp"
#include "import/fx/apply.hpp"

namespace pw::fx {
namespace {

bool is_one(const TypeExpr& type) {
  return !type.any_shape && type.dims.size() == 1 && type.dims[0].kind == pw::Expr::Kind::integer &&
         type.dims[0].integer == 1;
}

}  // namespace

// Norms of vLLM's own IR: without a weight it is one of ones; a residual sum stays in f32 for the
// norm, as the IR defines it.
Applied Converter::ir_norm(const Bound& bound, const std::vector<Wanted>& wanted,
                           const Site& site) {
  std::optional<ValueId> x = tensor_of(bound.find("x")), weight = tensor_of(bound.find("weight"));
  const Type* type = x ? type_of(*x) : nullptr;
  std::optional<Attribute> eps = as_attribute(*bound.find("epsilon"), AttributeKind::float_);
  if (!type || type->shape.empty() || !eps) return kNotThis;
  if (!weight) {
    if (bound.find("weight")->kind != Value::Kind::none) return kNotThis;
    Result<Results> ones = emit("full", {},
                                {{key("shape"), Shape{type->shape.back()}},
                                 {key("value"), 1.0},
                                 {key("dtype"), type->dtype}},
                                kUnnamed, site);
    if (!ones) return forward(ones);
    weight = ones->front();
  }
  std::vector<ValueId> operands = {*x};
  AttributeList attributes = {{key("eps"), std::move(*eps)}};
  if (bound.find("x_residual")) {
    std::optional<ValueId> residual = tensor_of(bound.find("x_residual"));
    if (!residual) return kNotThis;
    operands.push_back(*residual);
    attributes.emplace_back(key("wide"), true);
  }
  operands.push_back(*weight);
  return some(emit(bound.mapping->op, operands, std::move(attributes), wanted, site));
}

// Positions are one a row, also where the dump has another symbol for their number; heads may have
// an axis of their own.
Applied Converter::rotary(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site) {
  std::optional<ValueId> positions = tensor_of(bound.find("positions")),
                         q = tensor_of(bound.find("query")), k = tensor_of(bound.find("key"));
  if (!positions || !q || !k || !type_of(*positions) || !type_of(*q) || !type_of(*k))
    return kNotThis;
  const Shape rows = type_of(*positions)->shape, of_q = type_of(*q)->shape,
              of_k = type_of(*k)->shape;
  if (rows.size() == 1 && !of_q.empty()) make_equal(rows[0], of_q[0], bound.mapping->target);
  Op op = context_.ops[context_.ops.find(bound.mapping->op)];
  std::optional<AttributeList> attributes = attributes_of(bound, op);
  std::optional<std::vector<ValueId>> operands = operands_of(bound, op, site);
  if (!attributes || !operands) return kNotThis;
  if (of_q.size() != rows.size() + 2 || of_k.size() != of_q.size())
    return some(emit(op.name, *operands, std::move(*attributes), wanted, site));

  const auto flat = [&](ValueId x) {
    Shape shape = type_of(x)->shape;
    shape[rows.size()] = context_.dims.mul(shape[rows.size()], shape.back());
    shape.pop_back();
    return reshape_to(x, std::move(shape), kUnnamed, site);
  };
  for (std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    Applied rows_of_heads = flat((*operands)[i]);
    if (!rows_of_heads) return rows_of_heads;
    (*operands)[i] = (*rows_of_heads)->front();
  }
  Results turned =
      PW_TRY(emit(op.name, *operands, std::move(*attributes), std::vector<Wanted>(2), site));
  Results out;
  for (std::size_t i = 0; i < 2; ++i) {
    std::vector<Wanted> one = {i < wanted.size() ? wanted[i] : Wanted()};
    Applied back = reshape_to(turned[i], type_of(i == 0 ? *q : *k)->shape, one, site);
    if (!back) return back;
    out.push_back((*back)->front());
  }
  return std::optional(std::move(out));
}

// Reads what only the output buffer determines: its dtype, if not the query's, and its width.
Applied Converter::attention(const Bound& bound, const std::vector<Wanted>& wanted,
                             const Site& site) {
  Op op = context_.ops[context_.ops.find(bound.mapping->op)];
  std::optional<ValueId> buffer = tensor_of(bound.find("output"));
  const Type* out = buffer ? type_of(*buffer) : nullptr;
  std::optional<AttributeList> attributes = attributes_of(bound, op);
  std::optional<std::vector<ValueId>> operands = operands_of(bound, op, site);
  if (!out || out->shape.empty() || !attributes || !operands) return kNotThis;
  const Type* query = type_of(operands->front());
  if (query && query->dtype != out->dtype) attributes->emplace_back(key("out"), out->dtype);
  if (op.attribute("width")) {
    std::optional<std::int64_t> width = context_.dims.value(out->shape.back());
    if (!width) return kNotThis;
    attributes->emplace_back(key("width"), *width);
  }
  return some(emit(op.name, *operands, std::move(*attributes), wanted, site));
}

// A product of quantised matrices: one scale for all, one a row or column, or one a block. Targets
// that name their weight `weight` take it row by row, as it is stored.
Applied Converter::scaled_product(const Bound& bound, const std::vector<Wanted>& wanted,
                                  const Site& site) {
  const bool stored = bound.find("weight") != nullptr;
  std::optional<ValueId> a = tensor_of(bound.find(stored ? "q_input" : "a")),
                         b = tensor_of(bound.find(stored ? "weight" : "b")),
                         sa = tensor_of(bound.find(stored ? "input_scale" : "a_scales")),
                         sb = tensor_of(bound.find(stored ? "weight_scale" : "b_scales")),
                         buffer = tensor_of(bound.find(stored ? "output" : "out"));
  for (const auto& v : {a, b, sa, sb, buffer})
    if (!v || !type_of(*v)) return kNotThis;
  const auto turned = [&](ValueId x) -> Result<ValueId> {
    Result<Results> y =
        emit("transpose", {x}, {{key("dim0"), std::int64_t{0}}, {key("dim1"), std::int64_t{1}}},
             kUnnamed, site);
    if (!y) return forward(y);
    return y->front();
  };
  AttributeList attributes = {{key("out"), type_of(*buffer)->dtype}};
  const Shape of_a = type_of(*a)->shape, of_sa = type_of(*sa)->shape;
  const bool blocks = of_a.size() == 2 && of_sa.size() == 2 && context_.dims.value(of_sa[1]) != 1 &&
                      type_of(*sb)->shape.size() == 2;
  if (!blocks && stored) return kNotThis;
  if (blocks) {
    std::optional<std::int64_t> columns = context_.dims.value(of_a[1]),
                                parts = context_.dims.value(of_sa[1]);
    if (!columns || !parts || *parts == 0 || *columns % *parts != 0) return kNotThis;
    attributes.emplace_back(key("group"), *columns / *parts);
    for (std::optional<ValueId>* x : {&b, &sb}) {
      if (!stored) break;
      ValueId y = PW_TRY(turned(**x));
      *x = y;
    }
    return some(emit("block_scaled_mm", {*a, *b, *sa, *sb}, std::move(attributes), wanted, site));
  }
  for (std::optional<ValueId>* scale : {&sa, &sb}) {
    if (!type_of(**scale)->shape.empty()) continue;
    Applied list = reshape_to(**scale, Shape{context_.dims.constant(1)}, kUnnamed, site);
    if (!list) return list;
    *scale = (*list)->front();
  }
  return some(emit("scaled_mm", {*a, *b, *sa, *sb}, std::move(attributes), wanted, site));
}

// Returns what is subtracted from the count of a variance, or nothing if it is not an integer.
std::optional<std::int64_t> Converter::correction_of(const Value& correction) const {
  if (correction.kind == Value::Kind::none) return 1;
  if (correction.kind == Value::Kind::real && correction.real == 0) return 0;
  return as_int(correction);
}

// Variance and mean along one axis, from deviations: var = sum((x - mean)^2) / (count -
// correction).
Applied Converter::var_mean(const Bound& bound, const std::vector<Wanted>& wanted,
                            const Site& site) {
  std::optional<ValueId> x = tensor_of(bound.find("self"));
  const Type* type = x ? type_of(*x) : nullptr;
  if (!type || !is_float(type->dtype)) return kNotThis;
  const auto rank = static_cast<std::int64_t>(type->shape.size());
  std::optional<Shape> axes = as_shape(*bound.find("dim"));
  std::optional<std::int64_t> axis;
  if (axes && axes->size() == 1) axis = context_.dims.value(axes->front());
  const std::optional<std::int64_t> less = correction_of(*bound.find("correction"));
  if (!axis || *axis < -rank || *axis >= rank || !less) return kNotThis;
  const std::int64_t at = *axis < 0 ? *axis + rank : *axis;
  std::optional<std::int64_t> count =
      context_.dims.value(type->shape[static_cast<std::size_t>(at)]);
  if (*less != 0 && (!count || *count <= *less)) return kNotThis;
  const bool keepdim = bound.find("keepdim")->boolean;
  const DType dtype = type->dtype;
  const bool narrow = dtype != DType::f32 && dtype != DType::f64;

  const auto one = [&](std::string_view op, const std::vector<ValueId>& operands,
                       AttributeList attributes,
                       const std::vector<Wanted>& names) -> Result<ValueId> {
    Results y = PW_TRY(emit(op, operands, std::move(attributes), names, site));
    return y.front();
  };
  const auto over_axis = [&](bool keep) -> AttributeList {
    return {{key("dim"), at}, {key("keepdim"), keep}};
  };
  const auto name_of = [&](std::size_t i) {
    return std::vector<Wanted>{i < wanted.size() ? wanted[i] : Wanted()};
  };
  ValueId h = *x;
  if (narrow) {
    Result<ValueId> wide = one("cast", {h}, {{key("dtype"), DType::f32}}, kUnnamed);
    if (!wide) return forward(wide);
    h = *wide;
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
    std::optional<ValueId> by = as_operand(integer(*count - *less), site);
    if (!by) return kNotThis;
    variance = one("div", {*variance, *by}, {}, narrow ? kUnnamed : name_of(0));
  }
  if (!variance) return forward(variance);
  if (!keepdim) mean = one("mean", {h}, over_axis(false), narrow ? kUnnamed : name_of(1));
  if (!mean) return forward(mean);
  if (narrow) {
    variance = one("cast", {*variance}, {{key("dtype"), dtype}}, name_of(0));
    if (!variance) return forward(variance);
    mean = one("cast", {*mean}, {{key("dtype"), dtype}}, name_of(1));
    if (!mean) return forward(mean);
  }
  return std::optional(Results{*variance, *mean});
}

// Handles a tensor of rank 0 where the op requires a list of one.
std::optional<ValueId> Converter::as_declared(ValueId value, const OperandDecl& decl,
                                              const Site& site) {
  const Type* type = type_of(value);
  if (!type || !type->shape.empty() || !decl.type || !is_one(*decl.type)) return value;
  Result<Results> list =
      emit("reshape", {value}, {{key("shape"), Shape{context_.dims.constant(1)}}}, kUnnamed, site);
  if (!list) return std::nullopt;
  return list->front();
}

// Handles an input without a type where the op requires a string: the layer's name, which is that
// of the input.
std::optional<Attribute> Converter::as_text(const Value& value) {
  if (value.kind != Value::Kind::tensor) return as_attribute(value, AttributeKind::str);
  if (!graph_.is_input(value.tensor) || type_of(value.tensor)) return std::nullopt;
  once();
  layer_names_.insert(value.tensor);
  return Attribute(std::string(graph_.value_name(value.tensor)));
}

// Unifies two symbols that an op requires to be equal. The dump's graph is valid only where they
// are; a note among the substitutions reports it.
void Converter::make_equal(DimId from, DimId to, std::string_view target) {
  Dims& dims = context_.dims;
  if (from == to || !dims.is_symbol(from) || !dims.is_symbol(to)) return;
  const std::string old = dims.print(from), name = dims.print(to);
  once();
  repeats_ = {};  // they have the old symbol
  known_types_.clear();
  equal_[old] = to;
  symbols_.rename(old, to);
  for (auto& [symbol, now] : equal_) now = dims.substitute(now, equal_);
  note(fmt::format("{} is {}: `{}` requires equal sizes", old, name, target));
  const auto changed = [&](TypeId id) {
    if (id == Types::unknown()) return id;
    Type type = context_.types[id];
    for (DimId& dim : type.shape) dim = dims.substitute(dim, equal_);
    return context_.types.get(type.dtype, type.shape);
  };
  for (ValueId v : graph_.inputs()) graph_.set_type(v, changed(graph_.type(v)));
  for (NodeId n : graph_.order()) {
    for (std::size_t i = 0; i < graph_.result_count(n); ++i)
      graph_.set_type(graph_.result(n, i), changed(graph_.type(graph_.result(n, i))));
    AttributeList attributes = context_.attributes[graph_.attributes(n)];
    for (auto& [key, value] : attributes) {
      if (auto* dim = std::get_if<DimId>(&value)) *dim = dims.substitute(*dim, equal_);
      if (auto* shape = std::get_if<std::vector<DimId>>(&value))
        for (DimId& dim : *shape) dim = dims.substitute(dim, equal_);
    }
    graph_.set_attributes(n, context_.attributes.intern(std::move(attributes)));
  }
  for (auto& [key, value] : env_)
    if (value.kind == Value::Kind::integer) value.dim = dims.substitute(value.dim, equal_);
  auto& symbols = graph_.facts.symbols;
  if (auto it = symbols.find(old); it != symbols.end()) {
    if (!it->second.role.empty()) symbols[name].role = it->second.role;
    symbols.erase(it);
  }
}

// The graph without the inputs that were only the names of layers.
Graph Converter::without_layer_names() const {
  Graph out(context_ptr_, graph_.name);
  out.facts = graph_.facts;
  std::vector<ValueId> map(graph_.value_bound());
  for (ValueId v : graph_.inputs())
    if (!layer_names_.contains(v) || !graph_.unused(v))
      map[v.index] = out.add_input(graph_.value_name(v), graph_.type(v), graph_.input_kind(v));
  for (NodeId n : graph_.order()) {
    NodeSpec spec;
    spec.op = graph_.op(n);
    spec.attributes = graph_.attributes(n);
    spec.group = graph_.group(n);
    spec.source = graph_.source(n);
    for (ValueId v : graph_.operands(n)) spec.operands.push_back(v.valid() ? map[v.index] : v);
    for (std::size_t i = 0; i < graph_.result_count(n); ++i) {
      const ValueId v = graph_.result(n, i);
      spec.results.push_back({graph_.type(v), std::string(graph_.value_name(v))});
    }
    const NodeId copy = out.add_node(spec);
    for (std::size_t i = 0; i < graph_.result_count(n); ++i)
      map[graph_.result(n, i).index] = out.result(copy, i);
  }
  const std::size_t returned = graph_.outputs().size() - graph_.written_inputs().size();
  for (std::size_t i = 0; i < returned; ++i) out.add_output(map[graph_.outputs()[i].index]);
  for (std::size_t i = 0; i < graph_.written_inputs().size(); ++i)
    out.add_write(map[graph_.written_inputs()[i].index], map[graph_.outputs()[returned + i].index]);
  return out;
}

}  // namespace pw::fx
