// All values that a few ops make of given inputs, with at most so many nodes. A value is made of
// others only where these are the first of their kind: what is equal to a smaller value is a pair,
// and no step of anything larger.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "discover/form.hpp"

namespace pw::discover {

inline constexpr std::size_t kMostNodes = 3;

/// An op of the vocabulary. Attributes that are not given take their defaults; axes take each axis,
/// and the sizes of an op with a list of results take what Vocabulary::parts has.
struct Choice {
  OpId op;
  AttributeList given;
};

struct Vocabulary {
  std::vector<Choice> choices;
  /// How an axis of so many elements may be taken apart.
  std::map<std::int64_t, std::vector<std::vector<std::int64_t>>> parts;
  std::size_t variadic = 2;  ///< operands of an op that takes any number, at most
};

struct Made {
  OpId op;
  AttributesId attributes;
  std::vector<std::uint32_t> operands;
  std::uint32_t first = 0;  ///< value; the others follow
  std::uint32_t results = 1;
};

class Bank {
 public:
  Bank(const ContextPtr& context, Evaluator& evaluator, const Vocabulary& vocabulary,
       std::vector<TypeId> inputs, std::uint64_t seed);

  /// Of the node just made: for each result the value that is equal to it and was there before, or
  /// the result itself. False ends the enumeration.
  using Found = std::function<bool(const Made& node, const std::vector<std::uint32_t>& equal)>;
  /// All values of `nodes` nodes; those of fewer must have been made before.
  void grow(std::size_t nodes, bool last, const Found& found);

  [[nodiscard]] std::uint64_t fingerprint(std::uint32_t value) const {
    return values_[value].fingerprint;
  }
  /// A form whose outputs are these values. A node that was not kept is given as `extra`.
  [[nodiscard]] Form form(const std::vector<std::uint32_t>& outputs, const Made* extra) const;
  /// For each fingerprint the result of the node just made, or the value that the node is made of,
  /// that has it; nothing where some has none, or none is a result of the node.
  [[nodiscard]] std::optional<std::vector<std::uint32_t>> covering(
      const std::vector<std::uint64_t>& fingerprints, const Made& node) const;
  [[nodiscard]] const std::vector<TypeId>& inputs() const { return inputs_; }
  [[nodiscard]] const Tensor& input(std::size_t i) const { return values_[i].tensor; }
  [[nodiscard]] std::size_t tried() const { return tried_; }

 private:
  using Cone = std::array<std::uint32_t, kMostNodes>;
  struct Value {
    std::uint32_t node = 0;  ///< kInput: an input
    TypeId type;
    std::uint64_t fingerprint = 0;
    Cone cone{};
    std::uint8_t size = 0;  ///< nodes it is made of
    Tensor tensor;
  };
  struct Inferred {
    std::vector<AttributesId> attributes;
    std::vector<std::vector<TypeId>> results;
  };
  static constexpr std::uint32_t kInput = ~std::uint32_t{0};

  void choose(std::vector<std::uint32_t>& operands, const Cone& cone, std::size_t size,
              std::size_t wanted, bool last);
  void make(const std::vector<std::uint32_t>& operands, const Cone& cone, std::size_t size,
            bool last);
  void add(const Made& node, const std::vector<TypeId>& types, std::vector<Tensor> results,
           const Cone& cone, std::size_t size, bool last);
  const Inferred& inferred(std::size_t choice, const std::vector<TypeId>& types);
  [[nodiscard]] std::vector<AttributeList> attribute_lists(const Choice& choice,
                                                           const std::vector<TypeId>& types) const;
  [[nodiscard]] bool takes(const Op& op, std::size_t operands) const;

  ContextPtr context_;
  Evaluator& evaluator_;
  const Vocabulary& vocabulary_;
  std::vector<TypeId> inputs_;
  std::vector<Value> values_;
  std::vector<Made> nodes_;
  std::unordered_map<std::uint64_t, std::uint32_t> known_;  // by fingerprint; looked up only
  std::map<std::pair<std::size_t, std::vector<TypeId>>, Inferred> inferred_;
  std::size_t arity_ = 1, level_ = 0, bound_ = 0, tried_ = 0;
  std::vector<std::uint64_t> fresh_;
  const Found* found_ = nullptr;
  bool ended_ = false;
};

}  // namespace pw::discover
