#include "import/fx/calls/known_calls.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/try.hpp"
#include "graph/ops/converted_numbers.hpp"
#include "import/fx/calls/apply.hpp"
#include "import/fx/calls/foreign.hpp"
#include "import/fx/emit/put_back.hpp"

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

// Returns true if inference contradicts a stated type, which is an error for any translation of the
// call.
bool contradicts(const Diagnostics& diagnostics) {
  return std::ranges::any_of(diagnostics, [](const Diagnostic& d) { return d.code == "PW0511"; });
}

// Returns why PyTorch raises for a number of the call; empty if it does not.
std::string beyond_range(const Emitter& emitter, const Bound& bound, const Results& results) {
  const Type* type = results.empty() ? nullptr : emitter.type_of(results.front());
  if (type == nullptr) return {};
  return number_beyond_range(bound.mapping->target, type->dtype, [&](std::string_view name) {
    const Value* given = bound.find(name);
    return given ? as_real(emitter.dims(), *given) : std::nullopt;
  });
}

}  // namespace

std::optional<Bound> bind(Graph& graph, const Mapping& mapping, const Arguments& arguments,
                          std::string& why) {
  if (mapping.foreign) return bind_foreign_call(graph, mapping, arguments, why);
  Context& context = graph.context();
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
    auto of_name = [&](const Slot& p) { return std::ranges::find(p.names, name) != p.names.end(); };
    auto it = std::ranges::find_if(mapping.parameters, of_name);
    if (it == mapping.parameters.end())
      return refuse(fmt::format("its table row does not accept argument {} = {}", name,
                                shown(context, value)));
    out.values[static_cast<std::size_t>(it - mapping.parameters.begin())] = value;
  }
  for (std::size_t i = 0; i < mapping.parameters.size(); ++i) {
    const Slot& p = mapping.parameters[i];
    if (!out.values[i] && p.default_text) out.values[i] = literal(context, *p.default_text);
    if (!out.values[i] && p.use != Slot::Use::buffer && p.use != Slot::Use::none)
      return refuse(fmt::format("argument {} is missing", p.names.front()));
    if (p.use == Slot::Use::operand && p.result >= 0 && out.values[i]->kind != Value::Kind::tensor)
      return refuse(
          fmt::format("argument {} is {}", p.names.front(), shown(context, *out.values[i])));
    if (p.use == Slot::Use::none && out.values[i] &&
        !same_literal(*out.values[i], literal(context, p.default_text.value_or("None"))))
      return refuse(fmt::format("its table row does not accept argument {} = {}", p.names.front(),
                                shown(context, *out.values[i])));
  }
  return out;
}

// Elements of the tensor's memory, which must be known to be dense and in order: those of its
// storage, where it is a view.
Applied KnownCalls::as_strided(const Bound& bound, const Outputs& wanted, const Site& site) {
  const Value* x = bound.find("self");
  if (!x || x->kind != Value::Kind::tensor || !x->handle.valid()) return kNotThis;
  const std::optional<Shape> sizes = as_shape(*bound.find("size")),
                             strides = as_shape(*bound.find("stride"));
  const Value& given = *bound.find("storage_offset");
  std::optional<std::int64_t> offset = as_int(context_.dims, given);
  Memory& memory = versions_.memory();
  const Tensor& own = memory.tensors[x->handle];
  if (given.kind == Value::Kind::none && !own.base.valid()) offset = 0;
  if (!sizes || !strides || sizes->size() != strides->size() || !offset || *offset < 0)
    return kNotThis;
  for (TensorId at = x->handle; at.valid(); at = memory.tensors[at].base)
    if (const Tensor& t = memory.tensors[at]; !t.unsure.empty() && t.inexpressible.empty())
      return fail(
          site.span, "PW0512",
          fmt::format(
              "the memory layout of its operand is unknown, because `{}` may have copied it",
              t.unsure));
  const TensorId root = memory.storage_of(x->handle).root;
  ValueId contents = PW_TRY(versions_.read(root, site));
  const Type* type = emitter_.type_of(contents);
  const std::optional<Shape>& known = memory.tensors[root].strides;
  if (!type || !known || !is_dense(context_.dims, type->shape, *known))
    return fail(site.span, "PW0512", "the memory layout of its operand is unknown");
  const DimId count = count_of(context_.dims, type->shape);
  Maker make(emitter_, site);
  const std::optional<ValueId> places = places_of(make, *sizes, *strides, *offset);
  if (!places || !count.valid()) return kNotThis;
  const ValueId flat = make("reshape", {contents}, {{"shape", Shape{count}}});
  return make.done(make("index", {flat, *places}, {}, wanted));
}

Applied KnownCalls::apply_row(const Bound& bound, const Outputs& wanted, const Site& site) {
  const Special special = bound.mapping->special;
  if (special == Special::as_strided) return as_strided(bound, wanted, site);
  const KnownCall call{emitter_, bound, wanted, site};
  if (special == Special::shard_rows) return groups_.shard_rows(call);
  if (special == Special::foreign) {
    const std::vector<Mapping>& rows = *mappings_of(table_, context_, bound.mapping->target);
    return convert_foreign(call, &rows.back() == bound.mapping);
  }
  Conversion* convert = bound.mapping->convert ? bound.mapping->convert : apply_direct;
  return convert(call);
}

Applied KnownCalls::apply(const Bound& bound, const Outputs& wanted, const Site& site) {
  Applied results = apply_row(bound, wanted, site);
  if (results && *results) {
    drop_buffers(bound, **results);
    if (const Value* cache =
            bound.mapping->op == "rotary_embedding" ? bound.find("cos_sin_cache") : nullptr)
      if (cache->kind == Value::Kind::tensor) emitter_.effects().add_rope_cache(cache->tensor);
  }
  return results;
}

// Drops a buffer that only receives results, which nothing reads any more. If its maker's literal
// was the old count, reports the replacement.
void KnownCalls::drop_buffers(const Bound& bound, const Results& results) {
  for (std::size_t i = 0; i < bound.mapping->parameters.size(); ++i) {
    const Slot& p = bound.mapping->parameters[i];
    if (p.use != Slot::Use::buffer || !bound.values[i] ||
        bound.values[i]->kind != Value::Kind::tensor)
      continue;
    ValueId buffer = bound.values[i]->tensor;
    emitter_.effects().drop(buffer);
    auto r = static_cast<std::size_t>(p.result);
    if (r >= results.size() || !emitter_.effects().is_maker(buffer)) continue;
    TypeId given = graph_.type(results[r]), made = graph_.type(buffer);
    if (given == made || emitter_.symbols().to_old(given) != made) continue;
    emitter_.effects().note(
        fmt::format("{}: {} {} became {}, the result of `{}`", graph_.value_name(buffer),
                    graph_.op_of(graph_.producer(buffer)).name,
                    context_.types.print(context_.types[made].shape),
                    context_.types.print(context_.types[given].shape), bound.mapping->op));
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
Outputs KnownCalls::wanted_of(const Bound& bound, const Site& site, bool functionalised_call) {
  Outputs out;
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
          {emitter_.fresh(std::string(graph_.value_name(bound.values[i]->tensor))),
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

Result<std::optional<Outcome>> KnownCalls::make(std::string_view target, const Arguments& arguments,
                                                const Site& site, bool functionalised,
                                                std::string& why) {
  const std::vector<Mapping>* mappings = mappings_of(table_, context_, target);
  if (!mappings) return std::optional<Outcome>();
  const std::size_t first_cast = graph_.node_bound();
  Arguments converted = arguments;
  if (!PW_TRY(to_common_type(emitter_, target, converted, site))) {
    why = "PyTorch computes u8 and i8 in i16, which is not supported";
    return std::optional<Outcome>();
  }
  for (const Mapping& mapping : *mappings) {
    if (const OpId op = context_.ops.find(mapping.op);
        options_.keep_stateful && op.valid() && context_.ops[op].traits.splitting) {
      why = "it reads program state";
      continue;
    }
    std::string mismatch;
    std::optional<Bound> bound = fx::bind(graph_, mapping, converted, mismatch);
    if (!bound) {
      if (why.empty()) why = std::move(mismatch);
      continue;
    }
    Outputs wanted = wanted_of(*bound, site, functionalised);
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
    if (std::string beyond = beyond_range(emitter_, *bound, **results); !beyond.empty()) {
      why = std::move(beyond);
      break;
    }
    Outcome out;
    out.tuple = (mapping.op == "split" && mapping.convert != convert_select) ||
                mapping.convert == convert_broadcast || mapping.convert == convert_meshgrid;
    out.gathered = mapping.convert == convert_unfold || mapping.special == Special::as_strided;
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
  erase_unused(first_cast);
  return std::optional<Outcome>();
}

void KnownCalls::erase_unused(std::size_t first_new) {
  for (std::size_t i = graph_.node_bound(); i-- > first_new;) {
    const NodeId n(i);
    bool unused = graph_.alive(n);
    for (std::size_t r = 0; unused && r < graph_.result_count(n); ++r)
      unused = graph_.unused(graph_.result(n, r));
    if (unused) graph_.erase(n);
  }
}

}  // namespace pw::fx
