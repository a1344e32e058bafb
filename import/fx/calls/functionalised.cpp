#include "import/fx/calls/functionalised.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/try.hpp"
#include "import/fx/calls/apply.hpp"

namespace pw::fx {

Result<Value> FunctionalisedCalls::call(const Arguments& arguments, const Site& site) {
  if (arguments.positional.empty() || arguments.positional[0].kind != Value::Kind::other)
    return fail(site.span, "PW0512", "the first argument of auto_functionalized must be an op");
  const std::string target(strip(arguments.positional[0].text));
  Arguments inner{{arguments.positional.begin() + 1, arguments.positional.end()},
                  arguments.keywords};
  std::string why;
  std::optional<Outcome> known = PW_TRY(known_.make(target, inner, site, true, why));
  if (!known) return call_unknown(target, inner, site, std::move(why));
  Value out;
  out.kind = Value::Kind::list;
  if (known->results.empty()) {
    out.items.emplace_back();
  } else {
    for (ValueId v : known->results) out.items.push_back(versions_.tensor(v));
  }
  for (const auto& [argument, contents] : known->written)
    out.items.push_back(versions_.tensor(contents));
  return out;
}

namespace {

// Returns the number of items before the written ones: an op without results returns None.
std::size_t result_items(const std::optional<Schema>& schema) {
  return schema ? std::max<std::size_t>(schema->results.size(), 1) : 1;
}

// Returns the part of a site that concerns the op's own results.
Site results_site(const Site& site, std::size_t count) {
  Site inner{site.span, site.source, false, {}, {}};
  for (const auto& [index, item] : site.items) {
    if (static_cast<std::size_t>(index) >= count) continue;
    inner.bound = true;
    if (count == 1) inner.result = item;
    if (count > 1) inner.items[index] = item;
  }
  return inner;
}

// Returns the argument of a call that a schema has at a position; null if it is left out.
Value* argument_at(Arguments& arguments, const Schema& schema, std::size_t position) {
  if (position < arguments.positional.size()) return &arguments.positional[position];
  for (auto& [name, value] : arguments.keywords)
    if (name == schema.arguments[position].name) return &value;
  return nullptr;
}

void add_tensors(Value& value, std::vector<Value*>& out) {
  if (value.kind == Value::Kind::tensor) out.push_back(&value);
  for (Value& item : value.items) add_tensors(item, out);
}

}  // namespace

// Replaces the tensors of an argument by copies.
void FunctionalisedCalls::copy_tensors(Value& value) {
  if (value.kind == Value::Kind::tensor) value.handle = memory_.add_storage(value.tensor, {});
  for (Value& item : value.items) copy_tensors(item);
}

// Returns what the copies of an argument contain after the call.
Value FunctionalisedCalls::contents_of(const Value& copy) {
  if (copy.kind == Value::Kind::tensor) return versions_.tensor(memory_.tensors[copy.handle].value);
  Value out = copy;
  for (Value& item : out.items) item = contents_of(item);
  return out;
}

// Keeps a call of an unknown op. Its schema names the arguments that it writes. Without one, they
// are inferred from the number of returned ones, if their types leave no choice; otherwise the call
// is a function that returns them.
Result<Value> FunctionalisedCalls::call_unknown(std::string_view target, const Arguments& arguments,
                                                const Site& site, std::string why) {
  const std::optional<Schema> schema = unknown_.schema(target);
  Unknown unknown{true, {}, std::move(why)};
  Arguments copies = arguments;
  std::vector<Value*> written;
  if (schema) {
    for (std::size_t i = 0; i < schema->arguments.size(); ++i)
      if (schema->arguments[i].written) written.push_back(argument_at(copies, *schema, i));
  } else {
    const std::size_t last =
        site.items.empty() ? 0 : static_cast<std::size_t>(site.items.rbegin()->first);
    if (last == 0 || last != tensors_in(arguments).size())
      return unknown_.keep(target, arguments, site, unknown);
    for (Value& value : copies.positional) add_tensors(value, written);
    for (auto& [name, value] : copies.keywords) add_tensors(value, written);
  }
  unknown.functional = false;
  for (Value* value : written)
    if (value != nullptr) copy_tensors(*value);
  const std::size_t count = result_items(schema);
  const std::size_t first_new = graph_.node_bound();
  const Value returned = PW_TRY(unknown_.keep(target, copies, results_site(site, count), unknown));
  name_call(first_new, site);
  Value out;
  out.kind = Value::Kind::list;
  if (count > 1) out.items = returned.items;
  if (count == 1) out.items.push_back(returned);
  for (const Value* value : written) {
    Value contents = value == nullptr ? Value() : contents_of(*value);
    auto wanted = site.items.find(static_cast<int>(out.items.size()));
    if (contents.kind == Value::Kind::tensor && wanted != site.items.end() &&
        !wanted->second.name.empty())
      emitter_.rename(contents.tensor, wanted->second.name);
    out.items.push_back(std::move(contents));
  }
  return out;
}

// The call that a functionalised one became has its name.
void FunctionalisedCalls::name_call(std::size_t first_new, const Site& site) {
  if (site.result.name.empty()) return;
  for (std::size_t i = graph_.node_bound(); i-- > first_new;)
    if (graph_.op_of(NodeId(i)).imported) return graph_.give_name(NodeId(i), site.result.name);
}

Result<Value> FunctionalisedCalls::call_v2(const Arguments& arguments, const Site& site) {
  if (arguments.positional.empty() || arguments.positional[0].kind != Value::Kind::other)
    return fail(site.span, "PW0512", "the first argument of auto_functionalized_v2 must be an op");
  const std::string target(strip(arguments.positional[0].text));
  const Value* given = keyword(arguments, "_all_bases");
  if (!given || given->kind != Value::Kind::list)
    return fail(site.span, "PW0512", "auto_functionalized_v2 needs `_all_bases = […]`");
  std::vector<Value> bases;  // copies, which are written
  for (const Value& base : given->items) {
    if (base.kind != Value::Kind::tensor)
      return fail(site.span, "PW0512", "`_all_bases` contains an item that is not a tensor");
    Value copy = base;
    copy.handle = memory_.add_storage(base.tensor, versions_.dense_strides_of(base.tensor));
    bases.push_back(std::move(copy));
  }
  Arguments inner;
  Unknown unknown{false, {}, {}};
  constexpr std::string_view kIndex = "_base_index";
  for (const auto& [name, value] : arguments.keywords) {
    if (!name.starts_with("_")) inner.keywords.emplace_back(name, value);
    if (!name.starts_with("_") || !name.ends_with(kIndex)) continue;
    const std::string argument = name.substr(1, name.size() - 1 - kIndex.size());
    Result<Value> view = argument_of_base(arguments, argument, bases, target, site);
    if (!view) return view;
    inner.keywords.emplace_back(argument, std::move(*view));
    unknown.arguments.push_back(argument);
  }
  // A base's name goes to its new contents where an argument is the whole of it.
  std::size_t count = result_items(unknown_.schema(target));
  const Site call_site = results_site(site, count);
  const std::size_t first_new = graph_.node_bound();
  std::optional<Outcome> known = PW_TRY(known_.make(target, inner, call_site, false, unknown.why));
  Value returned;
  if (known) {
    for (const auto& [argument, contents] : known->written)
      if (argument.handle.valid()) PW_TRY(versions_.write(argument.handle, contents, site));
    if (!known->results.empty()) returned = calls_.as_result(*known, inner, first_new, target);
    if (!unknown_.schema(target)) count = std::max<std::size_t>(known->results.size(), 1);
  } else {
    Result<Value> kept = unknown_.keep(target, inner, call_site, unknown);
    if (!kept) return kept;
    returned = *kept;
    name_call(first_new, site);
  }
  Value out;
  out.kind = Value::Kind::list;
  if (count > 1) out.items = std::move(returned.items);
  if (count == 1) out.items.push_back(std::move(returned));
  for (const Value& base : bases) {
    ValueId now = PW_TRY(versions_.read(base.handle, site));
    auto wanted = site.items.find(static_cast<int>(out.items.size()));
    if (wanted != site.items.end() && !wanted->second.name.empty() && now != base.tensor) {
      PW_TRY(emitter_.check_stated(now, wanted->second, target));
      if (graph_.value_name(now) != wanted->second.name) emitter_.rename(now, wanted->second.name);
    }
    out.items.push_back(versions_.tensor(now));
  }
  return out;
}

Result<Value> FunctionalisedCalls::argument_of_base(const Arguments& arguments,
                                                    const std::string& name,
                                                    const std::vector<Value>& bases,
                                                    std::string_view target, const Site& site) {
  const auto part = [&](std::string_view what) {
    return keyword(arguments, fmt::format("_{}_{}", name, what));
  };
  const Value& index = *part("base_index");
  if (index.kind == Value::Kind::none) return Value();
  std::optional<std::int64_t> at = as_int(context_.dims, index);
  if (!at || *at < 0 || static_cast<std::size_t>(*at) >= bases.size())
    return fail(site.span, "PW0512",
                fmt::format("`_{}_base_index` is not an index of `_all_bases`", name));
  const Value& base = bases[static_cast<std::size_t>(*at)];
  Site inner{site.span, site.source, true, {}, {}};
  const Value *dim = part("slice_dim"), *start = part("slice_start"), *end = part("slice_end");
  if (dim && start && end)
    return calls_.call("aten.slice.Tensor", {{base, *dim, *start, *end}, {}}, inner);
  const Value *size = part("size"), *stride = part("stride"), *offset = part("storage_offset");
  if (size && stride && offset) return strided_view(base, *size, *stride, *offset, target, inner);
  return base;
}

namespace {

// Axes of a view that lie densely one in another.
struct DenseRun {
  DimId extent;
  std::int64_t stride;
};

// Joins the axes of a view into runs, or returns nothing if a size or stride is unknown.
std::optional<std::vector<DenseRun>> dense_runs(Dims& dims, const Shape& sizes,
                                                const Shape& strides) {
  std::vector<DenseRun> runs;  // the innermost first
  DimId next;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (dims.value(sizes[i]) == 1) continue;
    if (!runs.empty() && strides[i] == next) {
      runs.back().extent = dims.mul(runs.back().extent, sizes[i]);
    } else {
      std::optional<std::int64_t> step = dims.value(strides[i]);
      if (!step || *step < 1) return std::nullopt;
      runs.push_back({sizes[i], *step});
    }
    next = dims.mul(strides[i], sizes[i]);
    if (!next.valid() || !runs.back().extent.valid()) return std::nullopt;
  }
  return runs;
}

}  // namespace

// A view by sizes and strides, as slices of a dense base and a reshape. Axes of the view that lie
// densely one in another are a run; a run takes a part of one axis of the base, or the whole of
// some and a part of the next.
Result<Value> FunctionalisedCalls::strided_view(const Value& base, const Value& size,
                                                const Value& stride, const Value& offset,
                                                std::string_view target, const Site& site) {
  const auto refuse = [&] {
    return fail(
        site.span, "PW0518",
        fmt::format("an argument of `{}` is a view of its base that slices cannot express", target),
        "its sizes and strides do not divide those of the base");
  };
  const Type* type = emitter_.type_of(base.tensor);
  std::optional<Shape> sizes = as_shape(size), strides = as_shape(stride);
  std::optional<std::int64_t> left = as_int(context_.dims, offset);
  if (!type || !sizes || !strides || sizes->size() != strides->size() || !left) return refuse();
  Dims& dims = context_.dims;
  const Shape shape = type->shape;
  std::optional<Shape> dense = dense_strides(dims, shape);
  if (!dense) return refuse();
  std::optional<std::vector<DenseRun>> found = dense_runs(dims, *sizes, *strides);
  if (!found) return refuse();
  std::vector<DenseRun>& runs = *found;
  Value view = base;
  std::size_t run = 0;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    const std::optional<std::int64_t> unit = dims.value((*dense)[axis]),
                                      count = dims.value(shape[axis]);
    if (!unit || (axis > 0 && !count)) return refuse();
    const std::int64_t at = axis > 0 ? *left / *unit % *count : *left / *unit;
    *left -= at * *unit;
    DimId extent = dims.constant(1);
    std::int64_t step = 1;
    const bool here = run < runs.size() && runs[run].stride % *unit == 0 &&
                      (axis == 0 || runs[run].stride < *unit * *count);
    if (here) {
      step = runs[run].stride / *unit;
      const std::optional<std::int64_t> wanted = dims.value(runs[run].extent);
      if (axis == 0 || (wanted && at + (*wanted - 1) * step < *count)) {
        extent = runs[run++].extent;
      } else {  // all of this axis, and more
        if (at != 0 || *count % step != 0) return refuse();
        extent = dims.constant(*count / step);
        const DimId rest = dims.div(runs[run].extent, extent);
        if (!rest.valid() || dims.mul(rest, extent) != runs[run].extent) return refuse();
        runs[run] = {rest, *unit * *count};
      }
    }
    if (at == 0 && step == 1 && extent == shape[axis]) continue;
    if (step != 1 && !dims.value(extent)) return refuse();
    Value end = integer(context_.dims, 0);
    end.dim = step == 1 ? dims.add(dims.constant(at), extent)
                        : dims.constant(at + (*dims.value(extent) - 1) * step + 1);
    if (const auto last = dims.value(end.dim); count && last && *last > *count) return refuse();
    Result<Value> part =
        calls_.call("aten.slice.Tensor",
                    {{view, integer(context_.dims, static_cast<std::int64_t>(axis)),
                      integer(context_.dims, at), end, integer(context_.dims, step)},
                     {}},
                    site);
    if (!part) return part;
    view = *part;
  }
  if (run < runs.size() || *left != 0) return refuse();
  return calls_.call("aten.view", {{view, size}, {}}, site);
}

}  // namespace pw::fx
