// Which rows of a step belong to which sequence, and which keys attention sees.
#pragma once

#include <string>
#include <vector>

#include "backends/kernel.hpp"

namespace pw {

struct RowSpan {
  std::int64_t begin = 0, end = 0;
};

/// The rows of each sequence of the step, in order; without a step, all rows are one sequence. Rows
/// that no sequence has are padding, and are in no span.
[[nodiscard]] std::vector<RowSpan> sequence_rows(const RunContext& context, std::int64_t rows);

/// What a call of attention keeps its keys and values under: the attribute `layer`, or else the
/// node's own name.
[[nodiscard]] std::string layer_name(const Graph& graph, NodeId attention);

/// What the queries of an attention call look at: rows of each sequence, those of earlier tokens
/// first. A query is the later by `rows` of its sequence here less its own rows.
struct SeenKeys {
  Array k, v;                    ///< row-major, [rows, heads, width]
  std::vector<RowSpan> queries;  ///< of each sequence, as sequence_rows() has them
  std::vector<RowSpan> keys;     ///< of each sequence, in k and v
  /// Keys that the first query of sequence s sees besides its own.
  [[nodiscard]] std::int64_t past(std::size_t s) const {
    return keys[s].end - keys[s].begin - (queries[s].end - queries[s].begin);
  }
};
/// Operands 1 and 2 of the call, with what the step's cache holds; the call's rows are added to it.
Result<SeenKeys> seen_keys(const Call& call);

/// unified_kv_cache_update: operands 0 and 1 go to the step's cache, if it has one. Attention that
/// follows writes the same rows again.
Status update_cache(Call& call);

}  // namespace pw
