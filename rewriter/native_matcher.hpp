// A match program as machine code: its text in C++, the compiler that a caller lends, and the
// struct through which the code and the engine speak. The code gives each node the matches that
// `execute` in machine.hpp gives it, in the same order and with the same count of steps; the first
// gates of simple rules it asks by itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/diagnostic.hpp"
#include "graph/graph_arrays.hpp"
#include "rewriter/match_program.hpp"
#include "rewriter/verdicts.hpp"

namespace pw {

/// What the first gates say of a structural match.
enum class Gate : std::uint8_t { unasked, unknown, no, yes };

/// Its members are those of `struct State` in the text.
struct NativeState {
  GraphArrays graph;
  // Registers of the rule that is accepted.
  NodeId* nodes = nullptr;
  ValueId* values = nullptr;
  std::uint8_t* swaps = nullptr;
  void* engine = nullptr;
  /// Whether other ways that differ in exchanged operands alone are left out.
  std::uint32_t (*accept)(void* engine, std::uint32_t rule, std::uint32_t anchor,
                          std::uint32_t gate) = nullptr;
  Guess* const* guesses = nullptr;   ///< by rule
  std::uint64_t* counted = nullptr;  ///< by rule: matches that are counted, and not given
  /// After an anchor where `stopped` or `found` is set, which it resets. Whether to stop there.
  std::uint32_t (*finish)(void* engine, std::uint32_t anchor) = nullptr;
  std::uint64_t steps = 0;           ///< at an anchor
  std::uint64_t until = 0;           ///< the last label to go to
  std::uint64_t asked = 0;           ///< nodes, so far
  std::uint32_t stopped = kRunning;  ///< the rule that was tried when they were spent
  /// Of a walk: seeding skips rules that begin at the first node, a sweep the others.
  enum Phase : std::uint8_t { any, seeding, sweeping };
  Phase phase = any;
  std::uint8_t counting = 0, careful = 0, barriers = 0;
  std::uint8_t found = 0;  ///< what accept() keeps to the end of the anchor
  static constexpr std::uint32_t kRunning = 0xffffffff;
};

/// Machine code of one program.
struct NativeMatcher {
  /// Tries the rules at nodes in order, from `first` on: at `count` of them at most, none of them
  /// behind `until`, until finish() says so. Returns the node behind them.
  using Run = std::uint32_t (*)(NativeState*, std::uint32_t first, std::uint64_t count);
  std::shared_ptr<const void> held;  ///< the code lives as long as this
  Run run = nullptr;
  static constexpr const char* kRun = "pw_match";
};

class MatcherCompiler {
 public:
  virtual ~MatcherCompiler() = default;
  /// Of a text by native_text(); the same text more than once costs one compilation.
  virtual Result<NativeMatcher> compile(const std::string& text) = 0;
};

/// What the gates of one rule look at, by registers; a register past the program's is never bound.
struct NativeGates {
  bool asked = false;         ///< otherwise the engine decides
  bool only_counted = false;  ///< where matches are counted, a yes is all that is to be said
  bool permutable = false, always_convex = false;
  std::vector<std::uint16_t> nodes, values;  ///< the key of its verdicts
  std::vector<std::uint16_t> own, outputs, reads;
  std::vector<std::pair<std::uint16_t, std::uint32_t>> consumed;
};

/// C++ without includes. Nothing of a rule but numbers goes into it.
std::string native_text(const MatchProgram& program, const std::vector<NativeGates>& gates,
                        OpId constant);

}  // namespace pw
