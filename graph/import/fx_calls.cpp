// Exports the part of Converter that turns calls into nodes: by the table, functionalised, or
// opaque.
#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "graph/import/fx_convert.hpp"

namespace pw::fx {
namespace {

std::string_view strip(std::string_view target) {
  constexpr std::string_view kOps = "torch.ops.";
  if (target.starts_with(kOps)) target.remove_prefix(kOps.size());
  return target;
}

// The default of a table row: None, True, False, 'text', an integer or a real.
Value literal(Context& context, std::string_view text) {
  Value out;
  if (text == "None") return out;
  if (text == "True" || text == "False") {
    out.kind = Value::Kind::boolean;
    out.boolean = text == "True";
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
    case Value::Kind::tensor:
    case Value::Kind::dtype:
    case Value::Kind::list:
    case Value::Kind::other: return false;
  }
  return false;
}

Value as_tuple(const Results& results) {
  Value out;
  out.kind = Value::Kind::list;
  for (ValueId v : results) {
    out.items.emplace_back();
    out.items.back().kind = Value::Kind::tensor;
    out.items.back().tensor = v;
  }
  return out;
}

const Value* keyword(const Arguments& arguments, std::string_view name) {
  for (const auto& [key, value] : arguments.keywords)
    if (key == name) return &value;
  return nullptr;
}

}  // namespace

const Value* Bound::find(std::string_view parameter) const {
  for (std::size_t i = 0; i < mapping->parameters.size(); ++i) {
    const auto& names = mapping->parameters[i].names;
    if (std::find(names.begin(), names.end(), parameter) != names.end())
      return values[i] ? &*values[i] : nullptr;
  }
  return nullptr;
}

std::optional<Bound> Converter::bind(const Mapping& mapping, const Arguments& arguments) {
  if (mapping.foreign) return bind_foreign_call(mapping, arguments);
  Bound out{&mapping, std::vector<std::optional<Value>>(mapping.parameters.size()), {}};
  if (arguments.positional.size() > mapping.parameters.size()) return std::nullopt;
  for (std::size_t i = 0; i < arguments.positional.size(); ++i)
    out.values[i] = arguments.positional[i];
  for (const auto& [name, value] : arguments.keywords) {
    auto of_name = [&](const Slot& p) {
      return std::find(p.names.begin(), p.names.end(), name) != p.names.end();
    };
    auto it = std::find_if(mapping.parameters.begin(), mapping.parameters.end(), of_name);
    if (it == mapping.parameters.end()) return std::nullopt;
    out.values[static_cast<std::size_t>(it - mapping.parameters.begin())] = value;
  }
  for (std::size_t i = 0; i < mapping.parameters.size(); ++i) {
    const Slot& p = mapping.parameters[i];
    if (!out.values[i] && p.default_text) out.values[i] = literal(context_, *p.default_text);
    if (!out.values[i] && (p.use == Slot::Use::operand || p.use == Slot::Use::attribute))
      return std::nullopt;
    if (p.use == Slot::Use::operand && p.result >= 0 && out.values[i]->kind != Value::Kind::tensor)
      return std::nullopt;
    if (p.use == Slot::Use::none && out.values[i] &&
        !same_literal(*out.values[i], literal(context_, p.default_text.value_or("None"))))
      return std::nullopt;
  }
  return out;
}

std::optional<std::vector<ValueId>> Converter::operands_of(const Bound& bound, const Op& op,
                                                           const Site& site) {
  std::vector<ValueId> out;
  for (const OperandDecl& decl : op.operands) {
    const Value* value = nullptr;
    for (std::size_t i = 0; i < bound.mapping->parameters.size(); ++i) {
      const Slot& p = bound.mapping->parameters[i];
      if (p.use == Slot::Use::operand && p.to == decl.name && bound.values[i])
        value = &*bound.values[i];
    }
    if (decl.variadic) {
      if (!value || value->kind != Value::Kind::list) return std::nullopt;
      for (const Value& item : value->items) {
        if (item.kind != Value::Kind::tensor) return std::nullopt;
        out.push_back(item.tensor);
      }
      continue;
    }
    if (!value && !decl.optional) return std::nullopt;
    std::optional<ValueId> operand = value ? as_operand(*value, site) : ValueId();
    if (!operand || (!operand->valid() && !decl.optional)) return std::nullopt;
    out.push_back(*operand);
  }
  return out;
}

std::optional<AttributeList> Converter::attributes_of(const Bound& bound, const Op& op) {
  AttributeList out;
  for (std::size_t i = 0; i < bound.mapping->parameters.size(); ++i) {
    const Slot& p = bound.mapping->parameters[i];
    if (!bound.values[i] || p.to.empty()) continue;
    const AttributeDecl* decl = op.attribute(p.to);
    if (p.use == Slot::Use::attribute) {
      if (!decl) return std::nullopt;
      std::optional<Attribute> value = as_attribute(*bound.values[i], decl->kind);
      if (!value) return std::nullopt;
      out.emplace_back(key(p.to), std::move(*value));
    } else if (p.use == Slot::Use::buffer && decl) {
      const Type* type =
          bound.values[i]->kind == Value::Kind::tensor ? type_of(bound.values[i]->tensor) : nullptr;
      if (!type) return std::nullopt;
      out.emplace_back(key(p.to), type->dtype);
    }
  }
  return out;
}

Applied Converter::apply_direct(const Bound& bound, const std::vector<Wanted>& wanted,
                                const Site& site) {
  OpId id = context_.ops.find(bound.mapping->op);
  if (!id.valid()) return std::optional<Results>();
  Op op = context_.ops[id];
  std::optional<AttributeList> attributes = attributes_of(bound, op);
  if (!attributes) return std::optional<Results>();
  std::optional<std::vector<ValueId>> operands = operands_of(bound, op, site);
  if (!operands) return std::optional<Results>();
  Result<Results> results = emit(op.name, *operands, std::move(*attributes), wanted, site);
  if (!results) return forward(results);
  return std::optional(std::move(*results));
}

Applied Converter::apply(const Bound& bound, const std::vector<Wanted>& wanted, const Site& site) {
  Applied results = bound.mapping->special == Special::none ? apply_direct(bound, wanted, site)
                                                            : apply_special(bound, wanted, site);
  if (results && *results) {
    drop_buffers(bound, **results);
    if (const Value* cache =
            bound.mapping->op == "rotary_embedding" ? bound.find("cos_sin_cache") : nullptr)
      if (cache->kind == Value::Kind::tensor) rope_caches_.insert(cache->tensor);
  }
  return results;
}

// A buffer that only receives results is not read any more. Where its maker's literal was the old
// count, say what it became.
void Converter::drop_buffers(const Bound& bound, const Results& results) {
  for (std::size_t i = 0; i < bound.mapping->parameters.size(); ++i) {
    const Slot& p = bound.mapping->parameters[i];
    if (p.use != Slot::Use::buffer || !bound.values[i] ||
        bound.values[i]->kind != Value::Kind::tensor)
      continue;
    ValueId buffer = bound.values[i]->tensor;
    dropped_.insert(buffer);
    auto r = static_cast<std::size_t>(p.result);
    if (r >= results.size() || !makers_.contains(buffer)) continue;
    TypeId given = graph_.type(results[r]), made = graph_.type(buffer);
    if (given == made || symbols_.to_old(given) != made) continue;
    note(fmt::format("{}: {} {} became {}, which `{}` gives", graph_.value_name(buffer),
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

// What the dump calls the library's results. Functionalised: item 0 is the return value, then the
// written arguments in the order of the schema.
std::vector<Wanted> Converter::wanted_of(const Bound& bound, const Site& site,
                                         bool functionalised_call) const {
  std::vector<Wanted> out;
  auto put = [&](std::size_t result, const Wanted& wanted) {
    if (out.size() <= result) out.resize(result + 1);
    out[result] = wanted;
  };
  if (!functionalised_call) {
    for (const auto& [index, wanted] : site.items) put(static_cast<std::size_t>(index), wanted);
    if (site.items.empty()) put(0, site.result);
    return out;
  }
  int item = 0;
  for (const Slot& p : bound.mapping->parameters) {
    if (p.result < 0) continue;
    ++item;
    auto it = site.items.find(item);
    put(static_cast<std::size_t>(p.result), it == site.items.end() ? Wanted() : it->second);
  }
  return out;
}

Result<Value> Converter::call(std::string_view full_target, const Arguments& arguments,
                              const Site& site) {
  std::string_view target = strip(full_target);
  if (target == "higher_order.auto_functionalized") return functionalised(arguments, site);
  if (target == "higher_order.auto_functionalized_v2") return functionalised_v2(arguments, site);
  const std::vector<Mapping>* mappings = mappings_of(target);
  if (!mappings) return opaque(target, arguments, site);
  for (const Mapping& mapping : *mappings) {
    std::optional<Bound> bound = bind(mapping, arguments);
    if (!bound) continue;
    if (std::any_of(mapping.parameters.begin(), mapping.parameters.end(),
                    [](const Slot& p) { return p.result >= 0; })) {
      Result<bool> done = call_in_place(*bound, site);
      if (!done) return forward(done);
      if (*done) return Value();  // such ops return nothing
      continue;
    }
    if (mapping.special == Special::size) {
      std::optional<std::int64_t> axis = as_int(*bound->find("dim"));
      const Value* x = bound->find("self");
      const Type* type = x->kind == Value::Kind::tensor ? type_of(x->tensor) : nullptr;
      if (!axis || !type) continue;
      auto rank = static_cast<std::int64_t>(type->shape.size());
      if (*axis < -rank || *axis >= rank)
        return fail(site.span, "PW0512",
                    fmt::format("axis {} is outside a value of rank {}", *axis, rank));
      Value out = integer(0);
      out.dim = type->shape[static_cast<std::size_t>(*axis < 0 ? *axis + rank : *axis)];
      return out;
    }
    Applied results = apply(*bound, wanted_of(*bound, site, false), site);
    if (!results) return forward(results);
    if (!*results) continue;
    bool tuple = mapping.op == "split" && mapping.special != Special::select;
    return tuple || (*results)->size() != 1 ? as_tuple(**results) : tensor((**results)[0]);
  }
  return opaque(target, arguments, site);
}

// Whether a write to this memory can be a new value: no other view of it is in use, and if it is a
// view itself, it is a reshape, and the only use, of what it views, down to a tensor made from
// nothing or to an input.
bool Converter::owned(ValueId value) const {
  for (NodeId user : graph_.users(value))
    if (graph_.op_of(user).traits.view) return false;
  while (true) {
    NodeId producer = graph_.producer(value);
    if (!producer.valid() || !graph_.op_of(producer).traits.view) return true;
    if (graph_.op_of(producer).name != "reshape") return false;
    value = graph_.operand(producer, 0);
    if (!type_of(value) || graph_.use_count(value) != 1) return false;
  }
}

void Converter::rebind(ValueId from, ValueId to) {
  for (auto& [name, value] : env_)
    if (value.kind == Value::Kind::tensor && value.tensor == from) value.tensor = to;
}

// A call that writes its arguments, in a dump that is not functionalised: from here on, the names
// of what it wrote mean the results. False where the memory may be read under other names.
Result<bool> Converter::call_in_place(const Bound& bound, const Site& site) {
  std::vector<Wanted> wanted;
  std::vector<std::pair<ValueId, std::size_t>> written;
  for (std::size_t i = 0; i < bound.mapping->parameters.size(); ++i) {
    const Slot& p = bound.mapping->parameters[i];
    if (p.result < 0) continue;
    if (!bound.values[i] || bound.values[i]->kind != Value::Kind::tensor ||
        !owned(bound.values[i]->tensor))
      return false;
    auto r = static_cast<std::size_t>(p.result);
    ValueId old = bound.values[i]->tensor;
    if (wanted.size() <= r) wanted.resize(r + 1);
    wanted[r].name = fresh(std::string(graph_.value_name(old)));
    written.emplace_back(old, r);
  }
  Applied results = apply(bound, wanted, site);
  if (!results) return forward(results);
  if (!*results) return false;
  for (const auto& [old, r] : written) {
    ValueId at = old, now = (**results)[r];
    rebind(at, now);
    // What it is a view of has the new contents, too; if nobody reads that, it goes away at the
    // end.
    for (NodeId producer = graph_.producer(at);
         producer.valid() && graph_.op_of(producer).traits.view; producer = graph_.producer(at)) {
      at = graph_.operand(producer, 0);
      Wanted base{fresh(std::string(graph_.value_name(at))), Types::unknown(), {}};
      Result<Results> whole =
          emit("reshape", {now}, {{key("shape"), type_of(at)->shape}}, {base}, site);
      if (!whole) return forward(whole);
      now = whole->front();
      dropped_.insert(now);
      rebind(at, now);
    }
  }
  return true;
}

Result<Value> Converter::functionalised_mapping(std::string_view target, const Arguments& arguments,
                                                const Site& site, bool& applied) {
  applied = false;
  const std::vector<Mapping>* mappings = mappings_of(target);
  for (std::size_t m = 0; mappings && m < mappings->size(); ++m) {
    std::optional<Bound> bound = bind((*mappings)[m], arguments);
    if (!bound) continue;
    Applied results = apply(*bound, wanted_of(*bound, site, true), site);
    if (!results) return forward(results);
    if (!*results) continue;
    applied = true;
    Value out;
    out.kind = Value::Kind::list;
    out.items.emplace_back();  // these ops return nothing
    for (const Slot& p : (*mappings)[m].parameters)
      if (p.result >= 0)
        out.items.push_back(tensor((**results)[static_cast<std::size_t>(p.result)]));
    return out;
  }
  return Value();
}

Result<Value> Converter::functionalised(const Arguments& arguments, const Site& site) {
  if (arguments.positional.empty() || arguments.positional[0].kind != Value::Kind::other)
    return fail(site.span, "PW0512", "auto_functionalized takes an op first");
  std::string target(strip(arguments.positional[0].text));
  Arguments inner{{arguments.positional.begin() + 1, arguments.positional.end()},
                  arguments.keywords};
  bool applied = false;
  Result<Value> value = functionalised_mapping(target, inner, site, applied);
  if (!value || applied) return value;
  return opaque(target, inner, site);
}

// v2 names the written arguments by the tensor they are in: `_all_bases = [b]`, `_result_base_index
// = 0`, and for a part of it a slice. The items are then the return value and the new bases.
Result<Value> Converter::functionalised_v2(const Arguments& arguments, const Site& site) {
  if (arguments.positional.empty() || arguments.positional[0].kind != Value::Kind::other)
    return fail(site.span, "PW0512", "auto_functionalized_v2 takes an op first");
  std::string target(strip(arguments.positional[0].text));
  const Value* bases = keyword(arguments, "_all_bases");
  if (!bases || bases->kind != Value::Kind::list)
    return fail(site.span, "PW0512", "auto_functionalized_v2 needs `_all_bases = […]`");
  struct Written {
    std::string name;
    std::size_t base;
    std::optional<std::array<Value, 3>> slice;  // dim, start, end
  };
  std::vector<Written> written;
  Arguments inner;
  bool plain = true;
  for (const auto& [name, value] : arguments.keywords) {
    constexpr std::string_view kIndex = "_base_index";
    if (!name.starts_with("_")) inner.keywords.emplace_back(name, value);
    if (!name.starts_with("_") || !name.ends_with(kIndex)) continue;
    std::string argument = name.substr(1, name.size() - 1 - kIndex.size());
    if (value.kind == Value::Kind::none) {
      inner.keywords.emplace_back(argument, Value());
      continue;
    }
    std::optional<std::int64_t> index = as_int(value);
    if (!index || *index < 0 || static_cast<std::size_t>(*index) >= bases->items.size() ||
        bases->items[static_cast<std::size_t>(*index)].kind != Value::Kind::tensor)
      return fail(site.span, "PW0512", fmt::format("`{}` is not an index of `_all_bases`", name));
    Written w{argument, static_cast<std::size_t>(*index), {}};
    const Value* dim = keyword(arguments, "_" + argument + "_slice_dim");
    const Value* start = keyword(arguments, "_" + argument + "_slice_start");
    const Value* end = keyword(arguments, "_" + argument + "_slice_end");
    if (dim && start && end) w.slice = {*dim, *start, *end};
    plain = plain && !keyword(arguments, "_" + argument + "_size");
    written.push_back(std::move(w));
  }
  std::vector<Value> contents = bases->items;
  for (const Written& w : written) {
    Value value = contents[w.base];
    if (w.slice) {
      Result<Value> part =
          call("aten.slice.Tensor", {{value, (*w.slice)[0], (*w.slice)[1], (*w.slice)[2]}, {}},
               {site.span, site.source, true, {}, {}});
      if (!part) return part;
      value = *part;
    }
    inner.keywords.emplace_back(w.name, value);
  }
  // Item k of the first form is the k-th written argument; its name and type are those of its base
  // where it is the whole base.
  const std::vector<Mapping>* mappings = plain ? mappings_of(target) : nullptr;
  Site inner_site{site.span, site.source, site.bound, site.result, {}};
  std::vector<const Written*> order;
  if (mappings)
    for (const Slot& p : mappings->front().parameters) {
      if (p.result < 0) continue;
      auto it = std::find_if(written.begin(), written.end(), [&](const Written& w) {
        return std::find(p.names.begin(), p.names.end(), w.name) != p.names.end();
      });
      order.push_back(it == written.end() ? nullptr : &*it);
      auto wanted = it == written.end() || it->slice
                        ? site.items.end()
                        : site.items.find(static_cast<int>(it->base) + 1);
      if (wanted != site.items.end())
        inner_site.items[static_cast<int>(order.size())] = wanted->second;
    }
  bool applied = false;
  Result<Value> value =
      mappings ? functionalised_mapping(target, inner, inner_site, applied) : Value();
  if (!value) return value;
  if (!applied) return opaque(target, inner, site);
  for (std::size_t i = 0; i < order.size() && i + 1 < value->items.size(); ++i) {
    if (!order[i]) continue;
    Value part = value->items[i + 1];
    if (order[i]->slice) {
      auto wanted = site.items.find(static_cast<int>(order[i]->base) + 1);
      Site scatter{
          site.span, site.source, true, wanted == site.items.end() ? Wanted() : wanted->second, {}};
      const auto& [dim, start, end] = *order[i]->slice;
      Result<Value> whole = call("aten.slice_scatter.default",
                                 {{contents[order[i]->base], part, dim, start, end}, {}}, scatter);
      if (!whole) return whole;
      part = *whole;
    }
    contents[order[i]->base] = part;
  }
  Value out;
  out.kind = Value::Kind::list;
  out.items.emplace_back();
  out.items.insert(out.items.end(), contents.begin(), contents.end());
  return out;
}

// An op that the library lacks: operands are the tensors in order, attributes the rest; types as
// stated.
Result<Value> Converter::opaque(std::string_view target, const Arguments& arguments,
                                const Site& site) {
  std::vector<ValueId> operands;
  AttributeList attributes;
  auto take = [&](const std::string& name, const Value& value, auto&& self, int depth) -> void {
    if (value.kind == Value::Kind::tensor) {
      operands.push_back(value.tensor);
    } else if (std::optional<Attribute> a = as_any_attribute(value)) {
      attributes.emplace_back(key(name), std::move(*a));
    } else if (value.kind == Value::Kind::list && depth < 4) {
      for (std::size_t i = 0; i < value.items.size(); ++i)
        self(fmt::format("{}_{}", name, i), value.items[i], self, depth + 1);
    }
  };
  for (std::size_t i = 0; i < arguments.positional.size(); ++i)
    take(fmt::format("arg{}", i), arguments.positional[i], take, 0);
  for (const auto& [name, value] : arguments.keywords) take(name, value, take, 0);

  std::string name(target);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.') c = '_';
  OpId op = context_.ops.find(name);
  if (!op.valid()) {
    Op declared;
    declared.name = name;
    declared.imported = true;
    std::string_view base = target.substr(0, target.rfind('.'));
    declared.traits.effect = (base.ends_with("_") && !base.ends_with("__")) || !site.bound;
    Result<OpId> id = context_.ops.declare(declared);
    if (!id) return forward(id);
    op = *id;
  }
  ++report_.opaque[name];
  bool tuple = !site.items.empty();
  std::vector<Wanted> wanted;
  if (tuple) wanted.resize(static_cast<std::size_t>(site.items.rbegin()->first) + 1);
  for (const auto& [index, item] : site.items) wanted[static_cast<std::size_t>(index)] = item;
  if (!tuple && site.bound) wanted = {site.result};
  bool symbolic = std::any_of(operands.begin(), operands.end(), [&](ValueId v) {
    return type_of(v) && symbols_.in(type_of(v)->shape);
  });
  for (Wanted& w : wanted) {
    if (!symbolic || w.type == Types::unknown()) continue;
    Type type = context_.types[w.type];
    for (DimId& dim : type.shape)
      if (std::vector<DimId> symbols = symbols_.standing_for(dim); !symbols.empty())
        dim = symbols.front();
    TypeId changed = context_.types.get(type.dtype, type.shape);
    if (changed == w.type) continue;
    note(fmt::format("{}: {} became {}, as `{}` reads the symbol and has no signature", w.name,
                     context_.types.print(w.type), context_.types.print(changed), name));
    w.type = changed;
  }
  Result<Results> results = emit(name, operands, std::move(attributes), wanted, site);
  if (!results) return forward(results);
  if (tuple) return as_tuple(*results);
  return results->empty() ? Value() : tensor(results->front());
}

}  // namespace pw::fx
