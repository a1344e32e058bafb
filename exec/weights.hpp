// Contents for a graph's inputs, from a seed: what an input is used for decides its distribution,
// so that numbers stay sane through many layers. Each element depends on the seed, the input's name
// and its index only, a token's on its sequence and position instead of its row: neither rewriting
// the graph nor padding it changes what a token sees, nor does what else is in its step.
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
  matrix_scale,  ///< what brings an fp8 matrix to deviation 1/sqrt(fan in)
  scale,         ///< of an activation's quantisation: about absmax / 448
  gain,          ///< normal about 1, deviation 0.1
  bias,          ///< normal, deviation 0.02
  rope,          ///< cosines, then sines, of position times frequency
  positions,     ///< 0, 1, … from each sequence's past
  indices,       ///< below the rows of the table they look up
  mask,          ///< true or false
};

/// The inputs that hold the same on every rank, besides those that the graph declares to be
/// replicated over a group. Any other differs from rank to rank, but for positions and rotary
/// tables, which a seed does not change.
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
  /// A tensor for the input of that name. Tensors whose extents do not depend on symbols are made
  /// once and shared.
  Result<Tensor> tensor(std::string_view input, const Symbols& symbols, const Step& step);
  /// These contents instead. An input of tokens then has as many as the tensor has rows: PW1272 in
  /// a step of another number.
  void give(std::string_view input, Tensor tensor);
  /// Notes that tensors that were given are parts of this file.
  void use(const MappedFile& file) { files_.push_back(file); }
  /// Fails with PW1275 if one of the files has changed. Has to be checked after numbers are
  /// computed from the weights, and before anything reports them.
  [[nodiscard]] Status check_files() const;
  /// The tensor, or a copy of it if it is a part of a file.
  [[nodiscard]] Tensor kept(const Tensor& tensor) const;
  /// An input besides those of the source: of a graph that reads it as a weight of fixed extents.
  void add(std::string_view input, TypeId type, Tensor tensor);
  /// After a step: weights and buffers of fixed extents that the graph writes hold what it wrote.
  /// `outputs` are the graph's. Names of the inputs.
  std::vector<std::string> write_back(const Graph& graph, const std::vector<Tensor>& outputs);
  [[nodiscard]] InputRole role(std::string_view input) const {
    return uses_.find(input)->second.role;
  }

 private:
  struct Use {
    InputRole role = InputRole::activation;
    DimId size;  ///< matrix: fan in; indices, positions: rows of the table; invalid: not known
    TypeId type;
    bool fixed = false;      ///< no symbol in its type
    std::uint64_t seed = 0;  ///< of this input on this rank
  };
  Use use_of(const Graph& graph, ValueId input) const;
  Tensor fill(const Use& use, std::string_view input, Extents extents, std::int64_t size,
              const Step& step) const;

  ContextPtr context_;
  std::map<std::string, Use, std::less<>> uses_;
  std::map<std::string, Tensor, std::less<>> made_;
  std::map<std::string, Tensor, std::less<>> given_;
  std::vector<MappedFile> files_;
};

/// Contents for each rank of a run.
[[nodiscard]] std::vector<Weights> weights_of_ranks(const Graph& source, std::uint64_t seed,
                                                    std::int64_t ranks,
                                                    const Replication& replication = {});

}  // namespace pw
