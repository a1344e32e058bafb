// Bottom-up enumeration of all values that a vocabulary of ops computes from given inputs with up
// to n nodes. Values are deduplicated by fingerprint: only the first of each equivalence class is
// extended, and a later equal value is reported as a pair.
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

/// An op of the vocabulary. Attributes not given take their defaults, axes take every axis, and the
/// sizes of an op with a list of results come from Vocabulary::parts.
struct Choice {
  OpId op;
  AttributeList given;
};

struct Vocabulary {
  std::vector<Choice> choices;
  /// Ways to split an axis, by its extent.
  std::map<std::int64_t, std::vector<std::vector<std::int64_t>>> parts;
  std::size_t variadic = 2;  ///< maximum number of operands of a variadic op
};

struct Made {
  OpId op;
  AttributesId attributes;
  std::vector<std::uint32_t> operands;
  std::uint32_t first = 0;  ///< first value; the others follow
  std::uint32_t results = 1;
};

class Bank {
 public:
  Bank(const ContextPtr& context, Evaluator& evaluator, const Vocabulary& vocabulary,
       std::vector<TypeId> inputs, std::uint64_t seed);

  /// Receives a new node and, for each of its results, the earlier equal value or the result
  /// itself. Returning false ends the enumeration.
  using Found = std::function<bool(const Made& node, const std::vector<std::uint32_t>& equal)>;
  /// Enumerates all values of `nodes` nodes; smaller values must exist already.
  void grow(std::size_t nodes, bool last, const Found& found);

  [[nodiscard]] std::uint64_t fingerprint(std::uint32_t value) const {
    return values_[value].fingerprint;
  }
  /// Returns a form with these outputs. `extra` is a node that was not kept.
  [[nodiscard]] Form form(const std::vector<std::uint32_t>& outputs, const Made* extra) const;
  /// For each fingerprint, finds a result of the new node, or a value that it is computed from.
  /// Returns nothing if a fingerprint is missing or no output is a result of the new node.
  [[nodiscard]] std::optional<std::vector<std::uint32_t>> covering(
      const std::vector<std::uint64_t>& fingerprints, const Made& node) const;
  [[nodiscard]] const std::vector<TypeId>& inputs() const { return inputs_; }
  [[nodiscard]] const Tensor& input(std::size_t i) const { return values_[i].tensor; }
  [[nodiscard]] std::size_t tried() const { return tried_; }

 private:
  using Cone = std::array<std::uint32_t, kMostNodes>;
  struct Value {
    std::uint32_t node = 0;  ///< kInput for an input
    TypeId type;
    std::uint64_t fingerprint = 0;
    Cone cone{};
    std::uint8_t size = 0;  ///< nodes that it is computed from
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
  std::unordered_map<std::uint64_t, std::uint32_t> known_;  // by fingerprint; lookup only
  std::map<std::pair<std::size_t, std::vector<TypeId>>, Inferred> inferred_;
  std::size_t arity_ = 1, level_ = 0, bound_ = 0, tried_ = 0;
  std::vector<std::uint64_t> fresh_;
  const Found* found_ = nullptr;
  bool ended_ = false;
};

}  // namespace pw::discover
