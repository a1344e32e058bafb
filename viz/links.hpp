// Def-use links across all versions of a graph: each operand with the versions that read it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "viz/union.hpp"

namespace pw::viz {

struct Source {
  enum class Kind : std::uint8_t { none, literal, input, node };
  Kind kind = Kind::none;
  std::uint32_t index = 0;   ///< of an input in Links::inputs, or the union position of a node
  std::uint32_t result = 0;  ///< result of the node
  ValueId value;             ///< in the last version of the link
  friend bool operator==(const Source& a, const Source& b) {
    return a.kind == b.kind && a.index == b.index && a.result == b.result;
  }
};

struct Link {
  Source source;
  std::uint32_t slot = 0;             ///< operand, or graph output
  std::uint32_t first = 0, last = 0;  ///< versions, inclusive
};

struct InputFact {
  std::string name, type;
  InputKind kind = InputKind::input;
};

struct Links {
  std::vector<InputFact> inputs;
  std::vector<std::uint32_t> begin;  ///< by union position, plus an end marker
  std::vector<Link> all;             ///< for each node by slot, then by version
  std::vector<Link> outputs;
  std::vector<std::vector<std::uint32_t>> input_number;  ///< [version][value]: in inputs
  [[nodiscard]] std::span<const Link> of(std::uint32_t at) const {
    return {all.data() + begin[at], all.data() + begin[at + 1]};
  }
  /// Returns true if the source has a box: it is not a weight, buffer, or literal.
  [[nodiscard]] bool drawn(const Source& source) const {
    return source.kind == Source::Kind::node ||
           (source.kind == Source::Kind::input && inputs[source.index].kind == InputKind::input);
  }
};

Links link(const UnionGraph& graph, bool related, const StageProgress& progress = {});

}  // namespace pw::viz
