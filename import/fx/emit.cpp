#include <algorithm>

#include <fmt/format.h>

#include "base/try.hpp"
#include "graph/build.hpp"
#include "graph/infer/symbol_fact.hpp"
#include "import/fx/convert.hpp"

namespace pw::fx {
namespace {

constexpr std::size_t kMostGuesses = 9;  // about how bounds of slices compare with a symbol

}  // namespace

Value Converter::tensor(ValueId v) {
  Value out;
  out.kind = Value::Kind::tensor;
  out.tensor = v;
  out.handle = memory_.add_storage(v, dense_strides_of(v));
  return out;
}

std::optional<Shape> Converter::dense_strides_of(ValueId v) {
  const Type* type = options_.no_writes ? nullptr : type_of(v);
  return type ? dense_strides(context_.dims, type->shape) : std::nullopt;
}

Value Converter::integer(std::int64_t v) {
  Value out;
  out.kind = Value::Kind::integer;
  out.dim = context_.dims.constant(v);
  return out;
}

const Type* Converter::type_of(ValueId value) const {
  const TypeId type = value.valid() ? graph_.type(value) : Types::unknown();
  return type == Types::unknown() ? nullptr : &context_.types[type];
}

std::string Converter::fresh(std::string base) {
  if (made_up_.contains(base)) base.resize(base.rfind("__"));
  int& next = counters_[base];
  while (true) {
    std::string name = fmt::format("{}__{}", base, next++);
    if (!names_.insert(name)) continue;
    made_up_.insert(name);
    return name;
  }
}

std::optional<std::int64_t> Converter::as_int(const Value& value) const {
  if (value.kind != Value::Kind::integer) return std::nullopt;
  return context_.dims.value(value.dim);
}

std::optional<Shape> Converter::as_shape(const Value& value) const {
  if (value.kind == Value::Kind::integer) return Shape{value.dim};
  if (value.kind != Value::Kind::list) return std::nullopt;
  Shape out;
  for (const Value& item : value.items) {
    if (item.kind != Value::Kind::integer) return std::nullopt;
    out.push_back(item.dim);
  }
  return out;
}

// Numbers become rank-0 constants; None is an absent operand.
std::optional<ValueId> Converter::as_operand(const Value& value, const Site& site) {
  if (value.kind == Value::Kind::tensor) return value.tensor;
  if (value.kind == Value::Kind::none) return ValueId();
  double number = value.real;
  DType dtype = DType::f64;
  if (value.kind == Value::Kind::integer) {
    std::optional<std::int64_t> v = context_.dims.value(value.dim);
    if (!v || !constant_holds(*v)) {  // known only at run time, or more digits than a double has
      Result<Results> extent = emit("extent", {}, {{key("value"), value.dim}},
                                    {{fresh("c"), Types::unknown(), {}}}, site);
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

std::optional<Attribute> Converter::as_any_attribute(const Value& value) const {
  switch (value.kind) {
    case Value::Kind::boolean: return value.boolean;
    case Value::Kind::integer:
      if (std::optional<std::int64_t> v = context_.dims.value(value.dim)) return *v;
      return value.dim;
    case Value::Kind::real: return value.real;
    case Value::Kind::string: return value.text;
    case Value::Kind::dtype: return value.dtype;
    case Value::Kind::list: {
      if (!value.keys.empty()) return std::nullopt;  // a dict
      if (std::optional<Shape> shape = as_shape(value)) return *shape;
      std::vector<double> reals;
      std::vector<std::string> texts;
      for (const Value& item : value.items) {
        if (item.kind == Value::Kind::real) reals.push_back(item.real);
        if (item.kind == Value::Kind::string) texts.push_back(item.text);
      }
      if (reals.size() == value.items.size()) return reals;
      if (texts.size() == value.items.size()) return texts;
      return std::nullopt;
    }
    case Value::Kind::none:
    case Value::Kind::tensor:
    case Value::Kind::other: return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Attribute> Converter::as_attribute(const Value& value, AttributeKind kind) {
  if (value.kind == Value::Kind::none) return None{};
  if (kind == AttributeKind::dims || kind == AttributeKind::ints) {
    std::optional<Shape> shape = as_shape(value);
    return shape ? std::optional<Attribute>(*shape) : std::nullopt;
  }
  if (kind == AttributeKind::float_ && value.kind == Value::Kind::boolean)
    return value.boolean ? 1.0 : 0.0;
  return as_any_attribute(value);
}

Status Converter::check_stated(ValueId value, const Wanted& wanted, std::string_view op) {
  if (wanted.type == Types::unknown()) return {};
  TypeId type = graph_.type(value);
  if (type == Types::unknown()) {
    graph_.set_type(value, wanted.type);
    return {};
  }
  if (type == wanted.type || same_sizes(type, wanted.type)) return {};
  if (!thresholds_.empty() && assume_stated(value, wanted)) return {};
  if (symbols_.to_old(type) == wanted.type) return {};
  std::string given = context_.types.print(type);
  if (symbols_.to_old(type) != type)
    given += fmt::format(" ({} before symbols)", context_.types.print(symbols_.to_old(type)));
  return fail(wanted.span, "PW0511",
              fmt::format("`{}` is stated as {}, but `{}` gives {}", wanted.name,
                          context_.types.print(wanted.type), op, given));
}

namespace {

// Returns the facts under which the extent is at most or at least this large; nothing if no range
// of one symbol expresses that, or no value remains.
std::optional<Facts> narrowed(Dims& dims, Facts facts, Compare op, DimId size, std::int64_t bound) {
  const std::vector<std::string> symbols = dims.symbols(size);
  if (symbols.size() != 1) return std::nullopt;
  const auto fact = facts.symbols.find(symbols.front());
  const std::optional<DimLine> line = dims.rising(size, symbols.front(), facts);
  if (fact == facts.symbols.end() || !line) return std::nullopt;
  const std::optional<std::int64_t> factor = dims.value(line->factor),
                                    rest = dims.value(line->rest);
  if (!factor || !rest || *factor < 1) return std::nullopt;
  const std::int64_t left = bound - *rest;
  if (op == Compare::le) {
    if (left < 0) return std::nullopt;
    fact->second.max = std::min(fact->second.max, left / *factor);
  } else {
    const std::int64_t least = left <= 0 ? 0 : (left + *factor - 1) / *factor;
    fact->second.min = std::max(fact->second.min, least);
  }
  return least_value(fact->second) <= greatest_value(fact->second) ? std::optional(facts)
                                                                   : std::nullopt;
}

}  // namespace

bool Converter::assume(Compare op, DimId size, std::int64_t bound, std::string_view why) {
  Dims& dims = context_.dims;
  if (dims.prove(op, size, dims.constant(bound), graph_.facts) == Truth::yes) return true;
  std::optional<Facts> facts = narrowed(dims, graph_.facts, op, size, bound);
  if (!facts) return false;
  once();
  graph_.facts = std::move(*facts);
  report_.notes.push_back(fmt::format("assumed: {} {} {}, because {}; other sizes are refused",
                                      dims.print(size), op == Compare::le ? "<=" : ">=", bound,
                                      why));
  return true;
}

// Returns the extents under the facts, if these make the extents equal the stated ones and change
// them.
std::optional<Shape> Converter::settled(const Type& have, const Type& stated, const Facts& facts) {
  Shape out;
  for (std::size_t i = 0; i < have.shape.size(); ++i) {
    out.push_back(context_.dims.decided(have.shape[i], facts));
    if (out[i] != stated.shape[i] && symbols_.to_old(out[i]) != stated.shape[i])
      return std::nullopt;
  }
  return out == have.shape ? std::nullopt : std::optional(std::move(out));
}

// A stated type is trusted: if it depends on how the bounds of a slice compare with a symbol, it
// determines that order.
bool Converter::assume_stated(ValueId value, const Wanted& wanted) {
  const Type have = *type_of(value), stated = context_.types[wanted.type];
  if (have.dtype != stated.dtype || have.shape.size() != stated.shape.size()) return false;
  struct Guess {
    Compare op;
    DimId size;
    std::int64_t bound;
  };
  std::vector<std::vector<Guess>> guesses{{}};
  for (auto t = thresholds_.rbegin(); t != thresholds_.rend() && guesses.size() < kMostGuesses; ++t)
    for (const Compare op : {Compare::le, Compare::ge})
      guesses.push_back({{op, t->first, t->second}});
  for (std::size_t i = 1, single = guesses.size(); i < single; ++i)
    for (std::size_t k = i + 1; k < single; ++k)
      guesses.push_back({guesses[i].front(), guesses[k].front()});
  const std::string why =
      fmt::format("`{}` is stated as {}", wanted.name, context_.types.print(wanted.type));
  for (const std::vector<Guess>& all : guesses) {
    std::optional<Facts> facts = graph_.facts;
    for (const Guess& guess : all)
      if (facts) facts = narrowed(context_.dims, *facts, guess.op, guess.size, guess.bound);
    const std::optional<Shape> shape = facts ? settled(have, stated, *facts) : std::nullopt;
    if (!shape) continue;
    for (const Guess& guess : all) assume(guess.op, guess.size, guess.bound, why);
    graph_.set_type(value, context_.types.get(have.dtype, *shape));
    return true;
  }
  return false;
}

Result<Results> Converter::try_emit(OpId op, const std::vector<ValueId>& operands,
                                    const AttributeList& attributes,
                                    const std::vector<Wanted>& wanted, const Site& site) {
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
bool Converter::symbolise_maker(ValueId value, std::size_t choice) {
  if (!value.valid() || !makers_.contains(value)) return false;
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
        note(fmt::format("{}: {} {} became {}, as its user requires", graph_.value_name(value),
                         graph_.op_of(node).name, before, context_.types.print(*shape)));
        graph_.set_attributes(node, context_.attributes.intern(attributes));
        graph_.set_type(value, context_.types.get(type.dtype, type.shape));
        return true;
      }
    }
  }
  return false;
}

Result<Results> Converter::emit(std::string_view op_name, const std::vector<ValueId>& operands,
                                AttributeList attributes, const std::vector<Wanted>& wanted,
                                const Site& site) {
  OpId op = context_.ops.find(op_name);
  if (!op.valid())
    return fail(site.span, "PW0510", fmt::format("the op library has no op `{}`", op_name),
                "load the op library first");
  Result<Results> first = try_emit(op, operands, attributes, wanted, site);
  if (first || symbols_.empty()) return first;
  for (ValueId operand : operands) {
    if (!operand.valid() || !makers_.contains(operand)) continue;
    NodeId maker = graph_.producer(operand);
    AttributesId kept = graph_.attributes(maker);
    TypeId type = graph_.type(operand);
    for (std::size_t choice = 0; symbolise_maker(operand, choice); ++choice) {
      if (Result<Results> again = try_emit(op, operands, attributes, wanted, site)) return again;
      graph_.set_attributes(maker, kept);
      graph_.set_type(operand, type);
      report_.substitutions.pop_back();
    }
  }
  return first;
}

}  // namespace pw::fx
