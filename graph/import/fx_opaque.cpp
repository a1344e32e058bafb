// Exports the part of Converter for calls of unknown ops: nodes that keep the call as it was, in its
// place, with what they may have written as further results.
#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "graph/import/fx_convert.hpp"

namespace pw::fx {
namespace {

constexpr int kMaxListDepth = 4;

std::string op_name(std::string_view target) {
  std::string name(target);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.') c = '_';
  return name;
}

/// `ns.foo_` and `ns.foo_.Tensor` return what they write, by PyTorch's convention.
bool returns_self(std::string_view target) {
  const std::size_t space = target.find('.');
  if (space == std::string_view::npos) return false;
  const std::string_view base = target.substr(0, target.find('.', space + 1));
  return base.ends_with("_") && !base.ends_with("__");
}

}  // namespace

// ---- the call as it was

void Converter::take(Skeleton& out, const std::string& name, const Value& value, int depth) {
  if (value.kind == Value::Kind::tensor) {
    out.plain = out.plain && depth == 0;
    out.text += fmt::format("%{}", out.operands.size());
    out.operands.push_back(value);
  } else if (std::optional<Attribute> a = as_any_attribute(value)) {
    out.attributes.emplace_back(key(name), std::move(*a));
    out.text += "$" + name;
  } else if (const bool call = value.kind == Value::Kind::other && !value.items.empty();
             (call || value.kind == Value::Kind::list) && depth < kMaxListDepth) {
    const bool dict = !value.keys.empty();  // and a call is a slice(start, end, step)
    out.plain = false;
    out.text += call ? value.text + "(" : dict ? "{" : "[";
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      if (i > 0) out.text += ", ";
      if (dict) out.text += "'" + value.keys[i] + "': ";
      take(out, fmt::format("{}_{}", name, i), value.items[i], depth + 1);
    }
    out.text += call ? ")" : dict ? "}" : "]";
  } else {
    out.plain = false;
    out.text += value.kind == Value::Kind::none ? "None" : value.text;
  }
}

Skeleton Converter::skeleton_of(const Arguments& arguments) {
  Skeleton out;
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    if (i > 0) out.text += ", ";
    take(out, fmt::format("arg{}", i), arguments.positional[i], 0);
  }
  for (const auto& [name, value] : arguments.keywords) {
    out.text += (out.text.empty() ? "" : ", ") + name + " = ";
    const std::size_t operands = out.operands.size();
    take(out, name, value, 0);
    out.plain = out.plain && operands == out.operands.size();
    for (std::size_t k = operands; k < out.operands.size(); ++k) out.keywords.emplace(k, name);
  }
  return out;
}

// ---- what it may write

std::vector<std::size_t> Converter::written_operands(const Skeleton& call, std::string_view target,
                                                     const Unknown& unknown) const {
  std::vector<std::size_t> out;
  if (unknown.functional || target == "getitem") return out;
  const bool typed = std::any_of(function_.parameters.begin(), function_.parameters.end(),
                                 [](const Parameter& p) { return !p.type.empty(); });
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    const Value& operand = call.operands[i];
    if (!operand.handle.valid()) continue;
    const bool again = std::any_of(
        call.operands.begin(), call.operands.begin() + static_cast<std::ptrdiff_t>(i),
        [&](const Value& before) { return before.handle == operand.handle; });
    // In a dump with types, an input without one is no tensor: the name of a layer, say.
    const bool no_tensor = typed && graph_.is_input(operand.tensor) && !type_of(operand.tensor);
    auto word = call.keywords.find(i);
    const bool named = unknown.arguments.empty() ||
                       (word != call.keywords.end() &&
                        std::find(unknown.arguments.begin(), unknown.arguments.end(),
                                  word->second) != unknown.arguments.end());
    if (!again && !no_tensor && named) out.push_back(i);
  }
  return out;
}

Result<OpId> Converter::opaque_op(std::string_view target) {
  const std::string name = op_name(target);
  if (OpId known = context_.ops.find(name); known.valid()) return known;
  Op declared;
  declared.name = name;
  declared.imported = true;
  declared.traits.effect = name != "getitem";
  return context_.ops.declare(declared);
}

// The results as the dump names and types them; where an operand has the symbol, literals that were
// its count are the symbol, too, as there is no signature to ask.
std::vector<Wanted> Converter::opaque_results(std::string_view op, const Skeleton& call,
                                              const Site& site) {
  std::vector<Wanted> wanted;
  if (!site.items.empty()) {
    wanted.resize(static_cast<std::size_t>(site.items.rbegin()->first) + 1);
    for (const auto& [index, item] : site.items) wanted[static_cast<std::size_t>(index)] = item;
  } else if (site.bound && (site.result.name.empty() || site.result.type != Types::unknown() ||
                            read_names_.contains(site.result.name))) {
    wanted = {site.result};
  }
  const bool symbolic =
      std::any_of(call.operands.begin(), call.operands.end(), [&](const Value& v) {
        return type_of(v.tensor) && symbols_.in(type_of(v.tensor)->shape);
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
                     context_.types.print(w.type), context_.types.print(changed), op));
    w.type = changed;
  }
  return wanted;
}

Result<Value> Converter::opaque(std::string_view target, const Arguments& arguments,
                                const Site& site, const Unknown& unknown) {
  Skeleton call = skeleton_of(arguments);
  Result<OpId> op = opaque_op(target);
  if (!op) return forward(op);
  const std::string name = context_.ops[*op].name;
  ++report_.opaque[name];
  if (!unknown.why.empty()) ++report_.reasons[fmt::format("{}: {}", name, unknown.why)];

  const std::vector<std::size_t> written = written_operands(call, target, unknown);
  const bool self = returns_self(target) && !written.empty() && written.front() == 0;
  std::vector<Wanted> wanted;
  if (!self) wanted = opaque_results(name, call, site);
  const std::size_t returned = wanted.size();
  Shape indices;
  for (std::size_t i : written) {
    const ValueId old = call.operands[i].tensor;
    indices.push_back(context_.dims.constant(static_cast<std::int64_t>(i)));
    const bool named = self && i == 0 && !site.result.name.empty();
    wanted.push_back({named ? site.result.name : fresh(std::string(graph_.value_name(old))),
                      graph_.type(old), site.span});
  }
  if (!call.plain) call.attributes.emplace_back(key("call"), call.text);
  if (!written.empty()) call.attributes.emplace_back(key("writes"), std::move(indices));
  for (std::size_t i = 0; i < written.size(); ++i)
    for (std::size_t k = 0; k < call.operands.size(); ++k)
      if (written[i] != k && call.operands[k].handle.valid() &&
          call.operands[written[i]].handle != call.operands[k].handle &&
          memory_.may_overlap(context_, call.operands[written[i]].handle, call.operands[k].handle)) {
        call.attributes.emplace_back(
            key("shared"), fmt::format("operands {} and {} share memory", std::min(written[i], k),
                                       std::max(written[i], k)));
        i = written.size() - 1;
        break;
      }

  std::vector<ValueId> operands;
  for (const Value& v : call.operands) operands.push_back(v.tensor);
  Result<Results> results = emit(name, operands, std::move(call.attributes), wanted, site);
  if (!results) return forward(results);
  for (std::size_t i = 0; i < written.size(); ++i)
    if (auto done = write(call.operands[written[i]].handle, (*results)[returned + i], site); !done)
      return forward(done);
  if (self) {
    Value out = call.operands[0];
    out.tensor = results->front();
    return out;
  }
  if (returned == 0) return Value();
  Value out;
  out.kind = Value::Kind::list;
  for (std::size_t i = 0; i < returned; ++i) out.items.push_back(tensor((*results)[i]));
  return site.items.empty() ? out.items.front() : out;
}

}  // namespace pw::fx
