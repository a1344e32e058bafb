// A hook between pieces: user code that reads and writes tensors before and after each piece of a
// step, on any engine. An example is a connector that transfers keys and values layer by layer.
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

/// A piece of a step, before or after it runs on one rank.
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
  /// Returns the names of the piece's inputs or outputs, in order.
  [[nodiscard]] std::vector<std::string> inputs() const;
  [[nodiscard]] std::vector<std::string> outputs() const;
  /// Returns the operands and results of the piece's first op of that name, paired with the names
  /// from the op's signature, such as `q`, `k`, `v` of attention. Absent operands are omitted.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> names_of(
      std::string_view op) const;
  /// Returns a copy of the valid rows. Fails with PW1216 if the piece has no such tensor.
  Result<Tensor> read(std::string_view value);
  /// Replaces the valid rows; padding rows become zeros. Applies to results of earlier pieces and,
  /// after the piece, to its own. Fails with PW1216 for the graph's inputs, and for another dtype
  /// or shape.
  Status write(std::string_view value, const TensorView& contents);

 protected:
  [[nodiscard]] const Graph& source() const { return source_; }

 private:
  /// Returns the whole tensor, padding included, on the host.
  virtual Result<Tensor> read_all(ValueId value) = 0;
  virtual Status write_all(ValueId value, const Tensor& whole) = 0;
  [[nodiscard]] virtual Result<Extents> padded_extents(ValueId value) const = 0;

  Result<ValueId> find(std::string_view value) const;

  const Graph& source_;
  const Piece& piece_;
  const Step& step_;
  Symbols valid_;
};

/// User code around each piece. An error ends the step. With a hook, no step is replayed as one
/// graph: its pieces run one by one.
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
