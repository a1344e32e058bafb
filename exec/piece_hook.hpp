// A hook between pieces: what a user's code reads and writes before and after each piece of a step,
// whatever runs it. A connector that moves keys and values layer by layer is one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/backend.hpp"
#include "backends/kernel.hpp"
#include "splitter/splitter.hpp"

namespace pw {

/// A piece of a step that is about to run, or has just run, on one rank.
class PieceCall {
 public:
  PieceCall(const Graph& source, const Piece& piece, const Step& step, Symbols valid)
      : source_(source), piece_(piece), step_(step), valid_(std::move(valid)) {}
  PieceCall(const PieceCall&) = delete;
  PieceCall& operator=(const PieceCall&) = delete;
  virtual ~PieceCall() = default;

  [[nodiscard]] const Piece& piece() const { return piece_; }
  [[nodiscard]] const Step& step() const { return step_; }
  [[nodiscard]] virtual std::int64_t rank() const { return 0; }
  /// Names of what the piece reads and writes, in the order of its inputs and outputs.
  [[nodiscard]] std::vector<std::string> inputs() const;
  [[nodiscard]] std::vector<std::string> outputs() const;
  /// The operands and results of the piece's first op of that name, by the names that the op's
  /// signature gives them: `q`, `k`, `v` of attention. Absent operands are left out.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> names_of(
      std::string_view op) const;
  /// A copy, the valid rows only. PW1216 where the piece has no such tensor.
  Result<Tensor> read(std::string_view value);
  /// Other contents for the valid rows; rows of padding become zeros. Of what earlier pieces made
  /// or, after the piece, what it made: PW1216 of the graph's own inputs, or of another dtype or
  /// shape.
  Status write(std::string_view value, const TensorView& contents);

 protected:
  [[nodiscard]] const Graph& source() const { return source_; }

 private:
  /// The whole tensor, padding included, on the host.
  virtual Result<Tensor> read_all(ValueId value) = 0;
  virtual Status write_all(ValueId value, const Tensor& whole) = 0;
  [[nodiscard]] virtual Result<Extents> padded_extents(ValueId value) const = 0;

  Result<ValueId> find(std::string_view value) const;

  const Graph& source_;
  const Piece& piece_;
  const Step& step_;
  Symbols valid_;
};

/// What fails ends the step. With a hook, no step is replayed as one graph: its pieces run one by
/// one.
class PieceHook {
 public:
  PieceHook() = default;
  PieceHook(const PieceHook&) = delete;
  PieceHook& operator=(const PieceHook&) = delete;
  virtual ~PieceHook() = default;
  virtual Status before(PieceCall& call);
  virtual Status after(PieceCall& call);
};

}  // namespace pw
