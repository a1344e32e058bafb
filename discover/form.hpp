// Small graphs as plain data, which are enumerated, retyped, and written as rules. Values are
// numbered: the inputs first, then the results of the steps in order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "discover/evaluate.hpp"

namespace pw::discover {

inline constexpr std::size_t kAbsent = ~std::size_t{0};

struct Step {
  OpId op;
  std::vector<std::size_t> operands;  ///< kAbsent for an absent operand
  AttributesId attributes;            ///< all attributes
  std::size_t results = 1;
};

struct Form {
  std::vector<Step> steps;
  std::vector<std::size_t> outputs;
};

/// Two forms over common inputs with pairwise equal outputs.
struct Pair {
  std::vector<TypeId> inputs;
  std::vector<bool> weights;  ///< inputs that are constant across steps; may be empty
  Form before, after;
  [[nodiscard]] bool weight(std::size_t input) const {
    return input < weights.size() && weights[input];
  }
};

/// Returns the types of all values; nothing if a step is not well typed.
[[nodiscard]] std::optional<std::vector<TypeId>> types_of(Context& context, const Form& form,
                                                          const std::vector<TypeId>& inputs);
/// Returns all values; `types` come from types_of().
[[nodiscard]] std::optional<std::vector<Tensor>> values_of(Evaluator& evaluator, const Form& form,
                                                           const std::vector<TypeId>& types,
                                                           std::vector<Tensor> inputs);
/// Returns the bytes that its steps read and write, as counted by `cost bytes`. Computation from
/// weights alone is free. Types must have no symbols.
[[nodiscard]] std::int64_t bytes_of(Context& context, const Form& form,
                                    const std::vector<TypeId>& types, const Pair& pair);
/// Adds the steps to a graph whose values are `inputs`; returns the outputs.
[[nodiscard]] std::optional<std::vector<ValueId>> add_to(Graph& graph, const Form& form,
                                                         const std::vector<ValueId>& inputs);
/// Returns a text of ops, attributes, and operands, with inputs numbered by first use.
[[nodiscard]] std::string key_of(const Context& context, const Pair& pair);
/// Returns both forms without the inputs that neither reads.
[[nodiscard]] Pair without_unused(const Pair& pair);

}  // namespace pw::discover
