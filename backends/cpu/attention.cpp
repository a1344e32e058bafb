#include "backends/cpu/attention.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "backends/cpu/attention_kernel.hpp"
#include "backends/sequences.hpp"
#include "tensor/instruction_set.hpp"
#include "tensor/parallel.hpp"

namespace pw::cpu {
namespace {

constexpr std::int64_t kQueries = 64;

/// A block of queries of one head: the unit of work of a core.
struct Work {
  std::int64_t key, first, rows, head;  ///< key: the first of the sequence
  std::int64_t seen;                    ///< keys that the first row sees
};

}  // namespace

Status attention(Call& call) {
  const Array& query = call.operand(0);
  const std::int64_t heads = query.extents[1], width = query.extents[2];
  const std::int64_t kv_heads = call.operand(1).extents[1];
  if (kv_heads == 0 || heads % kv_heads != 0)
    return fail_call(
        call, "PW1203",
        fmt::format("{} query heads are not a multiple of {} key heads", heads, kv_heads));
  const auto seen = seen_keys(call);
  if (!seen) return tl::unexpected(seen.error());
  const std::vector<float> q = elements_of<float>(query), k = elements_of<float>(seen->k),
                           v = elements_of<float>(seen->v);
  const bool divides = call.operands.size() > 3 && call.operands[3] != nullptr;
  const float divisor = divides ? elements_of<float>(call.operand(3))[0] : 1.0f;
  std::vector<float> out(q.size(), 0.0f);
  std::vector<Work> work;
  std::int64_t keys = 0;
  for (std::size_t i = 0; i < seen->keys.size(); ++i) {
    const RowSpan &s = seen->queries[i], &own = seen->keys[i];
    for (std::int64_t first = s.begin; first < s.end; first += kQueries) {
      for (std::int64_t head = 0; head < heads; ++head)
        work.push_back({own.begin, first, std::min(kQueries, s.end - first), head,
                        seen->past(i) + first - s.begin + 1});
    }
    keys += (s.end - s.begin) * (own.end - own.begin);
  }
  // Late blocks of a sequence see more keys, so each core processes blocks from everywhere.
  const auto count = static_cast<std::int64_t>(work.size());
  const std::int64_t stride = 16, lanes = std::min<std::int64_t>(stride, count);
  auto* const attend = for_this_machine<void(const AttentionBlock&)>(PW_VARIANTS(attend_block));
  const std::int64_t grain = keys * heads * width > (1 << 18) ? 1 : stride;
  parallel_for(lanes, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t lane = begin; lane < end; ++lane) {
      for (std::int64_t i = lane; i < count; i += stride) {
        const Work& w = work[static_cast<std::size_t>(i)];
        const std::int64_t kv = (w.key * kv_heads + w.head / (heads / kv_heads)) * width;
        const std::int64_t own = (w.first * heads + w.head) * width;
        attend({q.data() + own, k.data() + kv, v.data() + kv, out.data() + own, w.rows, w.seen,
                width, heads * width, kv_heads * width, heads * width,
                1 / std::sqrt(static_cast<float>(width)), divisor});
      }
    }
  });
  Array& y = call.result();
  store_run(y.dtype, y.data, 1, y.count(), out.data());
  return {};
}

}  // namespace pw::cpu
