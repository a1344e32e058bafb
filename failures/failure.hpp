// What is wrong with a rewrite, as something that can be asked of any graph: numbers that are
// apart, a command that fails, a diagnostic, or a result that depends on the order of rewrites.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "failures/user_command.hpp"
#include "pipeline/load.hpp"
#include "rewriter/analysis/orders/fuzz_order.hpp"
#include "verify/numeric.hpp"

namespace pw {

enum class FailureKind : std::uint8_t { numeric, command, diagnostic, order };
[[nodiscard]] std::string_view name(FailureKind kind);

struct FailureRequest {
  /// Of which kind: a command where there is one, a diagnostic where there is a code, order where
  /// it is asked for; else numbers.
  [[nodiscard]] FailureKind kind() const;

  std::string command;  ///< see split_words; {before} and {after} are graphs
  double seconds = 60;  ///< a run of it
  std::string code;     ///< PW1103: what the rewrite, or the verifier of its result, says
  bool order = false;
  FuzzOptions orders;                ///< of `order`
  std::vector<std::int64_t> tokens;  ///< of numbers; empty: 1 and 5
  std::uint64_t seed = 1;            ///< of weights and inputs
};

/// Asks, and counts how often. Numbers are compared by the criterion of `run --check`, on the eager
/// engine, with as many ranks as the collectives need.
class FailureCheck {
 public:
  /// PW1416 for a command that cannot be split.
  static Result<FailureCheck> make(const LoadedRules& rules, const FailureRequest& request);

  /// Of two graphs, without what was said while one was made of the other: not of order.
  Result<Saying> of_graphs(const Graph& before, const Graph& after);
  /// Runs the strategy on the graph. `unclear` where the graph cannot be rewritten, or run.
  Result<Saying> of_run(const Graph& graph, const Strategy& strategy);

  [[nodiscard]] FailureKind kind() const { return request_.kind(); }
  [[nodiscard]] const FailureRequest& request() const { return request_; }
  [[nodiscard]] std::size_t runs() const { return runs_; }
  /// Of the last graphs whose numbers failed: which output, and how.
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  FailureCheck(const LoadedRules& rules, const FailureRequest& request, UserCommand command)
      : rules_(&rules), request_(request), command_(std::move(command)) {}

  Saying numbers(const Graph& before, const Graph& after);
  Result<Saying> diagnostics(const Graph& graph, const Strategy& strategy);
  Result<Saying> orders(const Graph& graph, const Strategy& strategy);

  const LoadedRules* rules_;
  FailureRequest request_;
  UserCommand command_;
  std::size_t runs_ = 0;
  std::string reason_;
  /// Of the graph that was asked about last, by step: bisection asks of one again and again.
  std::uint64_t measured_ = 0;
  std::map<std::pair<std::int64_t, std::int64_t>, Yardstick> yardsticks_;  ///< by tokens, ranks
};

/// The first output that is beyond the criterion, and why; nothing where all pass.
[[nodiscard]] std::optional<std::string> number_failure(const NumericReport& report);

}  // namespace pw
