// Exports attention_kernels and DeviceAttention.
#include "backends/cuda/attention.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "backends/rowprogram/cxx.hpp"

namespace pw::cuda {
namespace {

constexpr int kThreads = 64;

/// A block has a token's keys and values.
constexpr std::string_view kPut =
    R"(  const long long row = blockIdx.x;
  const long long slot = p2[row];
  if (slot < 0) return;
  for (long long i = threadIdx.x; i < {row}LL; i += {threads}) {{
    p3[slot * {row}LL + i] = p0[row * {row}LL + i];
    p4[slot * {row}LL + i] = p1[row * {row}LL + i];
  }}
)";

/// A block has a row of one head. Keys go by as many as there are threads: each thread has the
/// score of one of them, then some columns of the sum of all. What was summed shrinks when a larger
/// score comes.
constexpr std::string_view kAttend =
    R"(  PW_SHARED(float, weights, {threads});
  const long long row = blockIdx.x / {heads}, head = blockIdx.x % {heads};
  const long long group = head / {share};
  const int t = threadIdx.x;
  const long long seen = p4[row], table = p3[row];
  const long long own = (row * {heads} + head) * {width};
  float sums[{each}];
  for (int e = 0; e < {each}; ++e) sums[e] = 0.0f;
  float largest = -pw_float(0x7f800000u), total = 0.0f;
  for (long long j0 = 0; j0 < seen; j0 += {threads}) {{
    float score = -pw_float(0x7f800000u);
    if (j0 + t < seen) {{
      const long long j = j0 + t;
      const long long at = ((p5[table + j / {page}] * {page} + j % {page}) * {groups} + group) * {width};
      float dot = 0.0f;
      for (int d = 0; d < {width}; ++d) dot = pw_fma({load_q}, {load_k}, dot);
      score = pw_mul(dot, {scale});
    }}
    pw_put(weights, t, score);
    __syncthreads();
    float most = largest;
    for (int i = 0; i < {threads}; ++i) {{
      const float s = pw_at(weights, i);
      most = s > most || s != s ? s : most;
    }}
    __syncthreads();
    pw_put(weights, t, j0 + t < seen ? pw_exp(pw_sub(score, most)) : 0.0f);
    __syncthreads();
    const float kept = largest == most ? 1.0f : pw_exp(pw_sub(largest, most));
    total = pw_mul(total, kept);
    for (int e = 0; e < {each}; ++e) sums[e] = pw_mul(sums[e], kept);
    const int count = seen - j0 < {threads} ? (int)(seen - j0) : {threads};
    for (int i = 0; i < count; ++i) {{
      const float w = pw_at(weights, i);
      const long long j = j0 + i;
      const long long at = ((p5[table + j / {page}] * {page} + j % {page}) * {groups} + group) * {width};
      total = pw_add(total, w);
      for (int e = 0; e < {each}; ++e) {{
        const int d = t + e * {threads};
        if (d < {width}) sums[e] = pw_fma(w, {load_v}, sums[e]);
      }}
    }}
    largest = most;
    __syncthreads();
  }}
  for (int e = 0; e < {each}; ++e) {{
    const int d = t + e * {threads};
    if (d >= {width}) continue;
    float y = seen == 0 ? 0.0f : pw_div(sums[e], total);
    {divide}p{out}[own + d] = {store};
  }}
)";

bool fits(DType dtype) { return rows::cxx::is_narrow(dtype) || dtype == DType::f32; }

std::string pointer(DType dtype, bool written, int number) {
  return fmt::format("{}{}* __restrict__ p{}, ", written ? "" : "const ", rows::cxx::storage(dtype),
                     number);
}

}  // namespace

std::optional<AttentionKernels> attention_kernels(const Graph& piece, std::int64_t page_tokens) {
  if (piece.node_count() != 1) return std::nullopt;
  const NodeId node = piece.first();
  if (piece.op_of(node).name != "unified_attention" || piece.op_of(node).has_body() ||
      piece.outputs().size() != 1)
    return std::nullopt;
  AttentionKernels out;
  Context& context = piece.context();
  std::vector<TypeId> types;
  for (ValueId v : piece.operands(node)) {
    if (!v.valid()) continue;
    const auto at = std::find(piece.inputs().begin(), piece.inputs().end(), v);
    if (at == piece.inputs().end() || piece.type(v) == Types::unknown()) return std::nullopt;
    out.operands.push_back(static_cast<std::size_t>(at - piece.inputs().begin()));
    types.push_back(piece.type(v));
  }
  types.push_back(piece.type(piece.result(node)));
  if (out.operands.size() < 3 || types.back() == Types::unknown()) return std::nullopt;
  const auto dtype = [&](std::size_t i) { return context.types[types[i]].dtype; };
  for (std::size_t i = 0; i < types.size(); ++i)
    if (!fits(dtype(i))) return std::nullopt;
  const Shape &q = context.types[types[0]].shape, &k = context.types[types[1]].shape;
  if (q.size() != 3 || k.size() != 3 || context.types[types[2]].shape != k) return std::nullopt;
  const auto heads = context.dims.value(q[1]), width = context.dims.value(q[2]),
             groups = context.dims.value(k[1]);
  if (!heads || !width || !groups || *groups == 0 || *heads % *groups != 0 || k[2] != q[2])
    return std::nullopt;
  const Attribute* layer = piece.attribute(node, "layer");
  const auto* named = layer == nullptr ? nullptr : std::get_if<std::string>(layer);
  out.layer = named != nullptr ? *named : "node " + std::string(piece.node_name(node));
  out.page_tokens = page_tokens;
  out.heads = *heads;
  out.row = *groups * *width;
  out.k = dtype(1);
  out.v = dtype(2);

  const TypeId numbers = context.types.get(DType::i64, {q[0]});
  WrittenKernel put;
  put.op = "put keys and values";
  put.arguments = {types[1], types[2], numbers, types[1], types[2]};
  put.results = 2;
  put.rows = q[0];
  put.threads = kThreads;
  put.signature = pointer(out.k, false, 0) + pointer(out.v, false, 1) +
                  pointer(DType::i64, false, 2) + pointer(out.k, true, 3) +
                  pointer(out.v, true, 4) + "long long rows";
  put.body = fmt::format(kPut, fmt::arg("row", out.row), fmt::arg("threads", kThreads));
  put.why = "rows go where their pages are";
  out.put = written(put);

  const bool divided = out.operands.size() > 3;
  const int last = divided ? 7 : 6;
  const auto load = [&](DType from, const std::string& element) {
    return rows::cxx::loaded(from, element);
  };
  WrittenKernel attend;
  attend.op = "unified_attention";
  attend.arguments = {types[0], types[1], types[2], numbers, numbers, numbers};
  attend.signature = pointer(dtype(0), false, 0) + pointer(out.k, false, 1) +
                     pointer(out.v, false, 2) + pointer(DType::i64, false, 3) +
                     pointer(DType::i64, false, 4) + pointer(DType::i64, false, 5);
  if (divided) {
    attend.arguments.push_back(types[3]);
    attend.signature += pointer(dtype(3), false, 6);
  }
  const DType to = dtype(types.size() - 1);
  attend.arguments.push_back(types.back());
  attend.signature += pointer(to, true, last) + "long long rows";
  attend.rows = context.dims.mul(q[0], context.dims.constant(*heads));
  attend.threads = kThreads;
  attend.body = fmt::format(
      kAttend, fmt::arg("threads", kThreads), fmt::arg("heads", *heads),
      fmt::arg("share", *heads / *groups), fmt::arg("groups", *groups), fmt::arg("width", *width),
      fmt::arg("page", page_tokens), fmt::arg("each", (*width + kThreads - 1) / kThreads),
      fmt::arg("scale", rows::cxx::literal(1 / std::sqrt(static_cast<float>(*width)), DType::f32)),
      fmt::arg("load_q", load(dtype(0), "p0[own + d]")),
      fmt::arg("load_k", load(out.k, "p1[at + d]")), fmt::arg("load_v", load(out.v, "p2[at + d]")),
      fmt::arg("divide",
               divided ? fmt::format("y = pw_div(y, {});\n    ", load(dtype(3), "p6[0]")) : ""),
      fmt::arg("out", last),
      fmt::arg("store", rows::cxx::is_narrow(to) ? fmt::format("pw_to_{}(y)", name(to)) : "y"));
  attend.why = "keys are where their pages are";
  out.attend = written(attend);
  return out;
}

Result<DeviceAttention::Rows> DeviceAttention::rows_of(KvCache& cache, const KvCache::Layer& layer,
                                                       const Step& step, std::int64_t rows) const {
  Rows out;
  out.slots.assign(static_cast<std::size_t>(rows), -1);
  out.first.assign(static_cast<std::size_t>(rows), 0);
  out.keys.assign(static_cast<std::size_t>(rows), 0);
  const std::int64_t page = cache.page_tokens();
  std::size_t row = 0;
  for (const Sequence& s : step.sequences) {
    const std::int64_t past = step.cache == nullptr ? 0 : s.past;
    const std::int64_t fresh = std::min(s.new_tokens, rows - static_cast<std::int64_t>(row));
    if (auto done = cache.extend(layer, s.id, past, fresh); !done) return forward(done);
    const auto& table = cache.table(layer, s.id);
    for (std::int64_t i = past; i < past + fresh; ++i, ++row) {
      const auto there = static_cast<std::int64_t>(table[static_cast<std::size_t>(i / page)]);
      out.slots[row] = there * page + i % page;
      out.first[row] = static_cast<std::int64_t>(out.pages.size());
      out.keys[row] = i + 1;
    }
    for (std::size_t p : table) out.pages.push_back(static_cast<std::int64_t>(p));
  }
  return out;
}

/// What is in the pages stays.
Result<std::monostate> DeviceAttention::grow(Pool& pool, std::size_t pages,
                                             std::int64_t page_tokens,
                                             const AttentionKernels& kernels) {
  if (pages <= pool.pages) return std::monostate{};
  const std::size_t wanted = std::max({pages, 2 * pool.pages, std::size_t{16}});
  for (auto [dtype, address] : {std::pair(kernels.k, &pool.k), std::pair(kernels.v, &pool.v)}) {
    const std::int64_t page_bytes = page_tokens * kernels.row * size_of(dtype);
    auto larger = allocate_(static_cast<std::int64_t>(wanted) * page_bytes, "keys and values");
    if (!larger) return forward(larger);
    if (pool.pages > 0) {
      const std::int64_t bytes = static_cast<std::int64_t>(pool.pages) * page_bytes;
      LaunchNode copy;
      copy.kind = LaunchNode::Kind::copy;
      copy.name = "copy";
      copy.reads = {{DType::u8, {bytes}, *address}};
      copy.writes = {{DType::u8, {bytes}, *larger}};
      if (auto done = driver_.launch(copy); !done) return done;
    }
    *address = *larger;
  }
  pool.pages = wanted;
  return std::monostate{};
}

Result<std::monostate> DeviceAttention::run(const AttentionKernels& kernels,
                                            std::span<const DeviceTensor> inputs,
                                            const DeviceTensor& output, const Step& step) {
  KvCache& cache = step.cache == nullptr ? once_ : *step.cache;
  const KvCache::Layer layer{0, kernels.layer};
  const DeviceTensor &q = inputs[kernels.operands[0]], &k = inputs[kernels.operands[1]],
                     &v = inputs[kernels.operands[2]];
  const std::int64_t rows = q.extents[0];
  if (cache.page_tokens() != kernels.page_tokens)
    return fail(error_in("attention layer " + kernels.layer, "PW1209",
                         fmt::format("the cache has pages of {} tokens, and the kernels of {}",
                                     cache.page_tokens(), kernels.page_tokens)));
  auto seen = rows_of(cache, layer, step, rows);
  if (!seen) return forward(seen);
  Pool& pool = pools_[{&cache, kernels.layer}];
  if (auto done = grow(pool, cache.pages(layer), cache.page_tokens(), kernels); !done) return done;

  std::vector<std::int64_t> table;
  const auto tensor = [&](const std::vector<std::int64_t>& part) {
    const auto at = static_cast<Address>(table.size() * sizeof(std::int64_t));
    table.insert(table.end(), part.begin(), part.end());
    return DeviceTensor{DType::i64, {static_cast<std::int64_t>(part.size())}, at};
  };
  DeviceTensor slots = tensor(seen->slots), first = tensor(seen->first), keys = tensor(seen->keys),
               pages = tensor(seen->pages);
  const auto bytes = static_cast<std::int64_t>(table.size() * sizeof(std::int64_t));
  if (bytes > table_bytes_) {
    auto larger = allocate_(2 * bytes, "tables of pages");
    if (!larger) return forward(larger);
    table_ = *larger;
    table_bytes_ = 2 * bytes;
  }
  if (auto done = driver_.write(table_, table.data(), bytes); !done) return done;
  for (DeviceTensor* t : {&slots, &first, &keys, &pages}) t->address += table_;

  const std::int64_t held =
      static_cast<std::int64_t>(pool.pages) * cache.page_tokens() * kernels.row;
  const DeviceTensor all_k{kernels.k, {held}, pool.k}, all_v{kernels.v, {held}, pool.v};
  LaunchNode put;
  put.name = kernels.put.name;
  put.reads = {k, v, slots};
  put.writes = {all_k, all_v};
  put.params = {rows};
  if (auto done = driver_.launch(put); !done) return done;
  LaunchNode attend;
  attend.name = kernels.attend.name;
  attend.reads = {q, all_k, all_v, first, keys, pages};
  if (kernels.operands.size() > 3) attend.reads.push_back(inputs[kernels.operands[3]]);
  attend.writes = {output};
  attend.params = {rows * kernels.heads};
  auto done = driver_.launch(attend);
  if (step.cache == nullptr)
    for (const Sequence& s : step.sequences) once_.end(s.id);
  return done;
}

}  // namespace pw::cuda
