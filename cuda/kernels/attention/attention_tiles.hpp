// Selects the attention kernel of a step by its number of rows and by whether its sequences have
// the same number of new tokens. The cost model (attention_model.hpp) makes the selection. Every
// kernel is correct for every step.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "cuda/kernels/attention/attention_model.hpp"

namespace pw::cuda {

/// The available kernels, and the one for each step.
struct AttentionTiles {
  /// Pairs of maximum rows, ascending, and index into `all`; the last entry covers any larger
  /// number.
  using Chosen = std::vector<std::pair<std::int64_t, std::size_t>>;
  std::vector<AttentionTile> all;
  Chosen chosen;
  /// Choices for steps with `query` new tokens of each sequence; empty: the general choices.
  Chosen decodes = {};
  std::int64_t query = 1;
  /// Returns the index of the kernel; `of_query`: new tokens of each sequence, or 0 if they differ.
  [[nodiscard]] std::size_t of(std::int64_t rows, std::int64_t of_query) const;
};

/// Returns the work assumed for a step of `rows` rows. With `query` new tokens of each sequence:
/// sequences of 4096 keys. Otherwise up to 256 rows one token each of such sequences, and above
/// that the start of one sequence.
[[nodiscard]] AttentionWork typical_work(std::int64_t rows, std::int64_t query, std::int64_t heads,
                                         std::int64_t groups, std::int64_t width);
/// Returns the tiles that may suit such steps.
[[nodiscard]] std::vector<AttentionTile> attention_candidates(const TensorMachine& machine,
                                                              const AttentionWork& work);
/// Chooses kernels by the model, for `query` new tokens of sequences of 512, 4096 and 32768 keys,
/// and for prompts, single and of 512 tokens each. It minimises the total loss, and drops kernels
/// for few steps if another kernel is within 2 %.
[[nodiscard]] AttentionTiles attention_tiles(const TensorMachine& machine, std::int64_t heads,
                                             std::int64_t groups, std::int64_t width,
                                             std::int64_t query = 1);

}  // namespace pw::cuda
