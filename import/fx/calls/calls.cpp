#include "import/fx/calls/calls.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/try.hpp"
#include "import/fx/calls/apply.hpp"
#include "import/fx/calls/functionalised.hpp"

namespace pw::fx {
namespace {

// Reason why the size of a result is unknown before the call; empty if it is known.
std::string size_of_data(std::string_view target) {
  static const std::set<std::string_view> kAll = {"torch.unique",
                                                  "torch.unique_consecutive",
                                                  "method.unique",
                                                  "aten._unique2",
                                                  "aten.unique_dim",
                                                  "method.unique_consecutive",
                                                  "aten.nonzero",
                                                  "aten.masked_select",
                                                  "aten.unique_consecutive",
                                                  "torch.nonzero",
                                                  "method.nonzero",
                                                  "torch.masked_select",
                                                  "aten.unique_dim_consecutive"};
  if (target.ends_with(".default")) target.remove_suffix(8);
  return kAll.contains(target) ? "the size of its result depends on the contents of its operand"
                               : "";
}

bool makes_view(const std::optional<Schema>& schema) {
  return schema && schema->aliases() && !schema->writes();
}

}  // namespace

Value Calls::as_result(const Outcome& outcome, const Arguments& arguments, std::size_t first_new,
                       std::string_view target) {
  const std::vector<const Value*> given = tensors_in(arguments);
  Value out;
  out.kind = Value::Kind::list;
  for (ValueId result : outcome.results) {
    Value item;
    item.kind = Value::Kind::tensor;
    item.tensor = result;
    item.handle = outcome.copies
                      ? memory_.add_storage(result, versions_.fresh_strides(result, given))
                  : outcome.gathered ? versions_.gathered_view(*given.front(), result, target)
                                     : versions_.tensor_of_result(result, given, first_new, target);
    take_memory_format(item.handle, result, outcome.memory_format, target);
    out.items.push_back(std::move(item));
  }
  return outcome.tuple || out.items.size() != 1 ? out : out.items.front();
}

// Lays out new memory as the call states. Other results may be copies with that layout.
void Calls::take_memory_format(TensorId made, ValueId result, std::string_view format,
                               std::string_view target) {
  if (format.empty() || format == "torch.preserve_format" || !made.valid()) return;
  Tensor& tensor = memory_.tensors[made];
  const bool row_major = format == "torch.contiguous_format";
  if (!tensor.base.valid()) {
    tensor.strides = row_major ? versions_.dense_strides_of(result) : std::nullopt;
  } else if (!row_major) {
    tensor.strides.reset();
    tensor.unsure = std::string(target);
  }
}

Result<Value> Calls::call(std::string_view full_target, const Arguments& arguments,
                          const Site& site) {
  const std::string_view target = strip(full_target);
  if (target == "higher_order.auto_functionalized")
    return FunctionalisedCalls(emitter_, versions_, *this, known_, unknown_).call(arguments, site);
  if (target == "higher_order.auto_functionalized_v2")
    return FunctionalisedCalls(emitter_, versions_, *this, known_, unknown_)
        .call_v2(arguments, site);
  if (const std::vector<Mapping>* rows = known_.table().find(target);
      rows && rows->front().special == Special::size) {
    std::string ignored;
    if (std::optional<Bound> bound = bind(graph_, rows->front(), arguments, ignored))
      return size_of(*bound, site);
  }
  Result<std::optional<Value>> viewed = view_in_place(target, arguments, site);
  if (!viewed || *viewed) return viewed ? Result<Value>(**viewed) : forward(viewed);
  std::string why;
  const std::size_t first_new = graph_.node_bound();
  std::optional<Outcome> known = PW_TRY(known_.make(target, arguments, site, false, why));
  if (known) {
    for (const auto& [argument, contents] : known->written)
      if (argument.handle.valid()) PW_TRY(versions_.write(argument.handle, contents, site));
    if (!known->written.empty() && known->results.empty()) return Value();
    return as_result(*known, arguments, first_new, target);
  }
  if (!site.first_of.callee.empty()) return first_of(arguments, site);
  Result<std::optional<Value>> written = in_place(target, arguments, site, why);
  if (!written || *written) return written ? Result<Value>(**written) : forward(written);
  written = out_variant(target, arguments, site, why);
  if (!written || *written) return written ? Result<Value>(**written) : forward(written);
  if (why.empty()) why = size_of_data(target);
  Unknown unknown{{}, {}, why};
  if (target == "higher_order.triton_kernel_wrapper_functional") unknown.functional = true;
  return unknown_.keep(target, arguments, site, unknown);
}

Result<Value> Calls::first_of(const Arguments& arguments, const Site& site) {
  Site whole = site;
  whole.first_of = {};
  whole.result = {site.first_of.tuple, Types::unknown(), site.span};
  whole.items = {{0, site.result}};
  Value tuple = PW_TRY(call(site.first_of.callee, arguments, whole));
  return tuple.items.empty() ? std::move(tuple) : std::move(tuple.items.front());
}

Result<Value> Calls::size_of(const Bound& bound, const Site& site) {
  std::optional<std::int64_t> axis = as_int(context_.dims, *bound.find("dim"));
  const Value* x = bound.find("self");
  const Type* type = x->kind == Value::Kind::tensor ? emitter_.type_of(x->tensor) : nullptr;
  if (!axis || !type)
    return fail(site.span, "PW0512", "cannot take the size of a value of unknown type");
  auto rank = static_cast<std::int64_t>(type->shape.size());
  if (*axis < -rank || *axis >= rank)
    return fail(site.span, "PW0512",
                fmt::format("axis {} is out of range for a value of rank {}", *axis, rank));
  Value out = integer(context_.dims, 0);
  out.dim = type->shape[static_cast<std::size_t>(*axis < 0 ? *axis + rank : *axis)];
  return out;
}

// aten.t_(x) is aten.t(x): no element is written, and every name of x refers to that view
// afterwards.
Result<std::optional<Value>> Calls::view_in_place(std::string_view target,
                                                  const Arguments& arguments, const Site& site) {
  const Target parts = split_target(target);
  const std::optional<Schema> schema =
      parts.in_place() ? schema_of(options_, target) : std::nullopt;
  if (!schema || !schema->reshapes) return std::optional<Value>();
  const auto refuse = [&](const std::string& why) {
    return fail(site.span, "PW0516", fmt::format("`{}` {}", target, why),
                "dump the graph after functionalisation (AOT autograd)");
  };
  std::string functional = functional_of(parts);
  if (!makes_view(schema_of(options_, functional)) &&
      (parts.overload.empty() || parts.overload == "default"))
    functional = functional_of({parts.base, "int"});  // as of transpose
  if (!makes_view(schema_of(options_, functional)))
    return refuse("changes the memory or the size of a tensor in place, which no view can express");
  const std::vector<const Value*> given = tensors_in(arguments);
  if (given.empty() || !given.front()->handle.valid()) return refuse("does not change a tensor");
  const TensorId self = given.front()->handle;
  effects_.once();
  if (parts.base == "aten.detach_") return std::optional(*given.front());  // no name changes
  if (const std::string by = memory_.perhaps_several_names(self); !by.empty())
    return fail(
        site.span, "PW0517",
        fmt::format("whether `{}` returned its argument determines which names `{}` changes", by,
                    target),
        "dump the graph after functionalisation (AOT autograd)");
  Value viewed = PW_TRY(call(functional, arguments, site));
  if (viewed.kind != Value::Kind::tensor || !viewed.handle.valid() || viewed.handle == self ||
      memory_.tensors[viewed.handle].storage != memory_.tensors[self].storage)
    return refuse("does not return a view of its argument here");
  memory_.tensors[self].now = viewed.handle;
  return std::optional(std::move(viewed));
}

// aten.add_.Tensor(x, y) is aten.add.Tensor(x, y), written to x.
Result<std::optional<Value>> Calls::in_place(std::string_view target, const Arguments& arguments,
                                             const Site& site, std::string& why) {
  const Target parts = split_target(target);
  const bool by_convention = target.starts_with("aten.") || target.starts_with("_c10d_functional.");
  if (!by_convention || !parts.in_place() || arguments.positional.empty() ||
      !arguments.positional[0].handle.valid())
    return std::optional<Value>();
  const std::string functional = functional_of(parts);
  Site inner{site.span, site.source, true, {site.result.name, Types::unknown(), site.span}, {}};
  std::optional<Outcome> known = PW_TRY(known_.make(functional, arguments, inner, false, why));
  if (!known || known->results.size() != 1) return std::optional<Value>();
  Value self = arguments.positional[0];
  PW_TRY(versions_.write(self.handle, known->results.front(), site));
  self.tensor = memory_.tensors[self.handle].value;
  return std::optional(std::move(self));
}

// aten.add.out(x, y, out = b) is aten.add.Tensor(x, y), written to b.
Result<std::optional<Value>> Calls::out_variant(std::string_view target, const Arguments& arguments,
                                                const Site& site, std::string& why) {
  const auto [base, overload] = split_target(target);
  if (!target.starts_with("aten.")) return std::optional<Value>();
  if (overload != "out" && !overload.ends_with("_out")) return std::optional<Value>();
  const Value* buffer = keyword(arguments, "out");
  if (!buffer || !buffer->handle.valid()) return std::optional<Value>();
  Arguments rest{arguments.positional, {}};
  for (const auto& argument : arguments.keywords)
    if (argument.first != "out") rest.keywords.push_back(argument);
  std::vector<std::string> overloads = {"default", "Tensor", "self"};
  if (overload != "out")
    overloads.insert(overloads.begin(), std::string(overload.substr(0, overload.size() - 4)));
  Site inner{site.span, site.source, true, {site.result.name, Types::unknown(), site.span}, {}};
  for (const std::string& name : overloads) {
    std::optional<Outcome> known =
        PW_TRY(known_.make(fmt::format("{}.{}", base, name), rest, inner, false, why));
    if (!known || known->results.size() != 1) continue;
    Value out = *buffer;
    PW_TRY(versions_.write(out.handle, known->results.front(), site));
    out.tensor = memory_.tensors[out.handle].value;
    return std::optional(std::move(out));
  }
  return std::optional<Value>();
}

}  // namespace pw::fx
