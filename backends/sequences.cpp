#include "backends/sequences.hpp"

#include <algorithm>

#include "base/try.hpp"
#include "tensor/kv_cache.hpp"

namespace pw {

std::int64_t Step::tokens() const {
  std::int64_t total = 0;
  for (const Sequence& sequence : sequences) total += sequence.new_tokens;
  return total;
}

std::vector<RowSpan> sequence_rows(const RunContext& context, std::int64_t rows) {
  if (context.step == nullptr) return {{0, rows}};
  std::vector<RowSpan> spans;
  std::int64_t begin = 0;
  for (const Sequence& sequence : context.step->sequences) {
    const std::int64_t end = std::min(begin + sequence.new_tokens, rows);
    spans.push_back({begin, end});
    begin = end;
  }
  return spans;
}

namespace {

Array rows_of(const Array& x, const RowSpan& rows) {
  Array out = x;
  out.extents[0] = rows.end - rows.begin;
  out.data = x.at(rows.begin * x.extents[1] * x.extents[2]);
  return out;
}

/// Row-major [rows, heads, width]; rows of latents are one head.
Array by_heads(const Array& x) {
  Array out = contiguous(x);
  if (out.rank() == 2) {
    out.extents.insert(out.extents.begin() + 1, 1);
    out.strides.insert(out.strides.begin() + 1, out.strides[0]);
  }
  return out;
}

/// Stores rows of k and v in their sequences of the step.
Status put_rows(const Call& call, KvCache& cache, const Array& k, const Array& v,
                const std::vector<RowSpan>& spans) {
  const KvCache::Layer layer{call.on_rank, layer_name(call.graph, call.node)};
  for (std::size_t s = 0; s < spans.size(); ++s) {
    const Sequence& sequence = call.context.step->sequences[s];
    auto put =
        cache.put(layer, sequence.id, sequence.past, rows_of(k, spans[s]), rows_of(v, spans[s]));
    if (!put) return put;
  }
  return {};
}

KvCache* cache_of(const Call& call) {
  return call.context.step == nullptr ? nullptr : call.context.step->cache;
}

}  // namespace

std::string layer_name(const Graph& graph, NodeId attention) {
  const Attribute* layer = graph.attribute(attention, "layer");
  const auto* name = layer == nullptr ? nullptr : std::get_if<std::string>(layer);
  return name != nullptr ? *name : "node " + std::string(graph.node_name(attention));
}

Result<SeenKeys> seen_keys(const Call& call) {
  SeenKeys out{by_heads(call.operand(1)), by_heads(call.operand(2)), {}, {}};
  out.queries = out.keys = sequence_rows(call.context, call.operand(0).extents[0]);
  KvCache* cache = cache_of(call);
  if (cache == nullptr) return out;
  PW_TRY(put_rows(call, *cache, out.k, out.v, out.queries));
  const KvCache::Layer layer{call.on_rank, layer_name(call.graph, call.node)};
  std::int64_t total = 0;
  for (std::size_t s = 0; s < out.queries.size(); ++s) {
    const std::int64_t rows = cache->tokens(layer, call.context.step->sequences[s].id);
    out.keys[s] = {total, total + rows};
    total += rows;
  }
  const auto all = [&](const Array& x) {
    return make_array(x.dtype, {total, x.extents[1], x.extents[2]});
  };
  Array k = all(out.k), v = all(out.v);
  for (std::size_t s = 0; s < out.keys.size(); ++s) {
    const RowSpan& rows = out.keys[s];
    cache->get(layer, call.context.step->sequences[s].id, rows.end - rows.begin,
               k.at(rows.begin * k.extents[1] * k.extents[2]),
               v.at(rows.begin * v.extents[1] * v.extents[2]));
  }
  out.k = std::move(k);
  out.v = std::move(v);
  return out;
}

Status update_cache(Call& call) {
  call.result();  // no elements: it signals that the write is done
  KvCache* cache = cache_of(call);
  if (cache == nullptr) return {};
  const Array k = contiguous(call.operand(0)), v = contiguous(call.operand(1));
  return put_rows(call, *cache, k, v, sequence_rows(call.context, k.extents[0]));
}

}  // namespace pw
