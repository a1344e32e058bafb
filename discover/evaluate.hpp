// The value of an op over the prime field, at small concrete shapes. Ops with a body are unfolded;
// an op that is neither a primitive here nor has a body is a random function of all its operands.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "discover/field.hpp"
#include "graph/build.hpp"

namespace pw::discover {

struct Tensor {
  std::vector<std::int64_t> shape;
  std::vector<Residue> elements;  ///< row-major
  [[nodiscard]] std::uint64_t hash() const;
};

/// Drawn by the seed and the number of the input.
[[nodiscard]] Tensor random_tensor(const Context& context, TypeId type, std::uint64_t seed,
                                   std::size_t input);
/// Nothing where a dim is no number.
[[nodiscard]] std::optional<std::vector<std::int64_t>> extents(const Context& context, TypeId type);

class Evaluator {
 public:
  explicit Evaluator(const ContextPtr& context) : context_(context) {}

  /// A tensor a result; nothing where the op has no meaning at these types. Null: an absent
  /// operand. `types` are of the operands, `results` of the results.
  std::optional<std::vector<Tensor>> run(OpId op, std::span<const Tensor* const> operands,
                                         std::span<const TypeId> types, AttributesId attributes,
                                         std::span<const TypeId> results);

 private:
  using Key = std::tuple<OpId, std::vector<TypeId>, AttributesId>;
  const Meaning* meaning(OpId op, std::span<const TypeId> types, AttributesId attributes);
  std::optional<std::vector<Tensor>> unfolded(const Meaning& meaning,
                                              std::span<const Tensor* const> operands);

  ContextPtr context_;
  std::map<Key, std::optional<Meaning>> meanings_;
};

}  // namespace pw::discover
