#include "import/fx/emit/emitter.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/try.hpp"

namespace pw::fx {

void Emitter::begin_statement() {
  first_value_ = graph_.value_bound();
  effects_.begin_statement();
}

void Emitter::rename(ValueId value, const std::string& name) {
  renamed_ = true;
  if (value.index < first_value_) effects_.once();
  graph_.rename(value, name);
}

const Type* Emitter::type_of(ValueId value) const {
  const TypeId type = value.valid() ? graph_.type(value) : Types::unknown();
  return type == Types::unknown() ? nullptr : &context_.types[type];
}

std::optional<ValueId> Emitter::as_operand(const Value& value, const Site& site) {
  if (value.kind == Value::Kind::tensor) return value.tensor;
  if (value.kind == Value::Kind::none) return ValueId();
  double number = value.real;
  DType dtype = DType::f64;
  if (value.kind == Value::Kind::integer) {
    std::optional<std::int64_t> v = context_.dims.value(value.dim);
    if (!v || !constant_holds(*v)) {  // known only at run time, or more digits than a double has
      Result<Results> extent =
          emit("extent", {}, {{"value", value.dim}}, {{fresh("c"), Types::unknown(), {}}}, site);
      return extent ? std::optional(extent->front()) : std::nullopt;
    }
    number = static_cast<double>(*v);
    dtype = DType::i64;
  } else if (value.kind == Value::Kind::boolean) {
    number = value.boolean ? 1 : 0;
    dtype = DType::b8;
  } else if (value.kind != Value::Kind::real) {
    return std::nullopt;
  }
  NodeRequest request;
  request.op = context_.ops.find(Primitive::constant);
  request.attributes = {{key("value"), number}, {key("dtype"), dtype}};
  request.result_names = {fresh("c")};
  request.group = group_;
  request.source = site.source;
  request.span = site.span;
  if (!request.op.valid()) return add_constant(graph_, number, dtype);
  Result<NodeId> node = build_node(graph_, request);
  if (!node) return std::nullopt;
  return graph_.result(*node);
}

Status Emitter::check_stated(ValueId value, const Wanted& wanted, std::string_view op) {
  if (wanted.type == Types::unknown()) return {};
  TypeId type = graph_.type(value);
  if (type == Types::unknown()) {
    graph_.set_type(value, wanted.type);
    return {};
  }
  if (type == wanted.type || sizes_.same_types(type, wanted.type)) return {};
  if (assumptions_.assume_stated(value, wanted)) return {};
  if (symbols_.to_old(type) == wanted.type) return {};
  std::string given = context_.types.print(type);
  if (symbols_.to_old(type) != type)
    given += fmt::format(" ({} before symbols)", context_.types.print(symbols_.to_old(type)));
  return fail(wanted.span, "PW0511",
              fmt::format("`{}` is stated as {}, but `{}` gives {}", wanted.name,
                          context_.types.print(wanted.type), op, given));
}

Result<Results> Emitter::try_emit(OpId op, const std::vector<ValueId>& operands,
                                  const AttributeList& attributes, const Outputs& wanted,
                                  const Site& site) {
  NodeRequest request;
  request.op = op;
  request.operands = operands;
  request.attributes = attributes;
  request.group = group_;
  request.source = site.source;
  request.span = site.span;
  const Op& declared = context_.ops[op];
  bool imported = declared.imported;
  std::size_t count = imported ? wanted.size() : std::max(wanted.size(), declared.results.size());
  for (const auto& [name, value] : attributes)
    if (auto parts = std::get_if<std::vector<DimId>>(&value);
        parts && context_.strings.text(name) == "sizes")
      count = std::max(count, parts->size());
  for (std::size_t i = 0; i < count; ++i) {
    bool named = i < wanted.size() && !wanted[i].name.empty();
    request.result_names.push_back(
        named ? wanted[i].name : fresh(site.result.name.empty() ? "v" : site.result.name));
    if (imported) request.stated.push_back(wanted[i].type);
  }
  NodeId node = PW_TRY(build_node(graph_, request));
  Results results;
  for (std::size_t i = 0; i < graph_.result_count(node); ++i)
    results.push_back(graph_.result(node, i));
  for (std::size_t i = 0; i < results.size() && i < wanted.size() && !imported; ++i) {
    Status checked = check_stated(results[i], wanted[i], context_.ops[op].name);
    if (checked) continue;
    graph_.erase(node);
    return forward(checked);
  }
  return results;
}

// Choice k makes a symbol of the k-th literal of a maker that could be one; false when there are
// not so many.
bool Emitter::symbolise_maker(ValueId value, std::size_t choice) {
  if (!value.valid() || !effects_.is_maker(value)) return false;
  NodeId node = graph_.producer(value);
  AttributeList attributes = context_.attributes[graph_.attributes(node)];
  for (auto& [name, attribute] : attributes) {
    auto shape = std::get_if<std::vector<DimId>>(&attribute);
    if (!shape || context_.strings.text(name) != "shape") continue;
    std::string before = context_.types.print(*shape);
    for (DimId& dim : *shape) {
      for (DimId symbol : symbols_.standing_for(dim)) {
        if (choice-- > 0) continue;
        dim = symbol;
        Type type = context_.types[graph_.type(value)];
        type.shape = *shape;
        effects_.note(fmt::format("{}: {} {} became {}, as its user requires",
                                  graph_.value_name(value), graph_.op_of(node).name, before,
                                  context_.types.print(*shape)));
        graph_.set_attributes(node, context_.attributes.intern(attributes));
        graph_.set_type(value, context_.types.get(type.dtype, type.shape));
        return true;
      }
    }
  }
  return false;
}

Result<Results> Emitter::emit(OpId op, const std::vector<ValueId>& operands,
                              const AttributeList& attributes, const Outputs& wanted,
                              const Site& site) {
  return with_symbols(operands, [&] { return try_emit(op, operands, attributes, wanted, site); });
}

Result<Results> Emitter::emit(std::string_view op_name, const std::vector<ValueId>& operands,
                              const NamedAttributes& attributes, const Outputs& wanted,
                              const Site& site) {
  OpId op = context_.ops.find(op_name);
  if (!op.valid())
    return fail(site.span, "PW0510", fmt::format("the op library has no op `{}`", op_name),
                "load the op library first");
  AttributeList list;
  list.reserve(attributes.size());
  for (const auto& [name, value] : attributes) list.emplace_back(key(name), value);
  return emit(op, operands, list, wanted, site);
}

ValueId Maker::operator()(std::string_view op, const std::vector<ValueId>& operands,
                          const NamedAttributes& attributes, const Outputs& names) {
  if (failure_) return ValueId();
  Result<Results> results = emitter_.emit(op, operands, attributes, names, site_);
  if (results) return results->front();
  failure_ = results.error();
  return ValueId();
}

Applied Maker::done(ValueId value) const {
  if (failure_) return tl::unexpected<Diagnostics>(*failure_);
  return std::optional(Results{value});
}

}  // namespace pw::fx
