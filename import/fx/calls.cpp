#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "base/try.hpp"
#include "import/fx/apply.hpp"
#include "import/fx/convert.hpp"
#include "import/fx/put_back.hpp"

namespace pw::fx {
namespace {

std::string shown(const Context& context, const Value& value) {
  switch (value.kind) {
    case Value::Kind::none: return "None";
    case Value::Kind::tensor: return "a tensor";
    case Value::Kind::boolean: return value.boolean ? "True" : "False";
    case Value::Kind::integer: return context.dims.print(value.dim);
    case Value::Kind::real: return print_real(value.real);
    case Value::Kind::string: return quote(value.text);
    case Value::Kind::dtype: return std::string(name(value.dtype));
    case Value::Kind::other: return value.text;
    case Value::Kind::list: break;
  }
  std::string out;
  for (const Value& item : value.items) out += (out.empty() ? "" : ", ") + shown(context, item);
  return "[" + out + "]";
}

// The default of a table row: None, True, False, 'text', an integer, a real, or a list of them.
Value literal(Context& context, std::string_view text) {
  Value out;
  if (text == "None") return out;
  if (text == "True" || text == "False") {
    out.kind = Value::Kind::boolean;
    out.boolean = text == "True";
  } else if (text.starts_with("[")) {
    out.kind = Value::Kind::list;
    for (std::size_t at = 1; at + 1 < text.size();) {
      const std::size_t end = text.find_first_of(",]", at);
      out.items.push_back(literal(context, text.substr(at, end - at)));
      at = end + 1;
    }
  } else if (text.starts_with("'")) {
    out.kind = Value::Kind::string;
    out.text = std::string(text.substr(1, text.size() - 2));
  } else if (text.find('.') != std::string_view::npos) {
    out.kind = Value::Kind::real;
    out.real = std::stod(std::string(text));
  } else {
    out.kind = Value::Kind::integer;
    out.dim = context.dims.constant(std::stoll(std::string(text)));
  }
  return out;
}

bool same_literal(const Value& a, const Value& b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Value::Kind::none: return true;
    case Value::Kind::boolean: return a.boolean == b.boolean;
    case Value::Kind::integer: return a.dim == b.dim;
    case Value::Kind::real: return a.real == b.real;
    case Value::Kind::string: return a.text == b.text;
    case Value::Kind::list:
      return std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(),
                        same_literal);
    case Value::Kind::tensor:
    case Value::Kind::dtype:
    case Value::Kind::other: return false;
  }
  return false;
}

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

// Returns true if inference contradicts a stated type, which is an error for any translation of the
// call.
bool contradicts(const Diagnostics& diagnostics) {
  return std::any_of(diagnostics.begin(), diagnostics.end(),
                     [](const Diagnostic& d) { return d.code == "PW0511"; });
}

}  // namespace

std::optional<Bound> Converter::bind(const Mapping& mapping, const Arguments& arguments,
                                     std::string& why) {
  if (mapping.foreign) return bind_foreign_call(mapping, arguments, why);
  const auto refuse = [&](std::string reason) {
    why = std::move(reason);
    return std::nullopt;
  };
  Bound out{&mapping, std::vector<std::optional<Value>>(mapping.parameters.size()), {}};
  if (arguments.positional.size() > mapping.parameters.size())
    return refuse(fmt::format("it has {} arguments, but its table row has {}",
                              arguments.positional.size(), mapping.parameters.size()));
  for (std::size_t i = 0; i < arguments.positional.size(); ++i)
    out.values[i] = arguments.positional[i];
  for (const auto& [name, value] : arguments.keywords) {
    auto of_name = [&](const Slot& p) {
      return std::find(p.names.begin(), p.names.end(), name) != p.names.end();
    };
    auto it = std::find_if(mapping.parameters.begin(), mapping.parameters.end(), of_name);
    if (it == mapping.parameters.end())
      return refuse(fmt::format("its table row does not accept argument {} = {}", name,
                                shown(context_, value)));
    out.values[static_cast<std::size_t>(it - mapping.parameters.begin())] = value;
  }
  for (std::size_t i = 0; i < mapping.parameters.size(); ++i) {
    const Slot& p = mapping.parameters[i];
    if (!out.values[i] && p.default_text) out.values[i] = literal(context_, *p.default_text);
    if (!out.values[i] && p.use != Slot::Use::buffer && p.use != Slot::Use::none)
      return refuse(fmt::format("argument {} is missing", p.names.front()));
    if (p.use == Slot::Use::operand && p.result >= 0 && out.values[i]->kind != Value::Kind::tensor)
      return refuse(
          fmt::format("argument {} is {}", p.names.front(), shown(context_, *out.values[i])));
    if (p.use == Slot::Use::none && out.values[i] &&
        !same_literal(*out.values[i], literal(context_, p.default_text.value_or("None"))))
      return refuse(fmt::format("its table row does not accept argument {} = {}", p.names.front(),
                                shown(context_, *out.values[i])));
  }
  return out;
}

// Elements of the tensor's memory, which must be known to be dense and in order: those of its
// storage, where it is a view.
Applied Converter::as_strided(const Bound& bound, const std::vector<Wanted>& wanted,
                              const Site& site) {
  const Value* x = bound.find("self");
  if (!x || x->kind != Value::Kind::tensor || !x->handle.valid()) return kNotThis;
  const std::optional<Shape> sizes = as_shape(*bound.find("size")),
                             strides = as_shape(*bound.find("stride"));
  const Value& given = *bound.find("storage_offset");
  std::optional<std::int64_t> offset = as_int(context_.dims, given);
  const Tensor& own = memory_.tensors[x->handle];
  if (given.kind == Value::Kind::none && !own.base.valid()) offset = 0;
  if (!sizes || !strides || sizes->size() != strides->size() || !offset || *offset < 0)
    return kNotThis;
  for (TensorId at = x->handle; at.valid(); at = memory_.tensors[at].base)
    if (const Tensor& t = memory_.tensors[at]; !t.unsure.empty() && t.inexpressible.empty())
      return fail(
          site.span, "PW0512",
          fmt::format(
              "the memory layout of its operand is unknown, because `{}` may have copied it",
              t.unsure));
  const TensorId root = memory_.storage_of(x->handle).root;
  Result<ValueId> memory = versions_.read(root, site);
  if (!memory) return forward(memory);
  const Type* type = emitter_.type_of(*memory);
  const std::optional<Shape>& known = memory_.tensors[root].strides;
  if (!type || !known || !is_dense(context_.dims, type->shape, *known))
    return fail(site.span, "PW0512", "the memory layout of its operand is unknown");
  const DimId count = count_of(context_.dims, type->shape);
  Maker make(emitter_, site);
  const std::optional<ValueId> places = places_of(make, *sizes, *strides, *offset);
  if (!places || !count.valid()) return kNotThis;
  const ValueId flat = make("reshape", {*memory}, {{"shape", Shape{count}}});
  return make.done(make("index", {flat, *places}, {}, wanted));
}

Applied Converter::apply_row(const Bound& bound, const std::vector<Wanted>& wanted,
                             const Site& site) {
  const Special special = bound.mapping->special;
  if (special == Special::none) return apply_direct(emitter_, bound, wanted, site);
  if (special == Special::as_strided) return as_strided(bound, wanted, site);
  if (special == Special::shard_rows) return shard_rows(bound, wanted, site);
  if (special == Special::foreign) return foreign(bound, wanted, site);
  return convert_special(emitter_, bound, wanted, site);
}

Applied Converter::apply(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site) {
  Applied results = apply_row(bound, wanted, site);
  if (results && *results) {
    drop_buffers(bound, **results);
    if (const Value* cache =
            bound.mapping->op == "rotary_embedding" ? bound.find("cos_sin_cache") : nullptr)
      if (cache->kind == Value::Kind::tensor) effects_.add_rope_cache(cache->tensor);
  }
  return results;
}

// Drops a buffer that only receives results, which nothing reads any more. If its maker's literal
// was the old count, reports the replacement.
void Converter::drop_buffers(const Bound& bound, const Results& results) {
  for (std::size_t i = 0; i < bound.mapping->parameters.size(); ++i) {
    const Slot& p = bound.mapping->parameters[i];
    if (p.use != Slot::Use::buffer || !bound.values[i] ||
        bound.values[i]->kind != Value::Kind::tensor)
      continue;
    ValueId buffer = bound.values[i]->tensor;
    effects_.drop(buffer);
    auto r = static_cast<std::size_t>(p.result);
    if (r >= results.size() || !effects_.is_maker(buffer)) continue;
    TypeId given = graph_.type(results[r]), made = graph_.type(buffer);
    if (given == made || symbols_.to_old(given) != made) continue;
    effects_.note(fmt::format("{}: {} {} became {}, the result of `{}`", graph_.value_name(buffer),
                              graph_.op_of(graph_.producer(buffer)).name,
                              context_.types.print(context_.types[made].shape),
                              context_.types.print(context_.types[given].shape),
                              bound.mapping->op));
    NodeId maker = graph_.producer(buffer);
    AttributeList attributes = context_.attributes[graph_.attributes(maker)];
    for (auto& [name, value] : attributes)
      if (context_.strings.text(name) == "shape") value = context_.types[given].shape;
    graph_.set_attributes(maker, context_.attributes.intern(std::move(attributes)));
    graph_.set_type(buffer, given);
  }
}

// Returns the dump's names of the library's results. Functionalised: item 0 is the return value,
// then the written arguments in the order of the schema.
std::vector<Wanted> Converter::wanted_of(const Bound& bound, const Site& site,
                                         bool functionalised_call) {
  std::vector<Wanted> out;
  auto put = [&](std::size_t result, const Wanted& wanted) {
    if (out.size() <= result) out.resize(result + 1);
    out[result] = wanted;
  };
  const std::optional<std::size_t> written = bound.mapping->first_written();
  if (!functionalised_call && written) {
    if (*written == 1) put(0, site.result);
    for (const auto& [index, wanted] : site.items)
      if (static_cast<std::size_t>(index) < *written) put(static_cast<std::size_t>(index), wanted);
    for (std::size_t i = 0; i < bound.values.size(); ++i) {
      const Slot& p = bound.mapping->parameters[i];
      if (p.result < 0 || !bound.values[i] || bound.values[i]->kind != Value::Kind::tensor)
        continue;
      put(static_cast<std::size_t>(p.result),
          {names_.fresh(std::string(graph_.value_name(bound.values[i]->tensor))),
           Types::unknown(),
           {}});
    }
    return out;
  }
  if (!functionalised_call) {
    for (const auto& [index, wanted] : site.items) put(static_cast<std::size_t>(index), wanted);
    if (site.items.empty()) put(0, site.result);
    return out;
  }
  int item = static_cast<int>(written.value_or(0));
  for (int i = 0; i < item; ++i)
    if (auto it = site.items.find(i); it != site.items.end())
      put(static_cast<std::size_t>(i), it->second);
  if (item > 0) --item;
  for (const Slot& p : bound.mapping->parameters) {
    if (p.result < 0) continue;
    ++item;
    auto it = site.items.find(item);
    put(static_cast<std::size_t>(p.result), it == site.items.end() ? Wanted() : it->second);
  }
  return out;
}

Result<std::optional<Outcome>> Converter::known_call(std::string_view target,
                                                     const Arguments& arguments, const Site& site,
                                                     bool functionalised, std::string& why) {
  const std::vector<Mapping>* mappings = mappings_of(target);
  if (!mappings) return std::optional<Outcome>();
  for (const Mapping& mapping : *mappings) {
    if (const OpId op = context_.ops.find(mapping.op);
        options_.keep_stateful && op.valid() && context_.ops[op].traits.splitting) {
      why = "it reads program state";
      continue;
    }
    std::optional<Bound> bound = bind(mapping, arguments, why);
    if (!bound) continue;
    std::vector<Wanted> wanted = wanted_of(*bound, site, functionalised);
    const std::size_t first_new = graph_.node_bound();
    Applied results = apply(*bound, wanted, site);
    if ((!results || !*results) && unify_sizes(emitter_, *bound, site))
      results = apply(*bound, wanted, site);
    if (!results) {
      if (!options_.computed_types && contradicts(results.error())) return forward(results);
      why = results.error().front().message;
    }
    if (!results || !*results) {
      erase_unused(first_new);
      if (why.empty()) why = "its table row does not accept its arguments";
      continue;
    }
    Outcome out;
    out.tuple = (mapping.op == "split" && mapping.special != Special::select) ||
                mapping.special == Special::broadcast || mapping.special == Special::meshgrid;
    out.gathered = mapping.special == Special::unfold || mapping.special == Special::as_strided;
    out.copies = mapping.copies;
    if (const Value* format = bound->find("memory_format");
        format && format->kind == Value::Kind::other)
      out.memory_format = format->text;
    for (std::size_t i = 0; i < mapping.parameters.size(); ++i)
      if (mapping.parameters[i].result >= 0 && bound->values[i])
        out.written.emplace_back(
            *bound->values[i], (**results)[static_cast<std::size_t>(mapping.parameters[i].result)]);
    out.results = std::move(**results);
    if (std::optional<std::size_t> written = mapping.first_written()) out.results.resize(*written);
    return std::optional(std::move(out));
  }
  return std::optional<Outcome>();
}

// Erases what a row left that did not apply after all.
void Converter::erase_unused(std::size_t first_new) {
  for (std::size_t i = graph_.node_bound(); i-- > first_new;) {
    const NodeId n(i);
    bool unused = graph_.alive(n);
    for (std::size_t r = 0; unused && r < graph_.result_count(n); ++r)
      unused = graph_.unused(graph_.result(n, r));
    if (unused) graph_.erase(n);
  }
}

Value Converter::as_result(const Outcome& outcome, const Arguments& arguments,
                           std::size_t first_new, std::string_view target) {
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
void Converter::take_memory_format(TensorId made, ValueId result, std::string_view format,
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

Result<Value> Converter::call(std::string_view full_target, const Arguments& arguments,
                              const Site& site) {
  const std::string_view target = strip(full_target);
  if (target == "higher_order.auto_functionalized") return functionalised(arguments, site);
  if (target == "higher_order.auto_functionalized_v2") return functionalised_v2(arguments, site);
  if (const std::vector<Mapping>* rows = table_.find(target);
      rows && rows->front().special == Special::size) {
    std::string ignored;
    if (std::optional<Bound> bound = bind(rows->front(), arguments, ignored))
      return size_of(*bound, site);
  }
  Result<std::optional<Value>> viewed = view_in_place(target, arguments, site);
  if (!viewed || *viewed) return viewed ? Result<Value>(**viewed) : forward(viewed);
  std::string why;
  const std::size_t first_new = graph_.node_bound();
  std::optional<Outcome> known = PW_TRY(known_call(target, arguments, site, false, why));
  if (known) {
    for (const auto& [argument, contents] : known->written)
      if (argument.handle.valid()) PW_TRY(versions_.write(argument.handle, contents, site));
    if (!known->written.empty() && known->results.empty()) return Value();
    return as_result(*known, arguments, first_new, target);
  }
  Result<std::optional<Value>> written = in_place(target, arguments, site, why);
  if (!written || *written) return written ? Result<Value>(**written) : forward(written);
  written = out_variant(target, arguments, site, why);
  if (!written || *written) return written ? Result<Value>(**written) : forward(written);
  if (why.empty()) why = size_of_data(target);
  Unknown unknown{{}, {}, why};
  if (target == "higher_order.triton_kernel_wrapper_functional") unknown.functional = true;
  return opaque(target, arguments, site, unknown);
}

Result<Value> Converter::size_of(const Bound& bound, const Site& site) {
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
Result<std::optional<Value>> Converter::view_in_place(std::string_view target,
                                                      const Arguments& arguments,
                                                      const Site& site) {
  const Target parts = split_target(target);
  const std::optional<Schema> schema = parts.in_place() ? schema_of(target) : std::nullopt;
  if (!schema || !schema->reshapes) return std::optional<Value>();
  const auto refuse = [&](const std::string& why) {
    return fail(site.span, "PW0516", fmt::format("`{}` {}", target, why),
                "dump the graph after functionalisation (AOT autograd)");
  };
  std::string functional = functional_of(parts);
  if (!makes_view(schema_of(functional)) && (parts.overload.empty() || parts.overload == "default"))
    functional = functional_of({parts.base, "int"});  // as of transpose
  if (!makes_view(schema_of(functional)))
    return refuse("changes the memory or the size of a tensor in place, which no view can express");
  const std::vector<const Value*> given = tensors_in(arguments);
  if (given.empty() || !given.front()->handle.valid()) return refuse("does not change a tensor");
  const TensorId self = given.front()->handle;
  if (const std::string by = memory_.perhaps_several_names(self); !by.empty())
    return fail(
        site.span, "PW0517",
        fmt::format("whether `{}` returned its argument determines which names `{}` changes", by,
                    target),
        "dump the graph after functionalisation (AOT autograd)");
  effects_.once();
  Value viewed = PW_TRY(call(functional, arguments, site));
  if (viewed.kind != Value::Kind::tensor || !viewed.handle.valid() || viewed.handle == self ||
      memory_.tensors[viewed.handle].storage != memory_.tensors[self].storage)
    return refuse("does not return a view of its argument here");
  memory_.tensors[self].now = viewed.handle;
  return std::optional(std::move(viewed));
}

// aten.add_.Tensor(x, y) is aten.add.Tensor(x, y), written to x.
Result<std::optional<Value>> Converter::in_place(std::string_view target,
                                                 const Arguments& arguments, const Site& site,
                                                 std::string& why) {
  const Target parts = split_target(target);
  const bool by_convention = target.starts_with("aten.") || target.starts_with("_c10d_functional.");
  if (!by_convention || !parts.in_place() || arguments.positional.empty() ||
      !arguments.positional[0].handle.valid())
    return std::optional<Value>();
  const std::string functional = functional_of(parts);
  Site inner{site.span, site.source, true, {site.result.name, Types::unknown(), site.span}, {}};
  std::optional<Outcome> known = PW_TRY(known_call(functional, arguments, inner, false, why));
  if (!known || known->results.size() != 1) return std::optional<Value>();
  Value self = arguments.positional[0];
  PW_TRY(versions_.write(self.handle, known->results.front(), site));
  self.tensor = memory_.tensors[self.handle].value;
  return std::optional(std::move(self));
}

// aten.add.out(x, y, out = b) is aten.add.Tensor(x, y), written to b.
Result<std::optional<Value>> Converter::out_variant(std::string_view target,
                                                    const Arguments& arguments, const Site& site,
                                                    std::string& why) {
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
        PW_TRY(known_call(fmt::format("{}.{}", base, name), rest, inner, false, why));
    if (!known || known->results.size() != 1) continue;
    Value out = *buffer;
    PW_TRY(versions_.write(out.handle, known->results.front(), site));
    out.tensor = memory_.tensors[out.handle].value;
    return std::optional(std::move(out));
  }
  return std::optional<Value>();
}

}  // namespace pw::fx
