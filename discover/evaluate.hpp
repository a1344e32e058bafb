// Evaluates ops over the prime field at small concrete shapes. Ops with a body are unfolded. An op
// without a body that is not a known primitive acts as a random function of all its operands.
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

/// Returns a tensor determined by the seed and the input's number.
[[nodiscard]] Tensor random_tensor(const Context& context, TypeId type, std::uint64_t seed,
                                   std::size_t input);
/// Returns the extents; nothing if a dim is symbolic.
[[nodiscard]] std::optional<std::vector<std::int64_t>> extents(const Context& context, TypeId type);

class Evaluator {
 public:
  explicit Evaluator(const ContextPtr& context) : context_(context) {}

  /// Returns one tensor for each result; nothing if the op is undefined at these types. A null
  /// operand is absent. `types` are those of the operands, `results` those of the results.
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
