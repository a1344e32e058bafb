// Builds both sides on symbolic instances of the pattern's variables and compares the types of the
// outputs. A list has two elements, or as many as a guard requires. Only a proved change is an
// error: sides that cannot be built, and unknown types, are not. If the types would be equal for
// one dtype of a variable, the help shows that guard. If they are equal only for one value of a
// pattern's dim, and no guard requires it, a warning shows the guard.
#include <algorithm>

#include "dsl/build/stand_ins.hpp"
#include "dsl/build/unroll.hpp"
#include "dsl/check/check.hpp"
#include "dsl/syntax/suggest.hpp"

namespace pw {
namespace {

constexpr std::string_view kKeepsItsType =
    "cast or reshape the new value to the type of the output";

class OutputTypes {
 public:
  OutputTypes(const CheckedRule& checked, const Rule& rule, std::size_t length)
      : stand_ins_(checked, rule, length) {}

  /// Compares the sides; returns false if a guard refuses lists of this length, or if unknown types
  /// prevent it.
  bool run(Diagnostics& out, const DTypeChoice& dtypes = {}, const DimChoice& dims = {}) {
    if (!stand_ins_.build_left(dtypes, dims) || stand_ins_.refuted()) return false;
    Env before = stand_ins_.env;
    if (!build_right()) return false;
    for (const std::string& name : stand_ins_.checked.rule->outputs) compare(name, before, out);
    return true;
  }

  /// Two dims of an output that are neither proved equal nor proved different.
  struct OpenDims {
    std::string output;
    DimId was, is;
  };
  [[nodiscard]] const std::vector<OpenDims>& open() const { return open_; }
  [[nodiscard]] Span binder(const std::string& name) const {
    for (const Statement& s : stand_ins_.rule.replacement) {
      for (const Binder& b : s.binders) {
        if (b.name == name) return b.span;
      }
    }
    return stand_ins_.rule.name_span;
  }

 private:
  bool build_right() {
    BuildOptions options;
    options.open_attributes = stand_ins_.open_attributes;
    return build_statements(stand_ins_.graph, stand_ins_.rule.replacement, stand_ins_.env, options)
        .has_value();
  }

  void compare(const std::string& name, const Env& before, Diagnostics& out) {
    const std::vector<ValueId> were = values_of(before, name),
                               are = values_of(stand_ins_.env, name);
    for (std::size_t i = 0; i < were.size() && i < are.size(); ++i) {
      const TypeId was = stand_ins_.graph.type(were[i]), is = stand_ins_.graph.type(are[i]);
      if (was == Types::unknown() || is == Types::unknown()) continue;
      if (!differ(was, is)) {
        note_open(name, was, is);
        continue;
      }
      Diagnostic d =
          error_at(binder(name), "PW0287", "the type of output " + in_ticks(name) + " changes",
                   std::string(kKeepsItsType));
      d.label = "would be " + stand_ins_.context.types.print(is);
      d.secondary.push_back(
          {stand_ins_.checked.rule->values[stand_ins_.checked.rule->value_named(name)].span,
           "is " + stand_ins_.context.types.print(was)});
      out.push_back(std::move(d));
      return;
    }
  }

  /// Returns the value, or the elements of a list.
  static std::vector<ValueId> values_of(const Env& env, const std::string& name) {
    const auto it = env.find(name);
    if (it == env.end()) return {};
    if (const auto* list = std::get_if<std::vector<ValueId>>(&it->second)) return *list;
    const auto* value = std::get_if<ValueId>(&it->second);
    if (value == nullptr || !value->valid()) return {};
    return {*value};
  }

  bool differ(TypeId a, TypeId b) {
    if (a == b) return false;
    const Type x = stand_ins_.context.types[a], y = stand_ins_.context.types[b];
    if (x.dtype != y.dtype || x.shape.size() != y.shape.size()) return true;
    for (std::size_t i = 0; i < x.shape.size(); ++i) {
      if (stand_ins_.context.dims.prove(Compare::eq, x.shape[i], y.shape[i],
                                        stand_ins_.graph.facts) == Truth::no)
        return true;
    }
    return false;
  }

  void note_open(const std::string& name, TypeId a, TypeId b) {
    const Shape &was = stand_ins_.context.types[a].shape, &is = stand_ins_.context.types[b].shape;
    for (std::size_t i = 0; i < was.size(); ++i)
      if (stand_ins_.context.dims.prove(Compare::eq, was[i], is[i], stand_ins_.graph.facts) !=
          Truth::yes)
        open_.push_back({name, was[i], is[i]});
  }

  StandIns stand_ins_;
  std::vector<OpenDims> open_;
};

/// Returns `T == f32` if the outputs keep their types under it; empty if no dtype of one variable
/// suffices.
std::string missing_guard(const CheckedRule& checked, const Rule& rule, std::size_t length) {
  for (const auto& [text, info] : checked.names.names) {
    if (info.kind != NameKind::dtype) continue;
    for (int i = 0; i < kDTypeCount; ++i) {
      const auto dtype = static_cast<DType>(i);
      Diagnostics found;
      if (OutputTypes(checked, rule, length).run(found, {{text, dtype}}) && found.empty())
        return text + " == " + std::string(name(dtype));
    }
  }
  return {};
}

/// Returns true for a dim of the pattern alone that no guard restricts.
bool is_free(const CheckedRule& checked, DimId dim) {
  const Dims& dims = checked.shared->dims;
  if (!dims.is_symbol(dim)) return false;
  const Name* name = checked.names.find(dims.print(dim));
  return name != nullptr && name->kind == NameKind::dim && !name->list && name->guards == 0;
}

/// Returns true if a guard may restrict dims through the value that has them.
bool guards_read_values(const CheckedRule& checked) {
  return std::any_of(checked.names.names.begin(), checked.names.names.end(), [](const auto& entry) {
    return entry.second.kind == NameKind::value && entry.second.guards > 0;
  });
}

/// Returns true if the rule can express the dim by its own dims and numbers.
bool can_be_written(const CheckedRule& checked, DimId dim) {
  const std::vector<std::string> symbols = checked.shared->dims.symbols(dim);
  return std::all_of(symbols.begin(), symbols.end(), [&](const std::string& symbol) {
    const Name* name = checked.names.find(symbol);
    return name != nullptr && name->kind == NameKind::dim && !name->list && name->guards == 0;
  });
}

/// Warns if both sides build, but an unrestricted dim would need one value: the rule is never
/// applied for others.
void warn_of_dims(const CheckedRule& checked, const Rule& rule, std::size_t length,
                  const OutputTypes& compared, Diagnostics& out) {
  if (guards_read_values(checked)) return;
  Dims& dims = checked.shared->dims;
  DimChoice chosen;
  std::string guard;
  for (const OutputTypes::OpenDims& open : compared.open()) {
    const DimId was = dims.substitute(open.was, chosen), is = dims.substitute(open.is, chosen);
    if (was == is) continue;
    const bool left = is_free(checked, was);
    const DimId free = left ? was : is, other = left ? is : was;
    if (!is_free(checked, free) || !can_be_written(checked, other)) return;
    const std::string name = dims.print(free);
    const std::vector<std::string> symbols = dims.symbols(other);
    if (std::find(symbols.begin(), symbols.end(), name) != symbols.end()) return;
    chosen.emplace(name, other);
    guard += (guard.empty() ? "" : ", ") + name + " == " + dims.print(other);
  }
  Diagnostics none;
  OutputTypes under_it(checked, rule, length);
  if (!under_it.run(none, {}, chosen) || !none.empty() || !under_it.open().empty()) return;
  const std::string& output = compared.open().front().output;
  out.push_back(warning_at(
      compared.binder(output), "PW0297",
      "output " + in_ticks(output) + " keeps its type only where " + guard,
      "add the guard " + in_ticks("where " + guard) + ": no other match can be applied"));
}

/// Compares the sides with lists of this length; returns false if they could not be compared.
bool compare_outputs(const CheckedRule& checked, const Rule& rule, std::size_t length,
                     Diagnostics& out) {
  Diagnostics found;
  OutputTypes compared(checked, rule, length);
  if (!compared.run(found)) return false;
  if (found.empty() && !compared.open().empty()) warn_of_dims(checked, rule, length, compared, out);
  if (!found.empty())
    if (const std::string guard = missing_guard(checked, rule, length); !guard.empty())
      for (Diagnostic& d : found)
        d.help = "add the guard " + in_ticks("where " + guard) + ", or " +
                 std::string(kKeepsItsType.substr(kKeepsItsType.find("cast")));
  append(out, std::move(found));
  return true;
}

}  // namespace

void check_output_types(const CheckedRule& checked, Diagnostics& out) {
  const Rule& rule = *checked.rule;
  if (rule.lists.empty() && rule.members.empty()) {
    compare_outputs(checked, rule, 1, out);
    return;
  }
  for (const std::size_t length : {2, 3, 4, 1})
    if (compare_outputs(checked, unroll(rule, length), length, out)) return;
}

}  // namespace pw
