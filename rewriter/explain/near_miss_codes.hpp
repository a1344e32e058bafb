// Reasons why a rule did not match: the closed list of codes. A code is a row here, and is used
// where it is detected; counts, `pwr explain CODE` and the range in texts derive from the table.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace pw {

struct NearMissCode {
  std::string_view code;
  std::string_view meaning;  ///< "op: the node has …"
  std::string_view help;     ///< what to do about it; may be empty
};

/// Table of N01, N02, …: the number of a code is its position, from 1.
inline constexpr std::array<NearMissCode, 17> kNearMissCodes{{
    {"N01", "op: the node has a different op than the pattern requires",
     "alternatives of a shared pattern can accept another form"},
    {"N02", "arity: the node has a different number of operands or results",
     "`name?` takes an operand that may be none; `xs...` takes the rest"},
    {"N03",
     "operand order: it would match with its operands swapped, but the op is not commutative",
     "declare the op `commutative` if it is, or write the other order too"},
    {"N04",
     "attribute: an attribute has a different value; one that the pattern does not write must have "
     "its default",
     "write the value that the node has, or bind the attribute, `{name}`, if the right side holds "
     "for every value"},
    {"N05", "dtype: an element type differs",
     "give the types different variables, or match the cast too"},
    {"N06", "shape: a shape does not fit, or cannot be proved to fit; the known facts are printed",
     "state the fact (`symbol n in 1..8192 by 8`), or write `assume` for a condition of the token "
     "range"},
    {"N07", "variable: one name would have two values", "use two names if the two may differ"},
    {"N08",
     "extra users: a value that the rule consumes is used outside the match; rebind it on the "
     "right, or put it in `given { }`",
     "rebind it on the right (`y, q = …`), or put its node in `given { }`"},
    {"N09", "guard: a `where` is false, or an `unless` matches; its parts are printed",
     "loosen it only if the right side holds without it"},
    {"N10", "consumed: another rule, or a built-in pass, took the node first",
     "run the rule earlier, or declare which rule goes first with `over`"},
    {"N11",
     "absent: the rule is not in this pipeline, no pass with it ran while the match existed, or "
     "its family has no variant",
     "add the rule to a pass that runs while the match exists"},
    {"N12", "fuel: the pass had used up its fuel, or was stopped", "raise `fuel`"},
    {"N13", "cycle: a path leads from an output back to an input; it is printed",
     "what is read must not depend on what is replaced"},
    {"N14", "barrier: a mutation or an alias is between the nodes",
     "the op writes memory that the match reads or writes"},
    {"N15", "boundary: the match would cross a piece boundary",
     "a match must be within one piece; split elsewhere, or rewrite first"},
    {"N16", "precedence: an `over` rule or a lower cost won", ""},
    {"N17",
     "undone: the strategy that applied it was rolled back, because an `ensures` did not hold",
     "rewrite what the `ensures` counts in the same strategy, or require less"},
}};

/// Returns the entry, or null for another word.
[[nodiscard]] constexpr const NearMissCode* near_miss_code(std::string_view code) {
  for (const NearMissCode& row : kNearMissCodes)
    if (row.code == code) return &row;
  return nullptr;
}
/// Returns the position of a code in the table: 0 is N01.
[[nodiscard]] constexpr std::size_t place_of(std::string_view code) {
  return static_cast<std::size_t>((code[1] - '0') * 10 + (code[2] - '0') - 1);
}

/// Returns "N01 … N17", for texts.
[[nodiscard]] inline std::string near_miss_range() {
  return std::string(kNearMissCodes.front().code) + " … " + std::string(kNearMissCodes.back().code);
}

}  // namespace pw
