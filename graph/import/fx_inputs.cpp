// Exports the part of Converter that reads a dump's inputs, their types, symbols and kinds.
#include <algorithm>

#include <fmt/format.h>

#include "graph/import/fx_convert.hpp"
#include "graph/type_text.hpp"

namespace pw::fx {

Result<TypeId> Converter::stated_type(const std::string& text, Span span) {
  TextResult<TypeId> type = parse_fx_type(context_, text);
  if (type) return with_equal_symbols(*type);
  auto at = static_cast<std::uint32_t>(
      std::min<std::size_t>(span.begin + type.error().offset, span.end > 0 ? span.end - 1 : 0));
  return fail(Span{span.source, at, at + 1}, "PW0505", type.error().message, type.error().help);
}

Result<std::monostate> Converter::read_symbols() {
  for (const auto& [name, places] : options_.symbols) {
    std::string place = "--symbol " + name;
    if (!is_word(name) || dtype_named(name))
      return fail(error_in(place, "PW0506", "`" + name + "` cannot name a symbol",
                           "a symbol is a word, such as n"));
    if (symbols_.counts().contains(name))
      return fail(error_in(place, "PW0506", "the symbol `" + name + "` is given twice"));
    std::optional<std::int64_t> count;
    for (const auto& [input, axis] : places) {
      auto parameter =
          std::find_if(function_.parameters.begin(), function_.parameters.end(),
                       [&, wanted = input](const Parameter& p) { return p.name == wanted; });
      if (parameter == function_.parameters.end()) {
        std::vector<std::string> names;
        for (const Parameter& p : function_.parameters) names.push_back(p.name);
        std::string near = nearest(input, names);
        return fail(error_in(place, "PW0506", "there is no input `" + input + "`",
                             near.empty() ? "" : "did you mean `" + near + "`?"));
      }
      Result<TypeId> type = stated_type(parameter->type, parameter->type_span);
      if (!type) return forward(type);
      std::size_t rank = *type == Types::unknown() ? 0 : context_.types[*type].shape.size();
      if (axis < 0 || static_cast<std::size_t>(axis) >= rank)
        return fail(error_in(place, "PW0506",
                             fmt::format("`{}` has type {}, which has no dim {}", input,
                                         context_.types.print(*type), axis)));
      std::optional<std::int64_t> value =
          context_.dims.value(context_.types[*type].shape[static_cast<std::size_t>(axis)]);
      if (!value || *value < 1)
        return fail(error_in(place, "PW0506",
                             fmt::format("dim {} of `{}` is not a positive count", axis, input)));
      if (count && count != value)
        return fail(error_in(
            place, "PW0506",
            fmt::format("dim {} of `{}` is {}, but another is {}", axis, input, *value, *count),
            "all dims of one symbol have one count"));
      count = value;
    }
    if (!count)
      return fail(error_in(place, "PW0506", "the symbol `" + name + "` stands for no dim",
                           "write n=arg0_1.0,arg6_1.0"));
    symbols_.add(name, *count);
    SymbolFact fact;
    fact.min = std::min(options_.symbol_min, *count);
    fact.max = *count;
    if (graph_.facts.tokens().empty()) fact.role = "tokens";
    graph_.facts.symbols[name] = fact;
  }
  return std::monostate();
}

Result<std::monostate> Converter::read_inputs() {
  if (auto ok = read_symbols(); !ok) return ok;
  std::string guess;  // of the tokens symbol: the leading dim of the first list of integers that
                      // has a symbolic one
  for (const Parameter& p : function_.parameters) {
    if (env_.contains(p.name)) return fail(p.span, "PW0507", "a second input `" + p.name + "`");
    constexpr std::string_view kSym = "Sym(";
    if (p.type.starts_with(kSym) && p.type.ends_with(")")) {
      TextResult<DimId> dim =
          parse_dim(context_.dims,
                    std::string_view(p.type).substr(kSym.size(), p.type.size() - kSym.size() - 1));
      if (!dim) return fail(p.type_span, "PW0505", dim.error().message, dim.error().help);
      Value value = integer(0);
      value.dim = *dim;
      env_[p.name] = value;
      continue;
    }
    TypeId type = Types::unknown();
    if (!p.type.empty()) {
      Result<TypeId> stated = stated_type(p.type, p.type_span);
      if (!stated) return forward(stated);
      type = *stated;
    }
    if (type != Types::unknown()) {
      Type changed = context_.types[type];
      for (const auto& [symbol, places] : options_.symbols)
        for (const auto& [input, axis] : places)
          if (input == p.name)
            changed.shape[static_cast<std::size_t>(axis)] = context_.dims.symbol(symbol);
      type = context_.types.get(changed.dtype, changed.shape);
      for (DimId dim : changed.shape)
        for (const std::string& s : context_.dims.symbols(dim))
          if (!graph_.facts.find(s))
            graph_.facts.symbols[s] = SymbolFact{options_.symbol_min, options_.symbol_max, 1, ""};
      if (guess.empty() && changed.shape.size() == 1 && is_integer(changed.dtype) &&
          context_.dims.is_symbol(changed.shape[0]))
        guess = context_.dims.print(changed.shape[0]);
    }
    env_[p.name] = input_tensor(graph_.add_input(p.name, type, InputKind::input));
  }
  if (graph_.facts.tokens().empty() && !graph_.facts.symbols.empty()) {
    if (guess.empty() && graph_.facts.symbols.size() == 1)
      guess = graph_.facts.symbols.begin()->first;
    if (!guess.empty()) graph_.facts.symbols[guess].role = "tokens";
  }
  return std::monostate();
}

// What the dump does not say: which inputs are weights. In this order:
// read as a rotary table: buffer · symbolic dims, or not floating: input · the leading dims of a
// batch, which is an integer input of rank 2 or more: input · returned and otherwise unread: buffer
// · else: weight.
void Converter::classify_inputs() {
  std::vector<Shape> batches;
  for (ValueId v : graph_.inputs())
    if (const Type* t = type_of(v); t && !is_float(t->dtype) && t->shape.size() >= 2)
      batches.push_back(t->shape);
  for (ValueId v : graph_.inputs()) {
    const Type* t = type_of(v);
    InputKind kind = InputKind::weight;
    if (rope_caches_.contains(v)) {
      kind = InputKind::buffer;
    } else if (!t) {
      kind = graph_.input_kind(v);
    } else {
      auto symbolic = [&](DimId d) { return !context_.dims.value(d); };
      auto leads = [&](const Shape& s) {
        return t->shape.size() >= s.size() && std::equal(s.begin(), s.end(), t->shape.begin());
      };
      if (!is_float(t->dtype) || std::any_of(t->shape.begin(), t->shape.end(), symbolic) ||
          std::any_of(batches.begin(), batches.end(), leads))
        kind = InputKind::input;
      else if (graph_.output_count(v) > 0 && graph_.use_count(v) == 0)
        kind = InputKind::buffer;
    }
    graph_.set_input_kind(v, kind);
  }
}

}  // namespace pw::fx
