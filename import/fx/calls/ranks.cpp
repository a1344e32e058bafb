#include "import/fx/calls/ranks.hpp"

#include <algorithm>
#include <array>

#include "import/fx/calls/apply.hpp"
#include "import/fx/calls/foreign.hpp"

namespace pw::fx {
namespace {

constexpr std::array<std::string_view, 2> kCounts{"world_size", "group_size"};
constexpr std::array<std::string_view, 1> kGroups{"group_name"};

/// Returns the value of a parameter with one of these names, or null.
template <std::size_t N>
const Expr* argument(const Expr& call, const Mapping& mapping,
                     const std::array<std::string_view, N>& names) {
  const auto is_named = [&](std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  for (std::size_t i = 0; i < call.keywords.size(); ++i)
    if (is_named(call.keywords[i])) return &call.args[call.positional() + i];
  for (std::size_t i = 0; i < std::min(call.positional(), mapping.parameters.size()); ++i) {
    const auto& known = mapping.parameters[i].names;
    if (std::ranges::any_of(known, is_named)) return &call.args[i];
  }
  return nullptr;
}

}  // namespace

void RankGroups::find(const Expr& e) {
  for (const Expr& arg : e.args) find(arg);
  constexpr std::string_view kOps = "torch.ops.";
  if (e.kind != Expr::Kind::call || !e.text.starts_with(kOps)) return;
  const std::string_view target = std::string_view(e.text).substr(kOps.size());
  const std::vector<Mapping>* mappings = mappings_of(table_, context_, target);
  if (!mappings) return;
  for (const Mapping& mapping : *mappings) {
    const Expr *count = argument(e, mapping, kCounts), *group = argument(e, mapping, kGroups);
    if (count && group && count->kind == Expr::Kind::integer && group->kind == Expr::Kind::string)
      groups_.emplace(group->text, count->integer);
  }
}

Applied RankGroups::shard_rows(const KnownCall& call) {
  std::optional<ValueId> x = tensor_of(call.find("x"));
  if (!x) return kNotThis;
  if (groups_.empty())
    for (const Statement& s : function_.statements) find(s.value);
  if (groups_.size() != 1 || groups_.begin()->second < 1)
    return fail(call.site.span, "PW0519",
                groups_.empty()
                    ? "no collective of the graph determines how many ranks share the rows"
                    : "the graph's collectives have several groups of ranks");
  const auto& [group, world] = *groups_.begin();
  return call.emit(call.bound.mapping->op, {*x}, {{"group", group}, {"world", world}});
}

}  // namespace pw::fx
