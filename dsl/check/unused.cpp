#include <set>

#include "dsl/check/check.hpp"
#include "dsl/syntax/suggest.hpp"
#include "dsl/syntax/walk.hpp"

namespace pw {
namespace {

bool unread(const Name& name) {
  return name.left <= 1 && name.guards == 0 && name.right == 0 && !name.rebound && !name.dropped;
}

}  // namespace

void check_dropped(const CheckedRule& checked, Diagnostics& out) {
  for (const auto& [text, name] : checked.names.names) {
    if (!name.captured || !unread(name)) continue;
    out.push_back(error_at(name.span, "PW0281",
                           "attribute " + in_ticks(text) + " is captured and then dropped",
                           "write it on the right, or `_ = " + text + "` to ignore it"));
  }
}

void check_unused(const CheckedRule& checked, Diagnostics& out) {
  for (const auto& [text, name] : checked.names.names) {
    if (name.kind != NameKind::value || name.captured || name.typed || !unread(name)) continue;
    out.push_back(warning_at(name.span, "PW0282", in_ticks(text) + " is never used",
                             "write `_` to ignore it"));
  }
  std::set<std::string_view> read;
  for (const Statement& s : checked.ast.replacement) {
    visit_operand(s.value, [&](const Occurrence& o) { read.insert(o.name); });
  }
  for (const Statement& s : checked.ast.replacement) {
    for (const Binder& binder : s.binders) {
      if (binder.name == "_" || read.contains(binder.name) ||
          checked.names.find(binder.name) != nullptr)
        continue;
      out.push_back(warning_at(binder.span, "PW0283",
                               in_ticks(binder.name) + " is computed here and never used",
                               "bind a name of the pattern to make it an output, or write `_`"));
    }
  }
}

}  // namespace pw
