// Generates contents for a graph's inputs from a seed. An input's use decides its distribution, so
// that values stay in range through many layers. An element depends only on the seed, the input's
// name and its index; for per-token inputs, sequence and position replace the row. Neither
// rewriting, padding nor other sequences of the step change what a token sees.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.hpp"
#include "backends/kernel.hpp"
#include "tensor/mapped_file.hpp"

namespace pw {

enum class InputRole : std::uint8_t {
  activation,    ///< normal, deviation 1
  matrix,        ///< normal, deviation 1/sqrt(fan in); fp8: deviation 64
  matrix_scale,  ///< scales an fp8 matrix to deviation 1/sqrt(fan in)
  scale,         ///< scale of a quantised activation: about absmax / 448
  gain,          ///< normal about 1, deviation 0.1
  bias,          ///< normal, deviation 0.02
  rope,          ///< cosines, then sines, of position times frequency
  positions,     ///< 0, 1, … from each sequence's past
  indices,       ///< below the rows of the indexed table
  mask,          ///< true or false
  seed,          ///< of random numbers: one for each sequence
};

/// Inputs with equal contents on every rank, in addition to those that the graph declares
/// replicated over a group. Other inputs differ between ranks, except positions and rotary tables,
/// which do not depend on a seed.
struct Replication {
  bool all = false;
  std::set<std::string, std::less<>> names;
  [[nodiscard]] bool holds(std::string_view input) const { return all || names.count(input) != 0; }
};

class Weights {
 public:
  /// Reads the roles from `source`, which should be the graph before rewriting.
  Weights(const Graph& source, std::uint64_t seed, std::int64_t rank = 0,
          const Replication& replication = {});
  /// Returns a tensor for an input. Tensors whose extents depend on no symbol are created once and
  /// shared.
  Result<Tensor> tensor(std::string_view input, const Symbols& symbols, const Step& step);
  /// Replaces an input's contents. A per-token input then has as many tokens as the tensor has
  /// rows; another count fails with PW1272.
  void give(std::string_view input, Tensor tensor);
  /// Records that given tensors are parts of this file.
  void use(const MappedFile& file) { files_.push_back(file); }
  /// Fails with PW1275 if one of the files has changed. Call it after computing from the weights
  /// and before reporting results.
  [[nodiscard]] Status check_files() const;
  /// Returns the tensor, or a copy if it is a part of a file.
  [[nodiscard]] Tensor kept(const Tensor& tensor) const;
  /// Adds an input that the source lacks: a weight of fixed extents that another graph reads.
  void add(std::string_view input, TypeId type, Tensor tensor);
  /// Stores the graph's `outputs` that are written to weights and buffers of fixed extents. Returns
  /// the names of these inputs. Indices and positions of tokens continue a sequence: its last row
  /// is what its next token reads, if a later step has only this token of it.
  std::vector<std::string> write_back(const Graph& graph, const std::vector<Tensor>& outputs,
                                      const Step& step);
  [[nodiscard]] InputRole role(std::string_view input) const {
    return uses_.find(input)->second.role;
  }

 private:
  struct Use {
    InputRole role = InputRole::activation;
    DimId size;  ///< matrix: fan in; indices, positions: rows of the table; invalid: unknown
    TypeId type;
    bool fixed = false;      ///< no symbol in its type
    std::uint64_t seed = 0;  ///< seed of this input on this rank
  };
  Use use_of(const Graph& graph, ValueId input) const;
  Tensor fill(const Use& use, std::string_view input, Extents extents, std::int64_t size,
              const Step& step) const;
  /// A row that a step wrote, and the number of the sequence's tokens at that time.
  struct NextRow {
    std::int64_t past = 0;
    std::vector<std::byte> bytes;
  };
  void keep_last_rows(std::string_view input, const TensorView& written, const Step& step);
  void put_next_rows(std::string_view input, const TensorView& view, const Step& step) const;

  ContextPtr context_;
  std::map<std::string, Use, std::less<>> uses_;
  std::map<std::string, Tensor, std::less<>> made_;
  std::map<std::string, Tensor, std::less<>> given_;
  std::vector<MappedFile> files_;
  std::map<std::string, std::map<std::int64_t, NextRow>, std::less<>> next_;  ///< by sequence
};

/// Returns contents for each rank of a run.
[[nodiscard]] std::vector<Weights> weights_of_ranks(const Graph& source, std::uint64_t seed,
                                                    std::int64_t ranks,
                                                    const Replication& replication = {});

}  // namespace pw
