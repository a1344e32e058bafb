#include "import/onnx/call.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/printable.hpp"
#include "import/onnx/tensors.hpp"

namespace pw::onnx {
namespace {

constexpr std::int64_t kExactInDouble = std::int64_t{1} << 53;

fx::Value value_of_kind(fx::Value::Kind kind) {
  fx::Value out;
  out.kind = kind;
  return out;
}

/// Returns the number that all elements equal; nothing if they differ, or a double does not hold
/// it.
std::optional<double> fill_of(const StoredContents& contents) {
  const auto size = static_cast<std::size_t>(size_of(contents.dtype));
  const std::string_view bytes = contents.bytes;
  if (bytes.empty() || bytes.substr(size) != bytes.substr(0, bytes.size() - size))
    return std::nullopt;
  const std::optional<double> out = real_at(contents, 0);
  if (!out ||
      (contents.dtype == DType::i64 && std::fabs(*out) > static_cast<double>(kExactInDouble)))
    return std::nullopt;
  return out;
}

/// Returns the value of an argument that is a number.
std::optional<double> number_of(const fx::Value& value, const Dims& dims) {
  if (value.kind == fx::Value::Kind::real) return value.real;
  if (value.kind != fx::Value::Kind::integer) return std::nullopt;
  const std::optional<std::int64_t> whole = dims.value(value.dim);
  if (!whole) throw GiveUp{"a symbolic number is combined with a tensor"};
  return static_cast<double>(*whole);
}

fx::Arguments fill_arguments(fx::Value shape, double value, DType dtype) {
  return {{std::move(shape), real(value)}, {{"dtype", type_name(dtype)}}};
}

/// Checks for dims that overflowed, and for negative extents except the one that a reshape infers.
void check_dims(const Dims& dims, std::string_view op, std::string_view name,
                const Attribute& value) {
  const auto check = [&](DimId d) {
    if (!d.valid()) throw GiveUp{"a dim is too large"};
    const std::int64_t least = name != "shape" && name != "size" && name != "sizes" ? INT64_MIN
                               : op == "reshape"                                    ? -1
                                                                                    : 0;
    if (dims.value(d).value_or(0) < least) throw GiveUp{"an extent is negative"};
  };
  if (const auto* dim = std::get_if<DimId>(&value)) check(*dim);
  if (const auto* shape = std::get_if<Shape>(&value))
    for (const DimId d : *shape) check(d);
}

template <class T>
T or_give_up(OrReason<T> result) {
  if (!result) throw GiveUp{result.error()};
  return std::move(*result);
}

}  // namespace

fx::Value tensor_list(std::vector<fx::Value> items) {
  fx::Value out = value_of_kind(fx::Value::Kind::list);
  out.items = std::move(items);
  return out;
}

fx::Value real(double value) {
  fx::Value out = value_of_kind(fx::Value::Kind::real);
  out.real = value;
  return out;
}

fx::Value truth(bool value) {
  fx::Value out = value_of_kind(fx::Value::Kind::boolean);
  out.boolean = value;
  return out;
}

fx::Value word(std::string value) {
  fx::Value out = value_of_kind(fx::Value::Kind::string);
  out.text = std::move(value);
  return out;
}

fx::Value type_name(DType dtype) {
  fx::Value out = value_of_kind(fx::Value::Kind::dtype);
  out.dtype = dtype;
  return out;
}

fx::Value none() { return {}; }

void check_made(std::int64_t count) {
  if (count < 0 || count > kMostMade)
    throw GiveUp{fmt::format("the importer would have to create {} elements", count)};
}

std::size_t axis_in(std::int64_t axis, std::size_t rank) {
  const auto r = static_cast<std::int64_t>(rank);
  if (axis < -r || axis >= r)
    throw GiveUp{fmt::format("axis {} is out of range for a tensor of rank {}", axis, rank)};
  return static_cast<std::size_t>(axis < 0 ? axis + r : axis);
}

std::optional<KnownNumbers> known_of(const StoredContents& contents, Dims& dims) {
  const auto numbers = whole_numbers(contents, kMostKnown);
  if (!numbers) return std::nullopt;
  KnownNumbers out{contents.dtype, contents.extents, {}};
  for (const std::int64_t number : *numbers) out.numbers.push_back(dims.constant(number));
  return out;
}

// ---- constants

fx::Value Constants::tensor(std::shared_ptr<const StoredContents> contents,
                            const std::string& name) {
  Context& context = to_.context();
  Shape shape;
  fx::Value sizes = value_of_kind(fx::Value::Kind::list);
  for (const std::int64_t extent : contents->extents) {
    shape.push_back(context.dims.constant(extent));
    sizes.items.push_back(value_of_kind(fx::Value::Kind::integer));
    sizes.items.back().dim = shape.back();
  }
  if (const auto fill = fill_of(*contents))
    return or_give_up(
        to_.try_call("aten.full", fill_arguments(std::move(sizes), *fill, contents->dtype), name));
  fx::Value out = to_.add_weight(name, context.types.get(contents->dtype, shape));
  contents_.emplace(to_.name_of(out), std::move(contents));
  return out;
}

void Constants::count_made(const StoredContents& contents) {
  made_ += contents.bytes.size();
  if (made_too_much()) throw GiveUp{"its constants are too large"};
}

// A dim is the sum of as many ones.
fx::Value Constants::of_dims(const KnownNumbers& known, const std::string& name) {
  constexpr std::size_t kMostSymbolic = 256;
  if (known.numbers.size() > kMostSymbolic)
    throw GiveUp{fmt::format("one tensor has {} symbolic numbers", known.numbers.size())};
  std::vector<fx::Value> items;
  for (const DimId dim : known.numbers) {
    fx::Value size = value_of_kind(fx::Value::Kind::list);
    size.items.push_back(value_of_kind(fx::Value::Kind::integer));
    size.items.back().dim = dim;
    fx::Value ones =
        or_give_up(to_.try_call("aten.ones", {{size}, {{"dtype", type_name(known.dtype)}}}, name));
    fx::Value axes = value_of_kind(fx::Value::Kind::list);
    axes.items.push_back(value_of_kind(fx::Value::Kind::integer));
    axes.items.back().dim = to_.context().dims.constant(0);
    items.push_back(or_give_up(to_.try_call(
        "aten.sum.dim_IntList",
        {{ones, axes, truth(!known.extents.empty())}, {{"dtype", type_name(known.dtype)}}}, name)));
  }
  if (known.extents.empty()) return items.front();
  if (known.extents.size() != 1)
    throw GiveUp{"a tensor of symbolic numbers has more than one axis"};
  return or_give_up(to_.try_call("aten.cat", {{tensor_list(std::move(items))}, {}}, name));
}

const fx::Value& Constants::tensor(ModelValue& value) {
  if (value.tensor) return *value.tensor;
  if (value.known && !value.contents) {
    std::vector<std::int64_t> numbers;
    for (const DimId dim : value.known->numbers)
      if (const auto number = to_.context().dims.value(dim)) numbers.push_back(*number);
    if (numbers.size() == value.known->numbers.size())
      value.contents = stored(value.known->dtype, value.known->extents, numbers);
    else
      value.tensor = of_dims(*value.known, value.name);
  }
  if (value.contents) value.tensor = tensor(value.contents, value.name);
  if (!value.tensor) throw GiveUp{"`" + value.name + "` is not a tensor of a supported dtype"};
  return *value.tensor;
}

// ---- inputs

ModelValue& OnnxArguments::value(std::size_t i) {
  if (!has(i)) throw GiveUp{fmt::format("input {} is missing", i)};
  read_inputs_.insert(i);
  return *inputs_[i];
}

fx::Value OnnxArguments::tensor(std::size_t i) { return constants_.tensor(value(i)); }

Type OnnxArguments::type(const fx::Value& x) const {
  const Type* found = x.kind == fx::Value::Kind::tensor ? to_.type(x) : nullptr;
  if (found == nullptr) throw GiveUp{"the type of an input is unknown"};
  return *found;
}

Type OnnxArguments::type(std::size_t i) {
  const ModelValue& given = value(i);
  if (given.contents || (given.known && !given.tensor)) {
    const auto& extents = given.contents ? given.contents->extents : given.known->extents;
    Type out{given.contents ? given.contents->dtype : given.known->dtype, {}};
    for (const std::int64_t extent : extents) out.shape.push_back(dims().constant(extent));
    return out;
  }
  return type(tensor(i));
}

const KnownNumbers* OnnxArguments::known(std::size_t i) {
  ModelValue& given = value(i);
  if (!given.known && given.contents) given.known = known_of(*given.contents, dims());
  return given.known ? &*given.known : nullptr;
}

Shape OnnxArguments::dims(std::size_t i) {
  const KnownNumbers* numbers = known(i);
  if (numbers == nullptr)
    throw GiveUp{fmt::format("the value of input {} is unknown at import", i)};
  if (numbers->extents.size() > 1) throw GiveUp{fmt::format("input {} has several axes", i)};
  return numbers->numbers;
}

std::vector<std::int64_t> OnnxArguments::integers(std::size_t i) { return extents(dims(i)); }

std::int64_t OnnxArguments::integer(std::size_t i) {
  const std::vector<std::int64_t> all = integers(i);
  if (all.size() != 1) throw GiveUp{fmt::format("input {} is not a single number", i)};
  return all.front();
}

std::vector<double> OnnxArguments::reals(std::size_t i) {
  const auto& contents = value(i).contents;
  if (!contents) throw GiveUp{fmt::format("the value of input {} is unknown at import", i)};
  std::vector<double> out;
  for (std::int64_t k = 0; k < std::min(count_of(*contents), kMostKnown); ++k) {
    const std::optional<double> number = real_at(*contents, k);
    if (!number) throw GiveUp{fmt::format("input {} has a dtype that cannot be read at import", i)};
    out.push_back(*number);
  }
  return out;
}

double OnnxArguments::real(std::size_t i) {
  const std::vector<double> all = reals(i);
  if (all.size() != 1) throw GiveUp{fmt::format("input {} is not a single number", i)};
  return all.front();
}

// ---- attributes

const OnnxAttribute* OnnxArguments::find(std::string_view name) {
  const auto found = std::ranges::find_if(node_.attributes,
                                          [&](const OnnxAttribute& a) { return a.name == name; });
  if (found == node_.attributes.end()) return nullptr;
  read_attributes_.insert(found->name);
  return &*found;
}

std::int64_t OnnxArguments::integer(std::string_view name, std::int64_t otherwise) {
  return has(name) ? integer(name) : otherwise;
}

std::int64_t OnnxArguments::integer(std::string_view name) {
  const OnnxAttribute* found = find(name);
  if (found == nullptr) throw GiveUp{fmt::format("attribute `{}` is missing", name)};
  if (!found->integer) throw GiveUp{fmt::format("attribute `{}` is not an integer", name)};
  return *found->integer;
}

double OnnxArguments::real(std::string_view name, double otherwise) {
  const OnnxAttribute* found = find(name);
  if (found == nullptr) return otherwise;
  if (!found->real) throw GiveUp{fmt::format("attribute `{}` is not a float", name)};
  return double{*found->real};
}

std::string OnnxArguments::text(std::string_view name, std::string otherwise) {
  const OnnxAttribute* found = find(name);
  if (found == nullptr) return otherwise;
  if (!found->text) throw GiveUp{fmt::format("attribute `{}` is not a string", name)};
  return printable(*found->text);  // a word of the operator, which a reason may repeat
}

std::vector<std::int64_t> OnnxArguments::integers(std::string_view name,
                                                  std::vector<std::int64_t> otherwise) {
  const OnnxAttribute* found = find(name);
  return found == nullptr ? otherwise : found->integers;
}

void OnnxArguments::check_all_read() const {
  for (const OnnxAttribute& attribute : node_.attributes)
    if (!read_attributes_.contains(attribute.name))
      throw GiveUp{"attribute `" + attribute.name + "` is not supported"};
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (has(i) && !read_inputs_.contains(i))
      throw GiveUp{fmt::format("input {} is not supported", i)};
}

// ---- calls

fx::Value OnnxCall::call(std::string_view target, std::vector<fx::Value> arguments,
                         std::vector<std::pair<std::string, fx::Value>> keywords) {
  const std::string& base = node_.outputs.empty() ? node_.op : node_.outputs.front();
  return or_give_up(to_.try_call(target, {std::move(arguments), std::move(keywords)}, base));
}

std::vector<fx::Value> OnnxCall::ops(std::string_view op, const std::vector<fx::Value>& operands,
                                     const OpAttributes& attributes) {
  const std::string& base = node_.outputs.empty() ? node_.op : node_.outputs.front();
  for (const auto& [name, value] : attributes) check_dims(dims(), op, name, value);
  std::vector<fx::Value> typed = operands;
  const auto tensor = std::ranges::find_if(
      operands, [](const fx::Value& v) { return v.kind == fx::Value::Kind::tensor; });
  for (fx::Value& operand : typed)
    if (const auto value = number_of(operand, dims()); value && tensor != operands.end())
      operand = or_give_up(to_.try_op("constant", {},
                                      {{"value", *value}, {"dtype", type(*tensor).dtype}}, base))
                    .front();
  return or_give_up(to_.try_op(op, typed, attributes, base));
}

fx::Value OnnxCall::op(std::string_view op, const std::vector<fx::Value>& operands,
                       const OpAttributes& attributes) {
  return ops(op, operands, attributes).front();
}

fx::Value OnnxCall::constant(std::shared_ptr<const StoredContents> contents) {
  constants_.count_made(*contents);
  const std::string& base = node_.outputs.empty() ? node_.op : node_.outputs.front();
  return constants_.tensor(std::move(contents), base + "_constant");
}

fx::Value OnnxCall::cast(const fx::Value& x, DType dtype) {
  return type(x).dtype == dtype ? x : op("cast", {x}, {{"dtype", dtype}});
}

fx::Value OnnxCall::reshape(const fx::Value& x, const Shape& shape) {
  return type(x).shape == shape ? x : op("reshape", {x}, {{"shape", shape}});
}

fx::Value OnnxCall::places_along(DimId extent, std::size_t axis, std::size_t rank) {
  Shape shape(rank, dims().constant(1));
  shape[axis] = extent;
  return reshape(op("iota", {}, {{"shape", Shape{extent}}}), shape);
}

fx::Value OnnxCall::expand(const fx::Value& x, const Shape& shape) {
  return type(x).shape == shape ? x : op("expand", {x}, {{"shape", shape}});
}

fx::Value OnnxCall::permute(const fx::Value& x, const std::vector<std::size_t>& order) {
  std::vector<std::int64_t> axes(order.begin(), order.end());
  return std::is_sorted(axes.begin(), axes.end()) ? x : call("aten.permute", {x, list(axes)});
}

fx::Value OnnxCall::slice(const fx::Value& x, std::size_t axis, DimId begin, DimId end,
                          std::int64_t step) {
  const auto bound = [&](DimId d) { return extent(d) ? Attribute(*extent(d)) : Attribute(d); };
  return op("slice", {x},
            {{"dim", static_cast<std::int64_t>(axis)},
             {"start", bound(begin)},
             {"end", bound(end)},
             {"step", step}});
}

fx::Value OnnxCall::integer_value(DimId dim) {
  if (!dim.valid()) throw GiveUp{"a dim is too large"};
  fx::Value out = value_of_kind(fx::Value::Kind::integer);
  out.dim = dim;
  return out;
}

fx::Value OnnxCall::list(const Shape& numbers) {
  fx::Value out = value_of_kind(fx::Value::Kind::list);
  for (const DimId number : numbers) out.items.push_back(integer_value(number));
  return out;
}

fx::Value OnnxCall::list(const std::vector<std::int64_t>& numbers) {
  Shape out;
  for (const std::int64_t number : numbers) out.push_back(dims().constant(number));
  return list(out);
}

std::vector<std::int64_t> OnnxArguments::extents(const Shape& shape) const {
  std::vector<std::int64_t> out;
  for (const DimId dim : shape) {
    const std::optional<std::int64_t> number = extent(dim);
    if (!number) throw GiveUp{"`" + dims().print(dim) + "` is not known at import"};
    out.push_back(*number);
  }
  return out;
}

ModelValue OnnxArguments::contents_of_attribute(const OnnxTensor& tensor) const {
  ExternalFiles none;
  auto contents = contents_of(tensor, none, node_.name);
  if (!contents) throw GiveUp{contents.error().front().message};
  if (!*contents) throw GiveUp{element_name(tensor.element) + " is not a supported dtype"};
  return {"", {}, std::move(*contents)};
}

}  // namespace pw::onnx
