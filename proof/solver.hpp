// The only interface to an SMT solver. Without a solver every query returns `unknown`, which is
// never a proof.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/dtype.hpp"
#include "proof/function.hpp"

namespace pw::proof {

/// An integer term as a sum of products of unknowns.
/// Unknowns are integers without bounds; bounds are passed as facts.
struct SolverTerm {
  struct Product {
    std::int64_t factor = 1;
    std::vector<std::string> unknowns;
  };
  std::vector<Product> products;
};

/// One node of a scalar expression over floats and booleans. Operands precede their users in
/// `nodes`.
struct FloatNode {
  enum class Kind : std::uint8_t { input, number, call } kind = Kind::number;
  Function function = Function::none;  ///< for a call
  DType dtype = DType::f32;
  double number = 0;
  std::string name;  ///< for an input
  std::vector<std::size_t> operands;
};
/// A query: whether two nodes of one expression graph have equal bits for all inputs.
struct FloatQuestion {
  std::vector<FloatNode> nodes;
  std::size_t left = 0, right = 0;
};
struct FloatAnswer {
  enum class Kind : std::uint8_t {
    same,     ///< equal for all inputs
    special,  ///< equal except for NaN, infinity, or the sign of a zero
    differs,  ///< differs for finite inputs
    unknown,
  } kind = Kind::unknown;
  bool nan = false, infinity = false, zero_sign = false;     ///< for special
  std::vector<std::pair<std::string, std::string>> element;  ///< inputs for which they differ
  std::string left, right;
  bool unanswered = false;  ///< unknown because a limit was reached
};

/// Loads the solver on first use and memoizes integer queries, which repeat across the cases of a
/// rule.
class Solver {
 public:
  Solver();
  ~Solver();
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;
  [[nodiscard]] static bool present();
  /// Returns true if `goal` ≥ 0 follows from all `facts` being ≥ 0; false means unknown.
  bool implies(const std::vector<SolverTerm>& facts, const SolverTerm& goal);
  /// Compares two expressions bit for bit over all inputs; any NaN equals any other.
  FloatAnswer same_bits(const FloatQuestion& question);
  /// Number of queries, and of those that exceeded the limit.
  std::size_t queries = 0, unanswered = 0;

 private:
  std::map<std::string, bool> implied_;  ///< by the query's text
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pw::proof
