// A testable failure of a rewrite: wrong numbers, a failing command, a diagnostic, or a result that
// depends on the order of rewrites.
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
  /// Returns the kind: command if there is a command, diagnostic if there is a code, order if
  /// requested; otherwise numbers.
  [[nodiscard]] FailureKind kind() const;

  std::string command;  ///< see split_words; {before} and {after} are replaced by graph files
  double seconds = 60;  ///< limit of one run
  std::string code;     ///< a code such as PW1103 from the rewrite or the verifier of its result
  bool order = false;
  FuzzOptions orders;                ///< for `order`
  std::vector<std::int64_t> tokens;  ///< for numbers; empty: 1 and 5
  std::uint64_t seed = 1;            ///< for weights and inputs
};

/// Tests for the failure, and counts the tests. Numbers are compared by the criterion of `run
/// --check`, on the eager engine, with the world size that the collectives need.
class FailureCheck {
 public:
  /// Fails with PW1416 if the command cannot be split.
  static Result<FailureCheck> make(const LoadedRules& rules, const FailureRequest& request);

  /// Tests two graphs. Supports neither diagnostics of the rewrite nor order.
  Result<FailureVerdict> of_graphs(const Graph& before, const Graph& after);
  /// Runs the strategy on the graph and tests the result; `unclear` if the graph cannot be
  /// rewritten or run.
  Result<FailureVerdict> of_run(const Graph& graph, const Strategy& strategy);

  [[nodiscard]] FailureKind kind() const { return request_.kind(); }
  [[nodiscard]] const FailureRequest& request() const { return request_; }
  [[nodiscard]] std::size_t runs() const { return runs_; }
  /// Describes the failing output of the last graphs whose numbers failed.
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  FailureCheck(const LoadedRules& rules, const FailureRequest& request, UserCommand command)
      : rules_(&rules), request_(request), command_(std::move(command)) {}

  FailureVerdict numbers(const Graph& before, const Graph& after);
  Result<FailureVerdict> diagnostics(const Graph& graph, const Strategy& strategy);
  Result<FailureVerdict> orders(const Graph& graph, const Strategy& strategy);

  const LoadedRules* rules_;
  FailureRequest request_;
  UserCommand command_;
  std::size_t runs_ = 0;
  std::string reason_;
  /// Cache for the last tested graph, by step: bisection tests one graph repeatedly.
  std::uint64_t measured_ = 0;
  std::map<std::pair<std::int64_t, std::int64_t>, Yardstick> yardsticks_;  ///< by tokens and ranks
};

/// Returns the first failing output and the reason; nothing if all pass.
[[nodiscard]] std::optional<std::string> number_failure(const NumericReport& report);

}  // namespace pw
