#include <set>

#include "base/try.hpp"
#include "splitter/splitter.hpp"

namespace pw {
namespace {

/// Returns true if every guard of a `split … when …` clause holds.
Result<bool> holds(Context& context, const std::vector<Expr>& guards, const Env& params) {
  for (const Expr& guard : guards) {
    std::string why;
    auto truth = PW_TRY(evaluate_guard(context, nullptr, guard, params, Facts{}, &why));
    if (truth == Truth::unknown)
      return fail(guard.span, "PW0701", "it is unknown whether to split here: " + why,
                  "a split condition may read only params");
    if (truth == Truth::no) return false;
  }
  return true;
}

/// An op of a dump carries its overload, `vllm.mamba_mixer2.default`; the list has the name
/// without.
bool packet_splits(const Context& context, const Op& op) {
  if (!op.imported) return false;
  const OpId packet = context.ops.find(op.name.substr(0, op.name.rfind('.')));
  return packet.valid() && context.ops[packet].traits.splitting;
}

}  // namespace

Result<std::vector<OpId>> splitting_ops(const ContextPtr& context, const RuleSet* rules,
                                        const Env& params, const SplitOptions& options) {
  std::set<OpId> ids;
  for (std::size_t i = 0; i < context->ops.size(); ++i) {
    const Op& op = context->ops[OpId(i)];
    if (op.traits.splitting || packet_splits(*context, op)) ids.insert(OpId(i));
  }
  if (rules != nullptr) {
    for (const SplitRule& rule : rules->splits) {
      for (const SplitRule::At& at : rule.at) {
        auto applies = PW_TRY(holds(*context, at.when, params));
        if (applies) ids.insert(at.ops.begin(), at.ops.end());
      }
    }
  }
  for (const std::string& name : options.at) {
    const OpId id = context->ops.find(name);
    if (!id.valid()) {
      const std::string near = nearest(name, context->ops.names());
      return fail(error_in("split at " + name, "PW0702", "unknown op `" + name + "`",
                           near.empty() ? "" : "did you mean `" + near + "`?"));
    }
    ids.insert(id);
  }
  return std::vector<OpId>(ids.begin(), ids.end());
}

}  // namespace pw
