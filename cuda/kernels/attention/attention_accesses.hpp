// How often attention's kernels touch memory. Their loops go by the lengths of a step's sequences,
// which its tables hold: for each row of the step the slot of its keys, where its sequence's pages
// begin, and how many keys it sees (DeviceAttention writes them before the launches). Counts are
// functions of those.
#pragma once

#include <cstdint>
#include <vector>

#include "cuda/kernels/access_counts.hpp"
#include "cuda/kernels/attention/attention_model.hpp"

namespace pw::cuda {

struct AttentionSizes {
  std::int64_t heads = 0, groups = 0, width = 0;
  std::int64_t q = 2, k = 2, v = 2, out = 2;  ///< bytes of an element
  std::int64_t divisor = 0;                   ///< the same; 0: there is none
  std::int64_t page_tokens = 16;
};

/// Of kPut: keys, values and slots are read, pages of both written.
[[nodiscard]] AccessesByData put_accesses(const AttentionSizes& sizes, int threads);
/// Of kAttend: queries, pages of keys and values, where tables begin, keys seen, pages and the
/// divisor are read, results written.
[[nodiscard]] AccessesByData attend_accesses(const AttentionSizes& sizes, int threads);
/// Of pw_attention: the same arguments, and where there are parts, their sums and the number of
/// those that are there.
[[nodiscard]] AccessesByData tensor_attention_accesses(const AttentionSizes& sizes,
                                                       const AttentionTile& tile);

/// The tables of a step as far as counts depend on them, rows ascending: the first row of its
/// sequence in place of where its pages begin.
struct StepTables {
  std::vector<std::int64_t> tables, seen;
};
[[nodiscard]] StepTables tables_of(const AttentionWork& work);

}  // namespace pw::cuda
