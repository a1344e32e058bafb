// Small graphs as plain data: what is enumerated, typed anew and written as rules. Values are
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
  std::vector<std::size_t> operands;  ///< kAbsent: none
  AttributesId attributes;            ///< complete
  std::size_t results = 1;
};

struct Form {
  std::vector<Step> steps;
  std::vector<std::size_t> outputs;
};

/// Two forms over the same inputs whose outputs are equal, one by one.
struct Pair {
  std::vector<TypeId> inputs;
  std::vector<bool> weights;  ///< inputs that are the same for all steps; may be empty
  Form before, after;
  [[nodiscard]] bool weight(std::size_t input) const {
    return input < weights.size() && weights[input];
  }
};

/// The types of all values; nothing where some step is not well typed.
[[nodiscard]] std::optional<std::vector<TypeId>> types_of(Context& context, const Form& form,
                                                          const std::vector<TypeId>& inputs);
/// Of all values; `types` are those of types_of().
[[nodiscard]] std::optional<std::vector<Tensor>> values_of(Evaluator& evaluator, const Form& form,
                                                           const std::vector<TypeId>& types,
                                                           std::vector<Tensor> inputs);
/// Bytes that its steps read and write, as `cost bytes` counts them; what is computed of weights
/// alone costs nothing. Types without symbols.
[[nodiscard]] std::int64_t bytes_of(Context& context, const Form& form,
                                    const std::vector<TypeId>& types, const Pair& pair);
/// Adds the steps to a graph whose values `inputs` are; the values of the outputs.
[[nodiscard]] std::optional<std::vector<ValueId>> add_to(Graph& graph, const Form& form,
                                                         const std::vector<ValueId>& inputs);
/// Text of ops, attributes and operands, with the inputs numbered in the order of their first use.
[[nodiscard]] std::string key_of(const Context& context, const Pair& pair);
/// Both forms with the inputs that neither reads left out.
[[nodiscard]] Pair without_unused(const Pair& pair);

}  // namespace pw::discover
