// Exports check_output_types: builds both sides on symbolic instances of the pattern's variables
// and compares the types of the outputs; a list has two elements, or as many as a guard asks for.
// What cannot be built or is not known is no error: only a proved change is. Where the types would
// be equal for one dtype of a variable, the help has that guard.
#include "dsl/check.hpp"
#include "dsl/stand_ins.hpp"
#include "dsl/suggest.hpp"
#include "dsl/unroll.hpp"

namespace pw {
namespace {

constexpr std::string_view kKeepsItsType =
    "an output keeps its type; cast or reshape the new value";

class OutputTypes {
 public:
  OutputTypes(const CheckedRule& checked, const Rule& rule, std::size_t length)
      : stand_ins_(checked, rule, length) {}

  /// Whether the sides could be compared; false where a guard refuses lists of this length, or what
  /// is not known is in the way.
  bool run(Diagnostics& out, const DTypeChoice& dtypes = {}) {
    if (!stand_ins_.build_left(dtypes) || stand_ins_.refuted()) return false;
    Env before = stand_ins_.env;
    if (!build_right()) return false;
    for (const std::string& name : stand_ins_.checked.rule->outputs) compare(name, before, out);
    return true;
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
      if (was == Types::unknown() || is == Types::unknown() || !differ(was, is)) continue;
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

  /// Of a list, its elements.
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

  [[nodiscard]] Span binder(const std::string& name) const {
    for (const Statement& s : stand_ins_.rule.replacement) {
      for (const Binder& b : s.binders) {
        if (b.name == name) return b.span;
      }
    }
    return stand_ins_.rule.name_span;
  }

  StandIns stand_ins_;
};

/// `T == f32`, where the outputs keep their types then; empty where no dtype of one variable is
/// enough.
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

/// Whether the sides could be compared with lists of this length.
bool compare_outputs(const CheckedRule& checked, const Rule& rule, std::size_t length,
                     Diagnostics& out) {
  Diagnostics found;
  if (!OutputTypes(checked, rule, length).run(found)) return false;
  if (!found.empty())
    if (const std::string guard = missing_guard(checked, rule, length); !guard.empty())
      for (Diagnostic& d : found)
        d.help = "write the guard " + in_ticks("where " + guard) + ", or " +
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
