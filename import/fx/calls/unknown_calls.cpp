#include "import/fx/calls/unknown_calls.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/characters.hpp"
#include "base/try.hpp"
#include "import/fx/calls/apply.hpp"

namespace pw::fx {
namespace {

constexpr int kMaxListDepth = 4;

std::string op_name(std::string_view target) {
  std::string name(target);
  for (char& c : name)
    if (!is_in_name(c) && c != '.') c = '_';
  return name;
}

/// Returns the schema's argument for an operand; null if the call does not fit the schema.
const Schema::Argument* argument_of(const Schema& schema, const Skeleton& call,
                                    std::size_t operand) {
  if (operand < call.positions.size()) {
    const std::size_t at = call.positions[operand];
    return at < schema.arguments.size() ? &schema.arguments[at] : nullptr;
  }
  for (const Schema::Argument& a : schema.arguments)
    if (a.name == call.keywords[operand]) return &a;
  return nullptr;
}

/// Returns the operand whose memory a result shares.
std::optional<std::size_t> operand_of(const Schema& schema, const Skeleton& call, char letter) {
  for (std::size_t i = 0; i < call.operands.size(); ++i)
    if (const Schema::Argument* a = argument_of(schema, call, i); a && a->alias == letter) return i;
  return std::nullopt;
}

/// Renames operand `from` to operand `to`; the keys of dicts are texts.
std::string renamed(std::string_view text, std::size_t from, std::size_t to) {
  const std::string name = fmt::format("%{}", from);
  std::string out;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '"') quoted = !quoted;
    if (quoted && text[at] == '\\') out += text[at++];
    if (quoted) {
      out += text[at++];
      continue;
    }
    const std::size_t end = at + name.size();
    const bool longer = end < text.size() && is_digit(text[end]);
    if (text.substr(at, name.size()) == name && !longer) {
      out += fmt::format("%{}", to);
      at = end;
    } else {
      out += text[at++];
    }
  }
  return out;
}

}  // namespace

// ---- the call as it was

void UnknownCalls::take_argument(Skeleton& out, const std::string& name, const Value& value,
                                 int depth) {
  if (value.kind == Value::Kind::tensor) {
    out.plain = out.plain && depth == 0;
    out.text += fmt::format("%{}", out.operands.size());
    out.operands.push_back(value);
  } else if (std::optional<Attribute> a = as_any_attribute(context_.dims, value)) {
    out.attributes.emplace_back(context_.strings.intern(name), std::move(*a));
    out.text += "$" + name;
  } else if (const bool call = value.kind == Value::Kind::other && !value.items.empty();
             (call || value.kind == Value::Kind::list) && depth < kMaxListDepth) {
    const bool dict = !value.keys.empty();  // and a call is a slice(start, end, step)
    out.plain = false;
    out.text += call ? value.text + "(" : dict ? "{" : "[";
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      if (i > 0) out.text += ", ";
      if (dict) out.text += quote(value.keys[i]) + ": ";
      take_argument(out, fmt::format("{}_{}", name, i), value.items[i], depth + 1);
    }
    out.text += call ? ")" : dict ? "}" : "]";
  } else {
    out.plain = false;
    out.text += value.kind == Value::Kind::none ? "None" : value.text;
  }
}

Skeleton UnknownCalls::skeleton_of(const Arguments& arguments) {
  Skeleton out;
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    if (i > 0) out.text += ", ";
    take_argument(out, fmt::format("arg{}", i), arguments.positional[i], 0);
    out.positions.resize(out.operands.size(), i);
  }
  out.keywords.resize(out.operands.size());
  for (const auto& [name, value] : arguments.keywords) {
    out.text += (out.text.empty() ? "" : ", ") + name + " = ";
    const std::size_t operands = out.operands.size();
    take_argument(out, name, value, 0);
    out.plain = out.plain && operands == out.operands.size();
    out.keywords.resize(out.operands.size(), name);
  }
  return out;
}

// ---- what it may write

std::optional<Schema> schema_of(const FxOptions& options, std::string_view target) {
  if (auto given = options.schemas.find(target); given != options.schemas.end())
    return parse_schema(given->second);
  return find_schema(target);
}

std::vector<std::size_t> UnknownCalls::written_operands(const Skeleton& call,
                                                        std::string_view target,
                                                        const std::optional<Schema>& schema,
                                                        const Unknown& unknown) const {
  std::vector<std::size_t> out;
  if (!schema && (unknown.functional.value_or(functional_) || target == "getitem")) return out;
  const bool in_place = split_target(target).in_place();
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    const Value& operand = call.operands[i];
    if (!operand.handle.valid()) continue;
    if (schema) {
      const Schema::Argument* argument = argument_of(*schema, call, i);
      if (argument == nullptr || !argument->written) continue;
    }
    const bool again =
        std::any_of(call.operands.begin(), call.operands.begin() + static_cast<std::ptrdiff_t>(i),
                    [&](const Value& before) { return before.handle == operand.handle; });
    // In a dump with types, an input without one is not a tensor: the name of a layer, for example.
    const bool no_tensor =
        typed_ && graph_.is_input(operand.tensor) && !emitter_.type_of(operand.tensor);
    const bool named =
        unknown.arguments.empty() ||
        std::ranges::find(unknown.arguments, call.keywords[i]) != unknown.arguments.end();
    // An assumed write is limited to what can be expressed.
    const bool declared = schema || !unknown.arguments.empty() || (in_place && i == 0);
    if (!again && !no_tensor && named && (declared || versions_.can_be_written(operand.handle)))
      out.push_back(i);
  }
  return out;
}

// Copies of two operands that share memory would be separate: such a call can be drawn, not run.
std::optional<std::string> UnknownCalls::shared_operands(
    const Skeleton& call, const std::vector<std::size_t>& written) const {
  for (std::size_t w : written)
    for (std::size_t k = 0; k < call.operands.size(); ++k) {
      const TensorId a = call.operands[w].handle, b = call.operands[k].handle;
      if (b.valid() && a != b && memory_.may_overlap(context_, a, b))
        return fmt::format("operands {} and {} share memory", std::min(w, k), std::max(w, k));
    }
  return std::nullopt;
}

void UnknownCalls::note_assumed_writes(FxReport& report) {
  for (NodeId n : graph_.order()) {
    const Attribute* writes = graph_.attribute(n, "writes");
    const std::string& name = graph_.op_of(n).name;
    if (writes == nullptr || assumed_.erase(name) == 0) continue;
    std::string operands;
    for (const DimId at : std::get<std::vector<DimId>>(*writes))
      if (const auto k = context_.dims.value(at))
        operands += fmt::format("{}{}", operands.empty() ? "" : ", ",
                                graph_.value_name(graph_.operand(n, static_cast<std::size_t>(*k))));
    report.notes.push_back(
        fmt::format("`{}` has no known signature: it is assumed to write its arguments, here {}",
                    name, operands));
  }
  for (const std::string& name : assumed_)
    report.notes.push_back(fmt::format(
        "`{}` has no known signature: it is assumed to write nothing, because no write to "
        "its arguments can be expressed",
        name));
}

Result<OpId> UnknownCalls::opaque_op(std::string_view target, const std::optional<Schema>& schema) {
  const std::string name = op_name(target);
  if (OpId known = context_.ops.find(name); known.valid()) {
    if (context_.ops[known].imported) return known;
    return fail(error_in("", "PW0514", fmt::format("`{}` is declared differently", name)));
  }
  Op declared;
  declared.name = name;
  declared.imported = true;
  declared.traits.effect = schema ? schema->random || schema->effect : name != "getitem" && !pure_;
  return context_.ops.declare(declared);
}

// ---- what it returns

// Uses the names and types of the results in the dump.
Outputs UnknownCalls::opaque_results(const Site& site) const {
  Outputs wanted;
  if (!site.items.empty()) {
    wanted.resize(static_cast<std::size_t>(site.items.rbegin()->first) + 1);
    for (const auto& [index, item] : site.items) wanted[static_cast<std::size_t>(index)] = item;
  } else if (site.bound && (site.result.name.empty() || site.result.type != Types::unknown() ||
                            read_names_.contains(site.result.name))) {
    wanted = {site.result};
  }
  return wanted;
}

// If an operand has the symbol, literals equal to its old count become the symbol too, because
// there is no signature to consult.
void UnknownCalls::make_symbolic(Outputs& wanted, std::string_view op, const Skeleton& call) {
  const bool symbolic = std::ranges::any_of(call.operands, [&](const Value& v) {
    return emitter_.type_of(v.tensor) && emitter_.symbols().in(emitter_.type_of(v.tensor)->shape);
  });
  for (Wanted& w : wanted) {
    if (!symbolic || w.type == Types::unknown()) continue;
    Type type = context_.types[w.type];
    for (DimId& dim : type.shape)
      if (std::vector<DimId> symbols = emitter_.symbols().standing_for(dim); !symbols.empty())
        dim = symbols.front();
    TypeId changed = context_.types.get(type.dtype, type.shape);
    if (changed == w.type) continue;
    effects_.note(
        fmt::format("{}: {} became {}, because `{}` reads the symbol and has no signature", w.name,
                    context_.types.print(w.type), context_.types.print(changed), op));
    w.type = changed;
  }
}

// Adds a view that only the op itself can create: it is derived by calling the op again, and cannot
// be written through.
TensorId UnknownCalls::opaque_view(const Value& base, NodeId node, std::size_t result,
                                   std::string_view target) {
  ViewStep step{graph_.op(node), graph_.attributes(node), graph_.type(base.tensor), {}, result};
  for (std::size_t i = 0; i < graph_.result_count(node); ++i)
    step.results.push_back(graph_.type(graph_.result(node, i)));
  const bool alone = graph_.operand_count(node) == 1;
  const TensorId view =
      memory_.add_view(base.handle, {std::move(step)}, graph_.result(node, result), {});
  memory_.tensors[view].inexpressible = std::string(target);
  if (!alone) memory_.tensors[view].unsure = std::string(target);
  return view;
}

namespace {

// Returns true if the schema names each result.
bool lists_results(const std::optional<Schema>& schema) {
  return schema &&
         std::ranges::none_of(schema->results, [](const Schema::Result& r) { return r.list; });
}

// Makes a tensor that is passed twice one tensor: a write to it is visible at both positions.
void unify_operands(Skeleton& call, const std::vector<std::size_t>& written) {
  for (std::size_t i : written)
    for (std::size_t k = 0; k < call.operands.size(); ++k) {
      if (k == i || call.operands[k].handle != call.operands[i].handle) continue;
      call.text = renamed(call.text, k, i);
      call.plain = false;
    }
}

}  // namespace

// Determines what an opaque call returns: operands that it wrote, or its own results, which it adds
// to those wanted.
UnknownCalls::Returned UnknownCalls::returned_by(const std::optional<Schema>& schema,
                                                 const Skeleton& call, std::string_view target,
                                                 const std::vector<std::size_t>& written,
                                                 const Site& site, Outputs& wanted) {
  Returned returned;
  if (lists_results(schema)) {
    for (std::size_t i = 0; i < schema->results.size(); ++i) {
      std::optional<std::size_t> operand;
      if (schema->results[i].written) operand = operand_of(*schema, call, schema->results[i].alias);
      returned.push_back(operand);
      if (operand) continue;
      auto item = site.items.find(static_cast<int>(i));
      wanted.push_back(item != site.items.end()      ? item->second
                       : schema->results.size() == 1 ? site.result
                                                     : Wanted());
    }
  } else if (split_target(target).in_place() && !written.empty() && written.front() == 0) {
    returned.push_back(0);
  } else {
    wanted = opaque_results(site);
    returned.resize(wanted.size());
  }
  return returned;
}

// Returns the list of what an opaque call returns.
Value UnknownCalls::returned_value(const Returned& returned, const std::optional<Schema>& schema,
                                   const Skeleton& call, const Results& results,
                                   std::string_view target) {
  const bool listed = lists_results(schema);
  Value out;
  out.kind = Value::Kind::list;
  for (std::size_t i = 0, next = 0; i < returned.size(); ++i) {
    if (returned[i]) {
      Value same = call.operands[*returned[i]];
      same.tensor = memory_.tensors[same.handle].value;
      out.items.push_back(std::move(same));
      continue;
    }
    Value item = versions_.tensor(results[next]);
    const char letter = listed ? schema->results[i].alias : '\0';
    if (std::optional<std::size_t> base = letter ? operand_of(*schema, call, letter) : std::nullopt)
      item.handle = opaque_view(call.operands[*base], graph_.producer(item.tensor), next, target);
    ++next;
    out.items.push_back(std::move(item));
  }
  return out;
}

Result<Value> UnknownCalls::keep(std::string_view target, const Arguments& arguments,
                                 const Site& site, const Unknown& unknown) {
  const std::optional<Schema> schema = schema_of(options_, target);
  Skeleton call = skeleton_of(arguments);
  Result<OpId> op = opaque_op(target, schema);
  if (!op)
    return fail(site.span, "PW0514",
                fmt::format("this call does not match the declaration of `{}`{}{}", op_name(target),
                            unknown.why.empty() ? "" : ": ", unknown.why),
                "correct the declaration, or remove it to keep the op opaque");
  const std::string name = context_.ops[*op].name;
  effects_.add_opaque(name, unknown.why);

  const std::vector<std::size_t> written = written_operands(call, target, schema, unknown);
  const bool assumed = !schema && unknown.arguments.empty() && !unknown.functional;
  if (assumed && !functional_ && target != "getitem") assumed_.insert(name);
  Outputs wanted;
  const Returned returned = returned_by(schema, call, target, written, site, wanted);
  make_symbolic(wanted, name, call);
  const std::size_t own = wanted.size();
  const bool tuple = !site.items.empty() || returned.size() > 1;
  Shape indices;
  for (std::size_t i : written) {
    const ValueId old = call.operands[i].tensor;
    indices.push_back(context_.dims.constant(static_cast<std::int64_t>(i)));
    const bool named = returned.size() == 1 && returned[0] == i && !site.result.name.empty();
    wanted.push_back(
        {named ? site.result.name : emitter_.fresh(std::string(graph_.value_name(old))),
         graph_.type(old), site.span});
  }
  // In a functionalised call, a tensor passed twice is two tensors.
  if (unknown.arguments.empty()) unify_operands(call, written);
  if (!site.keys.empty()) {  // which result is which
    call.plain = false;
    call.attributes.emplace_back(context_.strings.intern("keys"), site.keys);
  }
  if (!call.plain) call.attributes.emplace_back(context_.strings.intern("call"), call.text);
  if (!written.empty())
    call.attributes.emplace_back(context_.strings.intern("writes"), std::move(indices));
  if (std::optional<std::string> shared = shared_operands(call, written))
    call.attributes.emplace_back(context_.strings.intern("shared"), std::move(*shared));

  std::vector<ValueId> operands;
  for (const Value& v : call.operands) operands.push_back(v.tensor);
  Results results = PW_TRY(emitter_.emit(*op, operands, call.attributes, wanted, site));
  if (!results.empty())  // it stays when its results take others' names
    graph_.give_name(graph_.producer(results.front()), site.result.name.empty()
                                                           ? graph_.value_name(results.front())
                                                           : std::string_view(site.result.name));
  for (std::size_t i = 0; i < written.size(); ++i)
    PW_TRY(versions_.write(call.operands[written[i]].handle, results[own + i], site, assumed));

  Value out = returned_value(returned, schema, call, results, target);
  if (out.items.empty()) return Value();
  if (site.keys.size() == out.items.size()) out.keys = site.keys;
  return tuple ? out : out.items.front();
}

}  // namespace pw::fx
