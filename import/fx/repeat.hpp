// Private to the importer: statements that differ only in names from one that was converted. A
// model's layers consist of such statements, so nearly all of a large dump is copied, not converted
// again. Plain data; finding and copying are Repeater's (repeater.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/hash_index.hpp"
#include "import/fx/emit/values.hpp"

namespace pw::fx {

/// A tensor that a statement reads, or a result of a node that it makes.
struct RepeatedValue {
  static constexpr std::uint32_t kAbsent = 0xffffffffu;
  bool argument = false;
  std::uint32_t index = kAbsent;  ///< of the arguments, or of the results of all its nodes
};

/// Name of a result: the statement's target, an item of it, or a generated name.
struct RepeatedName {
  enum class Kind : std::uint8_t { target, item, made_up, constant } kind = Kind::target;
  int item = 0;
};

struct RepeatedNode {
  OpId op;
  AttributesId attributes;
  std::vector<RepeatedValue> operands;
  std::vector<TypeId> types;
  std::vector<RepeatedName> names;
  bool placed = true;  ///< has the group and the source of the statement; else it has none
};

struct RepeatedTensor {
  RepeatedValue value, base;  ///< the base, of a view: an argument, or a tensor made before
  Tensor like;
};

/// Nodes and tensors of a statement, from which equal ones are made for another.
struct Repeat {
  std::vector<RepeatedNode> nodes;
  std::vector<RepeatedTensor> tensors;
  Value value;                                         ///< of the target
  std::vector<RepeatedValue> makers, dropped, caches;  ///< see Effects
  std::vector<std::string> opaque, reasons;            ///< of the report
  bool read = false;      ///< where an op is opaque: whether something reads the target
  bool own_name = false;  ///< the value is called as the target
  std::vector<RepeatedValue> handles;  ///< of the tensors in it, in order: an argument, or one made
};

/// Statements by key, and the state of a run of repeated ones.
struct Repeats {
  using Key = std::vector<std::uint64_t>;
  struct Entry {
    Key key;
    std::optional<Repeat> repeat;  ///< nothing: its conversion cannot be repeated
  };
  std::vector<Entry> entries;
  HashIndex index;

  // State of a run of repeated statements.
  std::size_t run = 0;
  bool quick = false;         ///< the graph keeps no set of names meanwhile
  std::string group, source;  ///< of the last
  std::vector<ValueId> operands;
  std::vector<ValueNameId> names;
  std::uint32_t place = 0;  ///< of these in the graph
};

}  // namespace pw::fx
