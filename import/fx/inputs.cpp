#include "import/fx/inputs.hpp"

#include <algorithm>
#include <cstdlib>
#include <tuple>
#include <unordered_set>

#include <fmt/format.h>

#include "base/trim.hpp"
#include "base/try.hpp"
#include "graph/text/type_text.hpp"
#include "import/fx/types.hpp"

namespace pw::fx {

namespace {

constexpr std::string_view kSym = "Sym(";

// "Sym(s0)" → "s0"; empty for other texts.
std::string_view symbolic_text(std::string_view type) {
  if (!type.starts_with(kSym) || !type.ends_with(")")) return {};
  return type.substr(kSym.size(), type.size() - kSym.size() - 1);
}

std::optional<InputKind> kind_in_name(std::string_view name, bool dynamo) {
  auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (name.starts_with("L_") || name.starts_with("l_")) {
    if (has("_parameters_")) return InputKind::weight;
    if (has("_buffers_")) return InputKind::buffer;
    if (dynamo && !has("_modules_")) return InputKind::input;
    return std::nullopt;
  }
  if (name.size() < 3 || name[1] != '_') return std::nullopt;
  if (name[0] == 'p' || name[0] == 'c') return InputKind::weight;  // a parameter, a lifted constant
  if (name[0] == 'b') return InputKind::buffer;
  return std::nullopt;
}

// The lines "p_a_weight: PARAMETER target='a.weight'" of torch.export's signature, or its older
// "InputSpec(kind=<InputKind.PARAMETER: 2>, arg=TensorArgument(name='p_a_weight'), …".
std::map<std::string, InputKind> signed_kinds(std::string_view signature) {
  const std::pair<std::string_view, InputKind> kWords[] = {{"PARAMETER", InputKind::weight},
                                                           {"BUFFER", InputKind::buffer},
                                                           {"CONSTANT_TENSOR", InputKind::weight},
                                                           {"USER_INPUT", InputKind::input}};
  std::map<std::string, InputKind> out;
  auto kind_of = [&](std::string_view text) -> std::optional<InputKind> {
    for (const auto& [word, kind] : kWords)
      if (text.starts_with(word)) return kind;
    return std::nullopt;
  };
  constexpr std::string_view kSpec = "InputKind.", kName = "name='";
  for (std::size_t at = signature.find(kSpec); at != std::string_view::npos;
       at = signature.find(kSpec, at + 1)) {
    const std::optional<InputKind> kind = kind_of(signature.substr(at + kSpec.size()));
    const std::size_t name = signature.find(kName, at);
    if (!kind || name == std::string_view::npos) continue;
    const std::size_t begin = name + kName.size();
    out[std::string(signature.substr(begin, signature.find('\'', begin) - begin))] = *kind;
  }
  while (!signature.empty()) {
    const std::string_view line = signature.substr(0, signature.find('\n'));
    signature.remove_prefix(std::min(line.size() + 1, signature.size()));
    const std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos || !is_word(line.substr(0, colon))) continue;
    if (std::optional<InputKind> kind = kind_of(line.substr(colon + 2)))
      out.emplace(line.substr(0, colon), *kind);
  }
  return out;
}

}  // namespace

void Inputs::take_strides(const Value& value, std::string_view text) {
  const std::size_t begin = text.find("][");
  if (begin == std::string_view::npos || value.kind != Value::Kind::tensor ||
      !value.handle.valid() || memory_.tensors[value.handle].base.valid())
    return;
  const Type* type = emitter_.type_of(value.tensor);
  const std::size_t end = text.find(']', begin + 1);
  if (type == nullptr || end == std::string_view::npos) return;
  Shape strides;
  for (std::size_t at = begin + 2; at < end;) {
    const std::size_t comma = std::min(text.find(',', at), end);
    TextResult<DimId> stride = parse_dim(context_.dims, trimmed(text.substr(at, comma - at)));
    if (!stride) return;
    strides.push_back(symbols_.renamed(*stride));
    at = comma + 1;
  }
  if (strides.size() == type->shape.size()) memory_.tensors[value.handle].strides = strides;
}

// Returns the dim that `--symbol` names.
Result<DimId> Inputs::named_dim(const std::string& place, const std::string& input, int axis) {
  auto parameter = std::ranges::find_if(
      function_.parameters, [&](const Parameter& p) { return names_input(input, p.name); });
  if (parameter == function_.parameters.end()) {
    std::vector<std::string> names;
    for (const Parameter& p : function_.parameters) names.push_back(p.name);
    std::string near = nearest(input, names);
    return fail(error_in(place, "PW0506", "there is no input `" + input + "`",
                         near.empty() ? "" : "did you mean `" + near + "`?"));
  }
  Result<TypeId> type = Types::unknown();
  if (!parameter->type.empty() && symbolic_text(parameter->type).empty())
    type = types_.read(parameter->type, parameter->type_span);
  if (!type) return forward(type);
  std::size_t rank = *type == Types::unknown() ? 0 : context_.types[*type].shape.size();
  if (axis < 0 || static_cast<std::size_t>(axis) >= rank)
    return fail(error_in(place, "PW0506",
                         fmt::format("`{}` has type {}, which has no dim {}", input,
                                     context_.types.print(*type), axis)));
  return context_.types[*type].shape[static_cast<std::size_t>(axis)];
}

// Merges symbols into one with the given name, which no other symbol may have.
Status Inputs::rename_symbols(const std::string& place, const std::string& name,
                              const std::vector<DimId>& dims) {
  std::set<std::string> from;
  for (DimId dim : dims) from.insert(context_.dims.print(dim));
  for (const Parameter& p : function_.parameters) {
    TypeId type = Types::unknown();
    if (TextResult<TypeId> read = parse_fx_type(context_, p.type)) type = *read;
    std::vector<DimId> all;
    if (type != Types::unknown()) all = context_.types[type].shape;
    if (std::string_view text = symbolic_text(p.type); !text.empty())
      if (TextResult<DimId> dim = parse_dim(context_.dims, text)) all.push_back(*dim);
    for (DimId dim : all)
      for (const std::string& s : context_.dims.symbols(dim))
        if (s == name && !from.contains(s))
          return fail(error_in(place, "PW0506", "the dump already has a symbol `" + name + "`",
                               "choose another name"));
  }
  for (const std::string& s : from) {
    if (symbols_.renames(s) || graph_.facts.find(s))
      return fail(error_in(place, "PW0506", "this dim is already called `" + s + "`"));
    symbols_.rename(s, context_.dims.symbol(name));
    if (s != name) effects_.note(fmt::format("{}: renamed to {}", s, name));
  }
  SymbolFact fact{options_.symbol_min, options_.symbol_max, 1, ""};
  if (graph_.facts.tokens().empty()) fact.role = "tokens";
  graph_.facts.symbols[name] = fact;
  return {};
}

Status Inputs::read_symbols() {
  for (const auto& [name, places] : options_.symbols) {
    std::string place = "--symbol " + name;
    if (!is_word(name) || dtype_named(name))
      return fail(error_in(place, "PW0506", "`" + name + "` cannot name a symbol",
                           "use a word, such as n"));
    if (symbols_.counts().contains(name) || graph_.facts.find(name))
      return fail(error_in(place, "PW0506", "duplicate symbol `" + name + "`"));
    std::vector<DimId> dims;
    std::optional<std::int64_t> count;
    for (const auto& [input, axis] : places) {
      Result<DimId> dim = named_dim(place, input, axis);
      if (!dim) return forward(dim);
      dims.push_back(*dim);
      if (context_.dims.is_symbol(*dim)) continue;
      std::optional<std::int64_t> value = context_.dims.value(*dim);
      if (!value || *value < 1)
        return fail(error_in(place, "PW0506",
                             fmt::format("dim {} of `{}` is not a positive count", axis, input),
                             value ? "" : "it is " + context_.dims.print(*dim)));
      if (count && count != value)
        return fail(error_in(
            place, "PW0506",
            fmt::format("dim {} of `{}` is {}, but another is {}", axis, input, *value, *count),
            "all dims of a symbol must be equal"));
      count = value;
    }
    if (dims.empty())
      return fail(error_in(place, "PW0506", "the symbol `" + name + "` names no dim",
                           "write n=arg0_1.0,arg6_1.0"));
    const auto symbolic =
        std::ranges::count_if(dims, [&](DimId d) { return context_.dims.is_symbol(d); });
    if (symbolic > 0 && count)
      return fail(
          error_in(place, "PW0506", fmt::format("one dim is {}, but another is a symbol", *count)));
    if (symbolic > 0) {
      if (auto ok = rename_symbols(place, name, dims); !ok) return ok;
      continue;
    }
    symbols_.add(name, *count);
    SymbolFact fact;
    fact.min = std::min(options_.symbol_min, *count);
    fact.max = *count;
    if (graph_.facts.tokens().empty()) fact.role = "tokens";
    graph_.facts.symbols[name] = fact;
  }
  return {};
}

void Inputs::declare_symbols(const Shape& shape) {
  for (DimId dim : shape)
    for (const std::string& s : context_.dims.symbols(dim))
      if (!graph_.facts.find(s))
        graph_.facts.symbols[s] = SymbolFact{options_.symbol_min, options_.symbol_max, 1, ""};
}

// A symbol whose range is one number is that number.
void Inputs::fix_symbols() {
  for (const auto& [symbol, range] : options_.ranges) {
    const bool named = std::ranges::any_of(
        options_.symbols, [&, s = symbol](const auto& given) { return given.first == s; });
    if (range.first == range.second && !named)
      symbols_.rename(symbol, context_.dims.constant(range.first));
  }
}

// A parameter that is a number: Sym(s0).
Status Inputs::read_symbol_input(const Parameter& p) {
  TextResult<DimId> dim = parse_dim(context_.dims, symbolic_text(p.type));
  if (!dim) return fail(p.type_span, "PW0505", dim.error().message, dim.error().help);
  Value value = integer(context_.dims, 0);
  value.dim = symbols_.renamed(*dim);
  env_[p.name] = value;
  return {};
}

Status Inputs::read() {
  fix_symbols();
  if (auto ok = read_symbols(); !ok) return ok;
  std::vector<std::string> names;
  for (const Parameter& p : function_.parameters) names.push_back(p.name);
  const std::unordered_set<std::string_view> known(names.begin(), names.end());
  for (const auto& [name, kind] : options_.kinds) {
    if (known.contains(name) || std::ranges::any_of(names, [&, given = name](const std::string& p) {
          return names_input(given, p);
        }))
      continue;
    std::string near = nearest(name, names);
    return fail(error_in(fmt::format("--{} {}", pw::name(kind), name), "PW0506",
                         "there is no input `" + name + "`",
                         near.empty() ? "" : "did you mean `" + near + "`?"));
  }
  std::string guess;  // for the tokens symbol: the leading dim of the first list of integers that
                      // has a symbolic one
  for (const Parameter& p : function_.parameters) {
    if (env_.contains(p.name)) return fail(p.span, "PW0507", "duplicate input `" + p.name + "`");
    if (!symbolic_text(p.type).empty()) {
      if (auto ok = read_symbol_input(p); !ok) return ok;
      continue;
    }
    TypeId type = Types::unknown();
    if (!p.type.empty()) {
      TypeId stated = PW_TRY(types_.read(p.type, p.type_span));
      type = stated;
    }
    if (type != Types::unknown()) {
      Type changed = context_.types[type];
      for (const auto& [symbol, places] : options_.symbols)
        for (const auto& [input, axis] : places)
          if (names_input(input, p.name))
            changed.shape[static_cast<std::size_t>(axis)] = context_.dims.symbol(symbol);
      type = context_.types.get(changed.dtype, changed.shape);
      declare_symbols(changed.shape);
      if (guess.empty() && changed.shape.size() == 1 && is_integer(changed.dtype) &&
          context_.dims.is_symbol(changed.shape[0]))
        guess = context_.dims.print(changed.shape[0]);
    }
    env_[p.name] = versions_.input_tensor(graph_.add_input(p.name, type, InputKind::input));
    take_strides(env_[p.name], p.type);
  }
  read_ranges();
  emitter_.sizes().read(options_, symbols_);
  if (graph_.facts.tokens().empty() && !graph_.facts.symbols.empty()) {
    if (guess.empty() && graph_.facts.symbols.size() == 1)
      guess = graph_.facts.symbols.begin()->first;
    if (!guess.empty()) graph_.facts.symbols[guess].role = "tokens";
  }
  return {};
}

TypeId Inputs::given_type(const std::string& attribute) {
  const auto given = options_.types.find(attribute);
  const TextResult<TypeId> type =
      given == options_.types.end() ? Types::unknown() : parse_fx_type(context_, given->second);
  if (!type || *type == Types::unknown()) return Types::unknown();
  declare_symbols(context_.types[*type].shape);
  return symbols_.renamed(*type);
}

Status Inputs::check_given_types() {
  std::vector<std::string> names;
  for (ValueId v : graph_.inputs()) names.emplace_back(graph_.value_name(v));
  for (const Parameter& p : function_.parameters) names.push_back(p.name);
  for (const auto& [name, text] : options_.types) {
    if (std::ranges::any_of(names, [&, given = std::string_view(name)](const std::string& input) {
          return names_input(given, input);
        }))
      continue;
    const std::string near = nearest(name, names);
    return fail(error_in(fmt::format("--type {}={}", name, text), "PW0506",
                         "there is no input `" + name + "`",
                         near.empty() ? "" : "did you mean `" + near + "`?"));
  }
  return {};
}

// torch.export's "Range constraints: {s77: VR[2, int_oo], s8: VR[4, 128]}".
void Inputs::read_ranges() {
  for (const auto& [symbol, range] : options_.ranges)
    if (auto fact = graph_.facts.symbols.find(symbol); fact != graph_.facts.symbols.end())
      std::tie(fact->second.min, fact->second.max) = range;
  for (const auto& [symbol, multiple] : options_.multiples)
    if (auto fact = graph_.facts.symbols.find(symbol); fact != graph_.facts.symbols.end())
      fact->second.multiple = multiple;
  constexpr std::string_view kRanges = "Range constraints:", kRange = ": VR[";
  std::size_t at = signature_.find(kRanges);
  if (at == std::string_view::npos) return;
  for (at = signature_.find(kRange, at); at != std::string_view::npos;
       at = signature_.find(kRange, at + 1)) {
    const std::size_t lead = signature_.find_last_of("{ ", at);
    auto fact = graph_.facts.symbols.find(signature_.substr(lead + 1, at - lead - 1));
    if (fact == graph_.facts.symbols.end()) continue;
    const std::string least(signature_.substr(at + kRange.size(), 20));
    const std::size_t comma = std::min(signature_.find(", ", at), signature_.size());
    const std::string most(signature_.substr(std::min(comma + 2, signature_.size()), 20));
    const std::int64_t min = std::strtoll(least.c_str(), nullptr, 10);
    const std::int64_t max = std::strtoll(most.c_str(), nullptr, 10);
    if (min > 0) fact->second.min = min;
    if (max >= fact->second.min && !most.starts_with("int_oo")) fact->second.max = max;
  }
}

// Kinds from the options or the dump: torch.export's signature, and the names that export and
// Dynamo give.
std::optional<InputKind> Inputs::known_kind(const std::string& name) {
  if (const auto it = options_.kinds.find(name); it != options_.kinds.end()) return it->second;
  for (const auto& [given, kind] : options_.kinds)
    if (names_input(given, name)) return kind;
  if (signed_kinds_.empty() && !signature_.empty()) signed_kinds_ = signed_kinds(signature_);
  if (auto it = signed_kinds_.find(name); it != signed_kinds_.end()) return it->second;
  if (!lifted_)
    lifted_ = std::ranges::any_of(function_.parameters, [](const Parameter& p) {
      return (p.name.starts_with("L_") || p.name.starts_with("l_")) &&
             p.name.find("_parameters_") != std::string::npos;
    });
  return kind_in_name(name, *lifted_);
}

// Guesses for the rest, in this order:
// read as a rotary table: buffer · symbolic dims, or not floating: input · the leading dims of a
// batch, which is an integer input of rank 2 or more: input · returned and otherwise unread: buffer
// · else: weight.
void Inputs::classify(FxReport& report) {
  std::vector<Shape> batches;
  for (ValueId v : graph_.inputs())
    if (const Type* t = emitter_.type_of(v); t && !is_float(t->dtype) && t->shape.size() >= 2)
      batches.push_back(t->shape);
  for (ValueId v : graph_.inputs()) {
    const std::string name(graph_.value_name(v));
    if (std::optional<InputKind> known = known_kind(name)) {
      graph_.set_input_kind(v, *known);
      continue;
    }
    const Type* t = emitter_.type_of(v);
    InputKind kind = InputKind::weight;
    if (effects_.rope_caches().contains(v)) {
      kind = InputKind::buffer;
    } else if (!t) {
      kind = graph_.input_kind(v);
    } else {
      auto symbolic = [&](DimId d) { return !context_.dims.value(d); };
      auto leads = [&](const Shape& s) {
        return t->shape.size() >= s.size() && std::equal(s.begin(), s.end(), t->shape.begin());
      };
      if (!is_float(t->dtype) || std::ranges::any_of(t->shape, symbolic) ||
          std::ranges::any_of(batches, leads))
        kind = InputKind::input;
      else if (graph_.output_count(v) > 0 && graph_.use_count(v) == 0)
        kind = InputKind::buffer;
    }
    graph_.set_input_kind(v, kind);
    report.guessed.emplace_back(name, kind);
  }
}

}  // namespace pw::fx
