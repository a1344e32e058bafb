#include "rewriter/explain/match_reasons.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "rewriter/engine/apply.hpp"
#include "rewriter/explain/no_change.hpp"

namespace pw {
namespace {

std::optional<Reason> refusal(const Diagnostic& why, std::size_t at) {
  Reason out;
  out.code = why.code;
  out.span = why.span;
  out.at = at;
  out.help = why.help;
  // For types the codes are those of apply(), if an output would get another one, and PW03xx.
  const bool build = why.code.starts_with("PW"), type = why.code == "N05" || why.code == "N06";
  const std::string what = why.code.starts_with("PW03") || type ? "typed" : "built";
  out.message = build || type
                    ? fmt::format("its right side cannot be {} here: {}", what, why.message)
                    : why.message;
  if (!why.label.empty()) out.message += ": " + why.label;
  return out;
}

}  // namespace

std::optional<Reason> refusal_of(Graph& scratch, const RuleLayout& layout, const Match& match,
                                 bool barriers, std::size_t front) {
  const Result<bool> differs = would_change(scratch, layout, match, barriers);
  if (!differs) return refusal(differs.error().front(), front);
  if (*differs) return std::nullopt;
  Reason out;
  out.code = kNoChange;
  out.at = front;
  out.message = "it would change nothing: its result equals what it replaces";
  out.help = "a guard, `where …`, can rule such matches out";
  return out;
}

std::optional<Reason> reason_left(const Strategy& leaf, StopReason stop, const SeenMatch& seen,
                                  const std::string& pass, std::size_t step, bool late) {
  Reason out;
  out.at = seen.front;
  const std::string rewrites = fmt::format("{} rewrite{}", step, step == 1 ? "" : "s");
  if (stop == StopReason::fuel) {
    out.code = "N12";
    out.message = fmt::format("pass `{}` had used up its fuel after {}", pass, rewrites);
  } else if (stop == StopReason::limit || stop == StopReason::interrupted) {
    out.code = "N12";
    out.message = fmt::format("pass `{}` was stopped after {}", pass, rewrites);
    out.help = "check whether a rule builds what it matches";
  } else if (stop == StopReason::cycle) {
    out.code = "N12";
    out.message = fmt::format(
        "pass `{}` was stopped after {}: its rules rewrite each other's results endlessly", pass,
        rewrites);
    out.help = "make one of the rules stricter, or remove one from the pass";
  } else if (leaf.kind == ast::Strategy::Kind::saturate) {
    out.code = "N16";
    out.message = "`saturate` keeps the cheapest graph, which does not contain it";
  } else if (late &&
             (leaf.kind == ast::Strategy::Kind::once || leaf.kind == ast::Strategy::Kind::walk)) {
    out.code = "N11";
    out.message =
        fmt::format("it appeared in pass `{}`, in a `{}`, which {}", pass,
                    leaf.kind == ast::Strategy::Kind::once ? "once" : "walk",
                    leaf.kind == ast::Strategy::Kind::once ? "does not rewrite its own results"
                                                           : "never goes back");
    out.help = "`greedy` continues until no rule matches";
  } else {
    return std::nullopt;
  }
  return out;
}

Reason reason_taken(const SeenMatch& seen, const RewriteStep& step, const MatchEvent& event,
                    bool together, bool above) {
  const auto in = [](const std::vector<NodeId>& nodes, NodeId n) {
    return std::find(nodes.begin(), nodes.end(), n) != nodes.end();
  };
  const auto find = [&](bool matched) {
    return static_cast<std::size_t>(std::find_if(seen.nodes.begin(), seen.nodes.end(),
                                                 [&](const SeenNode& node) {
                                                   return in(event.erased, node.id) &&
                                                          (!matched || in(event.matched, node.id));
                                                 }) -
                                    seen.nodes.begin());
  };
  Reason out;
  out.at = find(true);
  const bool consumed = out.at < seen.nodes.size();
  if (!consumed) out.at = find(false);
  out.code = above ? "N16" : "N10";
  out.taken_by = step;
  out.message = above ? fmt::format("{} was taken by {}, which is declared over it",
                                    named(seen.nodes[out.at]), describe(step))
                      : fmt::format("{} was {} by {}", named(seen.nodes[out.at]),
                                    consumed ? "consumed" : "left without a user", describe(step));
  if (!together)
    out.help = fmt::format(
        "give `{}` a pass before `{}`, or put both rules in one pass and declare which goes first "
        "with `over`",
        seen.base_name, step.pass);
  return out;
}

Reason reason_out_of_rounds(const SeenMatch& seen, const std::string& pass) {
  Reason out;
  out.code = "N12";
  out.at = seen.front;
  out.message = fmt::format("pass `{}` had used up its fuel, the rounds of `repeat`", pass);
  return out;
}

Reason reason_unreached(const SeenMatch& seen, const std::string& left_out) {
  Reason out;
  out.code = "N11";
  out.at = seen.front;
  out.message =
      seen.since.empty()
          ? std::string("no pass that has the rule ran")
          : fmt::format("it appeared in pass `{}`, and no later pass has the rule", seen.since);
  if (!left_out.empty())
    out.message +=
        fmt::format("; `{}`, which has it, was skipped: its `when` is not true", left_out);
  return out;
}

}  // namespace pw
