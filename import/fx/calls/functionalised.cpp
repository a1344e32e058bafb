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

// Infers which arguments an unknown op writes from the number of returned ones, if their types
// leave no choice; otherwise keeps the call as a function that returns them.
Result<Value> FunctionalisedCalls::call_unknown(std::string_view target, const Arguments& arguments,
                                                const Site& site, std::string why) {
  const std::size_t given = tensors_in(arguments).size();
  const std::size_t last =
      site.items.empty() ? 0 : static_cast<std::size_t>(site.items.rbegin()->first);
  std::vector<std::size_t> chosen;
  bool certain = last > 0;
  if (last == given) {
    for (std::size_t i = 0; i < last; ++i) chosen.push_back(i);
  } else {
    certain = false;
  }
  Unknown unknown{true, {}, std::move(why)};
  if (!certain) return unknown_.keep(target, arguments, site, unknown);
  // Copies of the arguments are written, and returned.
  unknown.functional = false;
  Arguments copies = arguments;
  std::vector<Value> fresh_ones;
  const auto renew = [&](Value& value, auto&& self) -> void {
    if (value.kind == Value::Kind::tensor) {
      value.handle = memory_.add_storage(value.tensor, {});
      fresh_ones.push_back(value);
    }
    for (Value& item : value.items) self(item, self);
  };
  for (Value& value : copies.positional) renew(value, renew);
  for (auto& [name, value] : copies.keywords) renew(value, renew);
  Site inner{site.span, site.source, site.items.contains(0), {}, {}};
  if (auto first = site.items.find(0); first != site.items.end()) inner.result = first->second;
  const std::size_t first_new = graph_.node_bound();
  Result<Value> returned = unknown_.keep(target, copies, inner, unknown);
  if (!returned) return returned;
  name_call(first_new, site);
  Value out;
  out.kind = Value::Kind::list;
  out.items.push_back(*returned);
  for (std::size_t i : chosen) {
    const ValueId contents = memory_.tensors[fresh_ones[i].handle].value;
    auto wanted = site.items.find(static_cast<int>(i) + 1);
    if (wanted != site.items.end() && !wanted->second.name.empty())
      emitter_.rename(contents, wanted->second.name);
    out.items.push_back(versions_.tensor(contents));
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
  Site call_site{site.span, site.source, site.items.contains(0), {}, {}};
  if (auto first = site.items.find(0); first != site.items.end()) call_site.result = first->second;
  const std::size_t first_new = graph_.node_bound();
  std::optional<Outcome> known = PW_TRY(known_.make(target, inner, call_site, false, unknown.why));
  Value returned;
  if (known) {
    for (const auto& [argument, contents] : known->written)
      if (argument.handle.valid()) PW_TRY(versions_.write(argument.handle, contents, site));
    if (!known->results.empty()) returned = calls_.as_result(*known, inner, first_new, target);
  } else {
    Result<Value> kept = unknown_.keep(target, inner, call_site, unknown);
    if (!kept) return kept;
    returned = *kept;
    name_call(first_new, site);
  }
  Value out;
  out.kind = Value::Kind::list;
  out.items.push_back(std::move(returned));
  for (std::size_t i = 0; i < bases.size(); ++i) {
    ValueId now = PW_TRY(versions_.read(bases[i].handle, site));
    auto wanted = site.items.find(static_cast<int>(i) + 1);
    if (wanted != site.items.end() && !wanted->second.name.empty() && now != bases[i].tensor) {
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
