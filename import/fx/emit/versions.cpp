#include "import/fx/emit/versions.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/try.hpp"
#include "import/fx/emit/put_back.hpp"

namespace pw::fx {
namespace {

// After this many writes a view is derived from its base, without inspecting each of them.
constexpr std::size_t kMaxLook = 64;

// Ops of PyTorch that may return their argument itself if nothing has to be done.
bool may_return_itself(std::string_view target) {
  return target.starts_with("aten.contiguous") || target.starts_with("aten.to.") ||
         target.starts_with("aten.type_as") || target.starts_with("aten.dropout");
}

std::optional<Shape> strides_after(Context& context, const ViewStep& step, Shape strides,
                                   bool& sure) {
  Dims& dims = context.dims;
  const std::string& op = context.ops[step.op].name;
  const Shape& from = context.types[step.from].shape;
  const Shape& to = context.types[step.results[step.result]].shape;
  const auto axis = [&](std::string_view name) {
    return static_cast<std::size_t>(
        std::get<std::int64_t>(*context.attributes.find(step.attributes, name)));
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

}  // namespace

// ---- tensors

Value Versions::tensor(ValueId v) {
  Value out;
  out.kind = Value::Kind::tensor;
  out.tensor = v;
  out.handle = memory_.add_storage(v, dense_strides_of(v));
  return out;
}

Value Versions::input_tensor(ValueId input) {
  Value out = tensor(input);
  memory_.storage_of(out.handle).input = input;
  return out;
}

std::optional<Shape> Versions::dense_strides_of(ValueId v) {
  const Type* type = !tracks_ ? nullptr : emitter_.type_of(v);
  return type ? dense_strides(context_.dims, type->shape) : std::nullopt;
}

// ---- reading

// An assumed write affects its own argument only: memory that may be shared is not written.
Touch Versions::touched(const Write& write, TensorId id) const {
  const Touch touch = memory_.touch(context_, write.tensor, id);
  return touch == Touch::unsure && write.assumed ? Touch::none : touch;
}

Result<ValueId> Versions::read(TensorId id, const Site& site) {
  const std::size_t now = memory_.storage_of(id).writes.size();
  if (memory_.tensors[id].seen == now) return memory_.tensors[id].value;
  emitter_.effects().once();
  Result<ValueId> value =
      memory_.tensors[id].base.valid() ? read_view(id, site) : replay(id, 0, site);
  if (!value) return value;
  memory_.tensors[id].value = *value;
  memory_.tensors[id].seen = now;
  return value;
}

// Reads a view: its old value if no later write touched it, the written value if that write came
// last, otherwise a part of its base.
Result<ValueId> Versions::read_view(TensorId id, const Site& site) {
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
Result<ValueId> Versions::replay(TensorId id, std::size_t first, const Site& site) {
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

Result<ValueId> Versions::derive(ValueId value, const std::vector<ViewStep>& steps,
                                 const Site& site) {
  for (const ViewStep& step : steps) {
    Result<ValueId> next = derive_step(emitter_, value, step, site);
    if (!next) return next;
    value = *next;
  }
  return value;
}

Status Versions::resolve(Value& value, const Site& site) {
  if (value.kind == Value::Kind::tensor && value.handle.valid()) {
    value.handle = memory_.now(value.handle);
    ValueId now = PW_TRY(read(value.handle, site));
    value.tensor = now;
  }
  for (Value& item : value.items)
    if (auto done = resolve(item, site); !done) return done;
  return {};
}

// ---- writing

Status Versions::write(TensorId id, ValueId value, const Site& site, bool assumed) {
  emitter_.effects().once();
  const Tensor& t = memory_.tensors[id];
  if (!t.inexpressible.empty())
    return fail(site.span, "PW0516",
                fmt::format("a write through a view that `{}` creates cannot be expressed",
                            t.inexpressible),
                "dump the graph after functionalisation (AOT autograd)");
  ValueId fitting = PW_TRY(fit(emitter_, value, t.value, site));
  if (!t.base.valid()) emitter_.effects().drop(t.value);
  Storage& storage = memory_.storage_of(id);
  storage.writes.push_back({id, fitting, assumed});
  memory_.tensors[id].value = fitting;
  memory_.tensors[id].seen = storage.writes.size();
  return {};
}

bool Versions::can_be_written(TensorId id) const {
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

// Returns the contents of `whole` after `write` to a view of it at any depth; `old`: the contents
// before.
Result<ValueId> Versions::put_back(TensorId whole, ValueId old, const Write& write,
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
    Result<ValueId> next = derive_step(emitter_, before.back(), steps[i], site);
    if (!next) return next;
    before.push_back(*next);
  }
  ValueId value = write.value;
  for (std::size_t i = steps.size(); i-- > 0;) {
    Result<ValueId> outer =
        put_back_step(emitter_, steps[i], i < before.size() ? before[i] : ValueId(), value, site);
    if (!outer) return outer;
    value = *outer;
  }
  return value;
}

tl::unexpected<Diagnostics> Versions::refuse_unsure(TensorId written, TensorId wanted,
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

TensorId Versions::tensor_of_result(ValueId result, std::span<const Value* const> arguments,
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
TensorId Versions::add_view(const Value& base, std::vector<ViewStep> steps, ValueId value,
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
    strides = strides_after(context_, steps[i], *strides, sure);
    copied = !strides && sure;
  }
  const bool may_copy = target.starts_with("aten.reshape") || target.starts_with("aten.flatten");
  if (target.starts_with("aten.contiguous")) {
    const Type* type = emitter_.type_of(value);
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

TensorId Versions::gathered_view(const Value& base, ValueId value, std::string_view target) {
  if (!base.handle.valid()) return memory_.add_storage(value, dense_strides_of(value));
  const TensorId view = memory_.add_view(base.handle, {}, value, {});
  memory_.tensors[view].inexpressible = memory_.tensors[view].unsure = std::string(target);
  return view;
}

std::optional<Shape> Versions::fresh_strides(ValueId value,
                                             std::span<const Value* const> arguments) {
  if (!tracks_ || emitter_.type_of(value) == nullptr) return std::nullopt;
  const NodeId n = graph_.producer(value);
  static const std::set<std::string, std::less<>> kDense = {
      "mm", "addmm", "bmm", "scaled_mm", "embedding", "full", "empty", "cat"};
  bool dense = n.valid() && kDense.contains(graph_.op_of(n).name);
  if (!dense) {
    dense = true;
    for (const Value* a : arguments) {
      const std::optional<Shape>& strides = memory_.tensors[a->handle].strides;
      const Type* given = emitter_.type_of(a->tensor);
      dense = dense && strides && given && is_dense(context_.dims, given->shape, *strides);
    }
  }
  return dense ? dense_strides_of(value) : std::nullopt;
}

}  // namespace pw::fx
