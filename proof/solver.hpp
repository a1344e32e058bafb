// The one seam to an SMT solver. Without one every question is answered with `unknown`, which is
// never a proof.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/dtype.hpp"

namespace pw::proof {

/// A whole-number term as a sum of products of unknowns.
struct SolverTerm {
  struct Product {
    std::int64_t factor = 1;
    std::vector<std::string> unknowns;
  };
  std::vector<Product> products;
};

/// A scalar expression over floats and booleans, in prefix order of `nodes`: operands come first.
struct FloatNode {
  std::string op;  ///< "input", "number", or a primitive op
  DType dtype = DType::f32;
  double number = 0;
  std::string name;  ///< of an input
  std::vector<std::size_t> operands;
};
struct FloatQuestion {
  std::vector<FloatNode> nodes;
  std::size_t left = 0, right = 0;
};
struct FloatAnswer {
  enum class Kind : std::uint8_t {
    same,     ///< for all inputs
    special,  ///< but for NaN, infinity or the sign of a zero
    differs,  ///< for finite inputs
    unknown,
  } kind = Kind::unknown;
  bool nan = false, infinity = false, zero_sign = false;     ///< of special
  std::vector<std::pair<std::string, std::string>> element;  ///< inputs where they differ
  std::string left, right;
};

class Solver {
 public:
  Solver();
  ~Solver();
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;
  [[nodiscard]] static bool present();
  /// Whether `goal` is at least 0 wherever all `facts` are. False is no knowledge.
  bool implies(const std::vector<SolverTerm>& facts, const SolverTerm& goal);
  /// Whether two expressions give the same bits for all inputs; any NaN equals any other.
  FloatAnswer same_bits(const FloatQuestion& question);
  /// Questions asked, and those without an answer within the limit.
  std::size_t asked = 0, unanswered = 0;

 private:
  bool ask(const std::vector<SolverTerm>& facts, const SolverTerm& goal);
  std::map<std::string, bool> implied_;  ///< by the question as text
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pw::proof
