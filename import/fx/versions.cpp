// Lazy versioning of memory: a write creates a new value of its storage, and a view of the written
// tensor is derived again when it is read. A read applies the writes since the view was last
// derived, or derives it from its base.
#include <algorithm>

#include <fmt/format.h>

#include "base/try.hpp"
#include "import/fx/apply.hpp"

namespace pw::fx {
namespace {

// After this many writes a view is derived from its base, without inspecting each of them.
constexpr std::size_t kMaxLook = 64;

// Ops of PyTorch that may return their argument itself if nothing has to be done.
bool may_return_itself(std::string_view target) {
  return target.starts_with("aten.contiguous") || target.starts_with("aten.to.") ||
         target.starts_with("aten.type_as") || target.starts_with("aten.dropout");
}

}  // namespace

// ---- reading

// An assumed write affects its own argument only: memory that may be shared is not written.
Touch Converter::touched(const Write& write, TensorId id) const {
  const Touch touch = memory_.touch(context_, write.tensor, id);
  return touch == Touch::unsure && write.assumed ? Touch::none : touch;
}

Result<ValueId> Converter::read(TensorId id, const Site& site) {
  const std::size_t now = memory_.storage_of(id).writes.size();
  if (memory_.tensors[id].seen == now) return memory_.tensors[id].value;
  once();
  Result<ValueId> value =
      memory_.tensors[id].base.valid() ? read_view(id, site) : replay(id, 0, site);
  if (!value) return value;
  memory_.tensors[id].value = *value;
  memory_.tensors[id].seen = now;
  return value;
}

// Reads a view: its old value if no later write touched it, the written value if that write came
// last, otherwise a part of its base.
Result<ValueId> Converter::read_view(TensorId id, const Site& site) {
  const std::vector<Write>& writes = memory_.storage_of(id).writes;
  const std::size_t seen = memory_.tensors[id].seen;
  std::size_t from = writes.size();  // writes from here on are parts of it, or elsewhere
  bool own = writes.size() - seen <= kMaxLook;
  for (; own && from > seen; --from) {
    const Touch touch = touched(writes[from - 1], id);
    if (touch == Touch::unsure) return refuse_unsure(writes[from - 1].tensor, id, site);
    if (touch == Touch::all) break;
    own = touch != Touch::around;
  }
  if (own) return replay(id, from == seen ? 0 : from - 1, site);
  const TensorId base = memory_.tensors[id].base;
  Result<ValueId> value = read(base, site);
  if (!value) return value;
  return derive(*value, memory_.tensors[id].steps, site);
}

// Returns the contents after the writes from `first` on to the tensor or to parts of it.
Result<ValueId> Converter::replay(TensorId id, std::size_t first, const Site& site) {
  ValueId value = memory_.tensors[id].value;
  for (std::size_t i = std::max(first, memory_.tensors[id].seen);
       i < memory_.storage_of(id).writes.size(); ++i) {
    const Write write = memory_.storage_of(id).writes[i];
    switch (touched(write, id)) {
      case Touch::none:
      case Touch::around: break;
      case Touch::all: value = write.value; break;
      case Touch::unsure: return refuse_unsure(write.tensor, id, site);
      case Touch::within: {
        Result<ValueId> whole = put_back(id, value, write, site);
        if (!whole) return whole;
        value = *whole;
      }
    }
  }
  return value;
}

Result<ValueId> Converter::derive(ValueId value, const std::vector<ViewStep>& steps,
                                  const Site& site) {
  for (const ViewStep& step : steps) {
    Result<ValueId> next = derive_step(value, step, site);
    if (!next) return next;
    value = *next;
  }
  return value;
}

Result<ValueId> Converter::derive_step(ValueId value, const ViewStep& step, const Site& site) {
  std::vector<Wanted> wanted(step.results.size());
  const bool imported = context_.ops[step.op].imported;
  for (std::size_t i = 0; imported && i < wanted.size(); ++i) wanted[i].type = step.results[i];
  Results results = PW_TRY(emit(context_.ops[step.op].name, {value},
                                context_.attributes[step.attributes], wanted, site));
  return results[step.result];
}

// ---- writing

Status Converter::write(TensorId id, ValueId value, const Site& site, bool assumed) {
  once();
  const Tensor& t = memory_.tensors[id];
  if (!t.inexpressible.empty())
    return fail(site.span, "PW0516",
                fmt::format("a write through a view that `{}` creates cannot be expressed",
                            t.inexpressible),
                "dump the graph after functionalisation (AOT autograd)");
  ValueId fitting = PW_TRY(fit(value, t.value, site));
  if (!t.base.valid()) dropped_.insert(t.value);
  Storage& storage = memory_.storage_of(id);
  storage.writes.push_back({id, fitting, assumed});
  memory_.tensors[id].value = fitting;
  memory_.tensors[id].seen = storage.writes.size();
  return {};
}

// Returns true if a write to the tensor can be applied to the tensor that it is a view of.
bool Converter::can_be_written(TensorId id) const {
  static const std::set<std::string, std::less<>> kPutBack = {"detach", "transpose", "reshape",
                                                              "slice", "split"};
  for (; id.valid(); id = memory_.tensors[id].base) {
    const Tensor& t = memory_.tensors[id];
    if (!t.inexpressible.empty()) return false;
    for (const ViewStep& step : t.steps)
      if (!kPutBack.contains(context_.ops[step.op].name)) return false;
  }
  return true;
}

// Converts a value to the element type and extents of the tensor that it is written to.
Result<ValueId> Converter::fit(ValueId value, ValueId like, const Site& site) {
  if (graph_.type(value) == graph_.type(like) || !type_of(value) || !type_of(like)) return value;
  const Type wanted = *type_of(like);
  if (type_of(value)->dtype != wanted.dtype) {
    Result<Results> cast = emit("cast", {value}, {{key("dtype"), wanted.dtype}}, kUnnamed, site);
    if (!cast) return forward(cast);
    value = cast->front();
  }
  const Shape given = type_of(value)->shape;
  if (given == wanted.shape || (makers_.contains(like) && symbols_.in(given))) return value;
  const bool same_count = count_of(given).valid() && count_of(given) == count_of(wanted.shape);
  Result<Results> shaped = emit(same_count ? "reshape" : "expand", {value},
                                {{key("shape"), wanted.shape}}, kUnnamed, site);
  if (!shaped) return forward(shaped);
  return shaped->front();
}

DimId Converter::count_of(const Shape& shape) {
  DimId out = context_.dims.constant(1);
  for (std::size_t i = 0; i < shape.size() && out.valid(); ++i)
    out = context_.dims.mul(out, shape[i]);
  return out;
}

// Returns the contents of `whole` after `write` to a view of it at any depth; `old`: the contents
// before.
Result<ValueId> Converter::put_back(TensorId whole, ValueId old, const Write& write,
                                    const Site& site) {
  std::vector<ViewStep> steps;  // from the whole to the view
  for (TensorId at = write.tensor; at != whole; at = memory_.tensors[at].base)
    steps.insert(steps.begin(), memory_.tensors[at].steps.begin(), memory_.tensors[at].steps.end());
  std::vector<ValueId> before{old};  // the contents before each step, as far as needed
  const auto needs = [&](std::size_t step) {
    const std::string& op = context_.ops[steps[step].op].name;
    return op == "slice" || op == "split";
  };
  std::size_t last = steps.size();
  while (last > 0 && !needs(last - 1)) --last;
  for (std::size_t i = 0; i + 1 < last; ++i) {
    Result<ValueId> next = derive_step(before.back(), steps[i], site);
    if (!next) return next;
    before.push_back(*next);
  }
  ValueId value = write.value;
  for (std::size_t i = steps.size(); i-- > 0;) {
    Result<ValueId> outer =
        put_back_step(steps[i], i < before.size() ? before[i] : ValueId(), value, site);
    if (!outer) return outer;
    value = *outer;
  }
  return value;
}

Result<ValueId> Converter::put_back_step(const ViewStep& step, ValueId old, ValueId part,
                                         const Site& site) {
  const std::string op = context_.ops[step.op].name;
  const auto first = [](Result<Results> results) -> Result<ValueId> {
    if (!results) return forward(results);
    return results->front();
  };
  if (op == "detach") return part;
  if (op == "transpose")
    return first(emit("transpose", {part}, context_.attributes[step.attributes], kUnnamed, site));
  if (op == "reshape" && step.from != Types::unknown())
    return first(
        emit("reshape", {part}, {{key("shape"), context_.types[step.from].shape}}, kUnnamed, site));
  if (op == "slice" || op == "split") return put_back_slice(step, old, part, site);
  if (op == "reshape") return put_back_unknown(part, site);
  return fail(site.span, "PW0516",
              op == "expand"
                  ? std::string("a write to elements that `expand` repeats")
                  : fmt::format("a write through a view that `{}` creates cannot be expressed", op),
              "dump the graph after functionalisation (AOT autograd)");
}

// Without types the extents of what was viewed are not known: the write is kept as an op of its
// own, which can be drawn and rewritten around, and which nothing runs.
Result<ValueId> Converter::put_back_unknown(ValueId part, const Site& site) {
  constexpr std::string_view kName = "write_through_view";
  if (!context_.ops.find(kName).valid()) {
    Op declared;
    declared.name = kName;
    declared.imported = true;
    declared.traits.effect = true;
    PW_TRY(context_.ops.declare(declared));
  }
  once();
  ++report_.opaque[std::string(kName)];
  ++report_.reasons[fmt::format("{}: a write through a view of a tensor of unknown shape", kName)];
  Results whole = PW_TRY(emit(kName, {part}, {}, kUnnamed, site));
  return whole.front();
}

Result<ValueId> Converter::put_back_slice(const ViewStep& step, ValueId old, ValueId part,
                                          const Site& site) {
  const auto attribute = [&](std::string_view name) {
    return *context_.attributes.find(step.attributes, name);
  };
  const auto dim = [&](const Attribute& a) {
    auto i = std::get_if<std::int64_t>(&a);
    return i != nullptr ? context_.dims.constant(*i) : std::get<DimId>(a);
  };
  DimId start = context_.dims.constant(0), end;
  std::int64_t stride = 1;
  if (context_.ops[step.op].name == "split") {
    const Attribute sizes = attribute("sizes");
    const auto& parts = std::get<std::vector<DimId>>(sizes);
    for (std::size_t i = 0; i < step.result; ++i) start = context_.dims.add(start, parts[i]);
    end = context_.dims.add(start, parts[step.result]);
  } else {
    start = dim(attribute("start"));
    end = dim(attribute("end"));
    const Attribute given = attribute("step");
    stride = std::get<std::int64_t>(given);
  }
  const std::int64_t axis = std::get<std::int64_t>(attribute("dim"));
  if (stride != 1) return put_back_strided(old, part, axis, start, stride, site);
  Result<Results> whole = emit("slice_scatter", {old, part},
                               {{key("dim"), axis},
                                {key("start"), bound_of(context_.dims, start)},
                                {key("end"), bound_of(context_.dims, end)}},
                               kUnnamed, site);
  if (!whole) return forward(whole);
  return whole->front();
}

// Replaces every stride-th element from `start` on. All but the last are the first of a group of
// `stride` elements, so that they are replaced as a column; the last may have fewer after it.
Result<ValueId> Converter::put_back_strided(ValueId old, ValueId part, std::int64_t axis,
                                            DimId start, std::int64_t stride, const Site& site) {
  Dims& dims = context_.dims;
  const Shape whole = type_of(old)->shape, taken = type_of(part)->shape;
  const auto at = static_cast<std::size_t>(axis);
  const DimId groups = dims.sub(taken[at], dims.constant(1));
  const DimId grouped = dims.mul(groups, dims.constant(stride));
  const DimId last = dims.add(start, grouped);
  const DimId behind = dims.add(last, dims.constant(1));
  if (!behind.valid() || dims.value(taken[at]) == 0) return old;
  Diagnostics failure;
  const auto one = [&](std::string_view op, std::vector<ValueId> operands,
                       AttributeList attributes) {
    if (!failure.empty()) return ValueId();
    Result<Results> results = emit(op, operands, std::move(attributes), kUnnamed, site);
    if (results) return results->front();
    failure = std::move(results.error());
    return ValueId();
  };
  const auto slice = [&](ValueId x, std::int64_t along, DimId begin, DimId end) {
    return one("slice", {x},
               {{key("dim"), along},
                {key("start"), bound_of(dims, begin)},
                {key("end"), bound_of(dims, end)},
                {key("step"), std::int64_t{1}}});
  };
  const auto split_axis = [&](Shape shape, DimId outer, DimId inner) {
    shape[at] = outer;
    shape.insert(shape.begin() + axis + 1, inner);
    return shape;
  };
  const auto reshape = [&](ValueId x, Shape shape) {
    return one("reshape", {x}, {{key("shape"), std::move(shape)}});
  };
  const DimId zero = dims.constant(0), unit = dims.constant(1);
  const ValueId rows =
      reshape(slice(old, axis, start, last), split_axis(whole, groups, dims.constant(stride)));
  const ValueId column = reshape(slice(part, axis, zero, groups), split_axis(whole, groups, unit));
  const ValueId rest = slice(rows, axis + 1, unit, dims.constant(stride));
  Shape flat = whole;
  flat[at] = grouped;
  const ValueId middle =
      reshape(one("cat", {column, rest}, {{key("dim"), axis + 1}}), std::move(flat));
  const ValueId result =
      one("cat",
          {slice(old, axis, zero, start), middle, slice(part, axis, groups, taken[at]),
           slice(old, axis, behind, whole[at])},
          {{key("dim"), axis}});
  if (!failure.empty()) return tl::unexpected<Diagnostics>(std::move(failure));
  return result;
}

tl::unexpected<Diagnostics> Converter::refuse_unsure(TensorId written, TensorId wanted,
                                                     const Site& site) {
  std::string by;
  for (TensorId t : {written, wanted})
    for (; t.valid() && by.empty(); t = memory_.tensors[t].base) {
      by = memory_.tensors[t].unsure;
      if (!by.empty() && memory_.tensors[t].inexpressible == by)
        return fail(
            site.span, "PW0516",
            fmt::format("a write visible through a view that `{}` creates cannot be expressed", by),
            "dump the graph after functionalisation (AOT autograd)");
    }
  return fail(
      site.span, "PW0517",
      fmt::format(
          "the value read here depends on whether `{}` copied, and the dump does not state it", by),
      "dump the graph after functionalisation (AOT autograd), or clone() before the write");
}

// ---- sharing

// Finds results that share memory with arguments: a result that only views connect to an argument
// is a view of it in memory too.
TensorId Converter::tensor_of_result(ValueId result, std::span<const Value* const> arguments,
                                     std::size_t first_new, std::string_view target) {
  std::vector<ViewStep> steps;
  for (ValueId at = result;;) {
    for (const Value* a : arguments)
      if (a->tensor == at && a->handle.valid())
        return add_view(*a, std::move(steps), result, target);
    const NodeId n = graph_.producer(at);
    if (!n.valid() || n.index < first_new || !graph_.op_of(n).traits.view) break;
    ViewStep step{graph_.op(n),
                  graph_.attributes(n),
                  graph_.type(graph_.operand(n, 0)),
                  {},
                  graph_.result_index(at)};
    for (std::size_t i = 0; i < graph_.result_count(n); ++i)
      step.results.push_back(graph_.type(graph_.result(n, i)));
    steps.insert(steps.begin(), std::move(step));
    at = graph_.operand(n, 0);
  }
  return memory_.add_storage(result, fresh_strides(result, arguments));
}

// Strides are known if those of each step are; `reshape` and `contiguous` copy if they must.
TensorId Converter::add_view(const Value& base, std::vector<ViewStep> steps, ValueId value,
                             std::string_view target) {
  const std::optional<Shape> known = memory_.tensors[base.handle].strides;
  bool sure = known.has_value(), copied = false;
  std::optional<Shape> strides = known;
  for (std::size_t i = 0; i < steps.size() && strides; ++i) {
    if (steps[i].from == Types::unknown() ||
        steps[i].results[steps[i].result] == Types::unknown()) {
      strides.reset();
      sure = false;
      break;
    }
    strides = strides_after(steps[i], *strides, sure);
    copied = !strides && sure;
  }
  const bool may_copy = target.starts_with("aten.reshape") || target.starts_with("aten.flatten");
  if (target.starts_with("aten.contiguous")) {
    const Type* type = type_of(value);
    sure = strides && type != nullptr;
    copied = sure && !is_dense(context_.dims, type->shape, *strides);
    if (!copied && !sure) strides.reset();
  } else if (!may_copy) {
    copied = false;
    sure = true;
  }
  if (copied) {
    return memory_.add_storage(value, dense_strides_of(value));
  }
  const TensorId view = memory_.add_view(base.handle, std::move(steps), value, std::move(strides));
  if (!sure) memory_.tensors[view].unsure = std::string(target);
  if (may_return_itself(target)) memory_.tensors[view].perhaps_itself = std::string(target);
  return view;
}

// A view in memory whose elements were read one by one: nothing may be written to it or to its base
// that the other's readers would see.
TensorId Converter::gathered_view(const Value& base, ValueId value, std::string_view target) {
  if (!base.handle.valid()) return memory_.add_storage(value, dense_strides_of(value));
  const TensorId view = memory_.add_view(base.handle, {}, value, {});
  memory_.tensors[view].inexpressible = memory_.tensors[view].unsure = std::string(target);
  return view;
}

std::optional<Shape> Converter::strides_after(const ViewStep& step, Shape strides, bool& sure) {
  Dims& dims = context_.dims;
  const std::string& op = context_.ops[step.op].name;
  const Shape& from = context_.types[step.from].shape;
  const Shape& to = context_.types[step.results[step.result]].shape;
  const auto axis = [&](std::string_view name) {
    return static_cast<std::size_t>(
        std::get<std::int64_t>(*context_.attributes.find(step.attributes, name)));
  };
  sure = true;
  if (op == "detach" || op == "split") return strides;
  if (op == "reshape") return viewed_strides(dims, from, strides, to, sure);
  if (op == "transpose") {
    std::swap(strides[axis("dim0")], strides[axis("dim1")]);
    return strides;
  }
  if (op == "slice") {
    const std::size_t a = axis("dim");
    strides[a] = dims.mul(strides[a], dims.constant(static_cast<std::int64_t>(axis("step"))));
    return strides[a].valid() ? std::optional(strides) : std::nullopt;
  }
  sure = false;
  return std::nullopt;
}

// Results have the layout of the operands; products and tables are dense.
std::optional<Shape> Converter::fresh_strides(ValueId value,
                                              std::span<const Value* const> arguments) {
  if (options_.no_writes || type_of(value) == nullptr) return std::nullopt;
  const NodeId n = graph_.producer(value);
  static const std::set<std::string, std::less<>> kDense = {
      "mm", "addmm", "bmm", "scaled_mm", "embedding", "full", "empty", "cat"};
  bool dense = n.valid() && kDense.contains(graph_.op_of(n).name);
  if (!dense) {
    dense = true;
    for (const Value* a : arguments) {
      const std::optional<Shape>& strides = memory_.tensors[a->handle].strides;
      const Type* given = type_of(a->tensor);
      dense = dense && strides && given && is_dense(context_.dims, given->shape, *strides);
    }
  }
  return dense ? dense_strides_of(value) : std::nullopt;
}

}  // namespace pw::fx
