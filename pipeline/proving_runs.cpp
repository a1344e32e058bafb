// Exports prove_run and run_proof_table.
#include "pipeline/proving_runs.hpp"

#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pw {

std::string RunProof::print() const {
  std::vector<std::string> left;
  for (const Fired& fired : rules)
    if (!fired.proof.proof.complete())
      left.push_back(fmt::format("{} ({})", fired.proof.proof.rule, fired.rewrites));
  std::string text = fmt::format("{} of {} rewrites are proved", proved, rewrites);
  if (!left.empty()) text += fmt::format("; left: {}", fmt::join(left, ", "));
  return text;
}

RunProof prove_run(const std::vector<const RewriteReport*>& reports, const LoadedRules& rules,
                   const Log& log) {
  std::map<RuleId, std::size_t> fired;
  for (const RewriteReport* report : reports)
    for (RuleId rule : report->journal.fired(rules.set)) ++fired[rule];
  RuleProver prover(rules, {.only = {}, .samples = false, .keep = true});
  RunProof out;
  for (const auto& [rule, rewrites] : fired) {
    log.progress({"proving", out.rules.size(), fired.size(), "rules"});
    out.rules.push_back({rewrites, prover.prove(rule)});
    out.rewrites += rewrites;
    if (out.rules.back().proof.proof.complete()) out.proved += rewrites;
  }
  return out;
}

Table run_proof_table(const RunProof& proof) {
  Table table({"rule", "rewrites", "verdict", "known by", "left to show"});
  for (const RunProof::Fired& fired : proof.rules) {
    const proof::Proof& p = fired.proof.proof;
    const bool proved = p.complete();
    table.add({p.rule, fired.rewrites, std::string(name(p.verdict)),
               proved ? Cell(name(KnownBy::proof)) : null_cell(),
               proved ? std::string() : p.proved() ? "not covered: " + p.uncovered : p.reason});
  }
  return table;
}

}  // namespace pw
