// Connects the prover with verification: implements the interfaces of verify/prover.hpp, which does
// not depend on this folder.
#include "proof/prove.hpp"
#include "verify/prover.hpp"

namespace pw {
namespace {

/// Translates the facts of a graph's symbols: bounds become inequalities. A known divisor d becomes
/// n mod d ≤ 0, since a remainder is never negative.
void assume_facts(const Facts& facts, proof::Integers& integers) {
  for (const auto& [symbol, fact] : facts.symbols) {
    const proof::Ix n = integers.symbol(symbol);
    if (fact.min < 1) integers.free(symbol);
    if (fact.min != 1) integers.assume(integers.sub(n, integers.constant(fact.min)));
    integers.assume(integers.sub(integers.constant(fact.max), n));
    if (fact.multiple > 1)
      integers.assume(
          integers.sub(integers.constant(0), integers.mod(n, integers.constant(fact.multiple))));
  }
}

/// Proves rewrites of one run on the spot: both versions of a window are outputs of one graph. The
/// budget of IEEE queries is smaller than that of a rule, because a run has many windows.
class SolvedWindows : public WindowProver {
 public:
  WindowVerdict prove(Graph& window) override {
    proof::Integers integers(solver_);
    assume_facts(window.facts, integers);
    int ieee = 6;
    const proof::Comparison seen =
        proof::compare_pairs(window, window.outputs().size() / 2, integers, &ieee);
    WindowVerdict out{seen.verdict(), ""};
    for (const proof::PairVerdict& pair : seen.pairs)
      if (out.reason.empty()) out.reason = pair.obligation.empty() ? pair.element : pair.obligation;
    return out;
  }

 private:
  proof::Solver solver_;
};

/// The entry points that programs without the proof library lack.
constexpr ProofLab kLab = {
    [](const RuleSet& rules, const Env& params) -> std::unique_ptr<RuleProver> {
      return std::make_unique<proof::Prover>(rules, params);
    },
    []() -> std::unique_ptr<WindowProver> { return std::make_unique<SolvedWindows>(); },
    [] { return proof::Solver::present(); }};

}  // namespace

const ProofLab* proof_lab() { return &kLab; }

}  // namespace pw
