// Maps the rows of a step to sequences, and the sequences to the keys that attention sees.
#pragma once

#include <string>
#include <vector>

#include "backends/kernel.hpp"

namespace pw {

struct RowSpan {
  std::int64_t begin = 0, end = 0;
};

/// Returns the rows of each sequence of the step, in order. Without a step all rows form one
/// sequence. Padding rows belong to no span.
[[nodiscard]] std::vector<RowSpan> sequence_rows(const RunContext& context, std::int64_t rows);

/// Returns the cache name of an attention call: the attribute `layer`, or else the node's name.
[[nodiscard]] std::string layer_name(const Graph& graph, NodeId attention);

/// The keys and values that an attention call sees: rows of each sequence, earlier tokens first. A
/// query's position is its row plus the number of its sequence's rows here minus its sequence's
/// query rows.
struct SeenKeys {
  Array k, v;                    ///< row-major, [rows, heads, width]
  std::vector<RowSpan> queries;  ///< query rows of each sequence, as from sequence_rows()
  std::vector<RowSpan> keys;     ///< key rows of each sequence, in k and v
  /// Returns the number of earlier keys that the first query of sequence s sees.
  [[nodiscard]] std::int64_t past(std::size_t s) const {
    return keys[s].end - keys[s].begin - (queries[s].end - queries[s].begin);
  }
};
/// Returns operands 1 and 2 of the call together with the cached rows, and adds the call's rows to
/// the step's cache.
Result<SeenKeys> seen_keys(const Call& call);

/// Runs unified_kv_cache_update: writes operands 0 and 1 to the step's cache, if it has one. The
/// attention call that follows writes the same rows again.
Status update_cache(Call& call);

}  // namespace pw
