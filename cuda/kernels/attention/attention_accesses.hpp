// Predicts the memory accesses of the attention kernels. Their loop lengths are data: for each row,
// the tables hold the slot of its keys, the start of its sequence's pages, and the number of keys
// it sees (DeviceAttention writes them before the launches). The counts are functions of these
// tables.
#pragma once

#include <cstdint>
#include <vector>

#include "cuda/kernels/access_counts.hpp"
#include "cuda/kernels/attention/attention_model.hpp"

namespace pw::cuda {

struct AttentionSizes {
  std::int64_t heads = 0, groups = 0, width = 0;
  std::int64_t q = 2, k = 2, v = 2, out = 2;  ///< bytes of an element
  std::int64_t divisor = 0;                   ///< bytes of an element; 0: no divisor
  std::int64_t page_tokens = 16;
};

/// Returns the accesses of kPut: it reads keys, values and slots, and writes pages of both.
[[nodiscard]] AccessesByData put_accesses(const AttentionSizes& sizes, int threads);
/// Returns the accesses of kAttend: it reads queries, pages of keys and values, table starts, key
/// counts, pages and the divisor, and writes results.
[[nodiscard]] AccessesByData attend_accesses(const AttentionSizes& sizes, int threads);
/// Returns the accesses of pw_attention: the same arguments and, with split-KV, the partial sums
/// and arrival counters.
[[nodiscard]] AccessesByData tensor_attention_accesses(const AttentionSizes& sizes,
                                                       const AttentionTile& tile);

/// The tables of a step as far as counts depend on them, rows ascending: the first row of its
/// sequence in place of the start of its pages.
struct StepTables {
  std::vector<std::int64_t> tables, seen;
};
[[nodiscard]] StepTables tables_of(const AttentionWork& work);

}  // namespace pw::cuda
