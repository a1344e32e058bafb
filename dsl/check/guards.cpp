#include <algorithm>

#include "dsl/check/check.hpp"
#include "dsl/check/torch_spelling.hpp"
#include "dsl/syntax/suggest.hpp"
#include "dsl/syntax/walk.hpp"

namespace pw {
namespace {

void check_function(const CheckedRule& checked, const Occurrence& o, Diagnostics& out) {
  const auto& known = known_functions();
  if (std::find(known.begin(), known.end(), o.name) != known.end()) return;
  if (checked.program.externs.contains(o.name)) return;
  std::string help = torch_guard_spelling(o.name);
  out.push_back(error_at(o.span, "PW0271", "unknown function " + in_ticks(o.name),
                         help.empty() ? did_you_mean(o.name, known) : std::move(help)));
}

/// Reports `x.ndim`: a guard reads `x.shape` and `x.dtype` of a value only.
void check_field(const Name& name, const Occurrence& o, Diagnostics& out) {
  if (o.expr == nullptr || o.expr->kind != Expr::Kind::path || name.kind != NameKind::value) return;
  const std::string& text = o.expr->text;
  if (text.size() <= o.name.size() || text.ends_with(".shape") || text.ends_with(".dtype")) return;
  std::string help = torch_guard_spelling(text);
  out.push_back(error_at(o.span, "PW0270", in_ticks(text) + " is not known",
                         help.empty()
                             ? "guards may read " + in_ticks(std::string(o.name) + ".shape") +
                                   " and " + in_ticks(std::string(o.name) + ".dtype")
                             : std::move(help)));
}

std::vector<std::string> readable(const CheckedRule& checked) {
  std::vector<std::string> names(checked.outer.params.begin(), checked.outer.params.end());
  for (const auto& [name, info] : checked.names.names) names.push_back(name);
  return names;
}

}  // namespace

const std::vector<std::string>& known_functions() {
  static const std::vector<std::string> kFunctions{
      "size", "rank", "count", "min", "max", "replicated", "weight", "constant", "users"};
  return kFunctions;
}

void check_guards(const CheckedRule& checked, Diagnostics& out) {
  for (const ast::Clause& clause : checked.ast.body.clauses) {
    for (const Expr& guard : clause.guards) {
      visit_scalar(guard, Place::guard, [&](const Occurrence& o) {
        if (o.place == Place::function) return check_function(checked, o, out);
        if (const Name* name = checked.names.find(o.name)) return check_field(*name, o, out);
        if (checked.outer.params.contains(o.name) || dtype_named(o.name)) return;
        std::string help = torch_guard_spelling(o.expr ? o.expr->text : o.name);
        out.push_back(error_at(
            o.span, "PW0270", in_ticks(o.name) + " is not bound by the pattern",
            help.empty() ? did_you_mean_name(o.name, readable(checked),
                                             "guards may read params and what the pattern binds")
                         : std::move(help)));
      });
    }
  }
}

}  // namespace pw
