// Device attention: recognises attention pieces, manages the paged key-value cache, writes a step's
// tables, and records its launches. The cache doubles its pages when they run out.
//
// Invariant: every address that a launch reads is covered by address_hash(), so a captured graph is
// replayed only while its pages stay in place. Cost: a step writes tables linear in its rows and in
// the pages of its sequences; the plain kernel reads the visible keys once for each row and head.
#include "cuda/kernels/attention/attention.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "backends/sequences.hpp"
#include "base/hash.hpp"
#include "base/try.hpp"
#include "codegen/rowprogram/cxx.hpp"
#include "cuda/kernels/attention/attention_accesses.hpp"

namespace pw::cuda {
namespace {

constexpr int kThreads = 64;

/// Returns the layer of a step's cache that represents all layers.
KvCache::Layer all_layers() { return {0, "(all)"}; }

/// Stores keys and values: a block for each token.
constexpr std::string_view kPut =
    R"(  const long long row = blockIdx.x;
  const long long slot = pw_load(p2, row);
  if (slot < 0) return;
  for (long long i = threadIdx.x; i < {row}LL; i += {threads}) {{
    pw_store(p3, slot * {row}LL + i, pw_load(p0, row * {row}LL + i));
    pw_store(p4, slot * {row}LL + i, pw_load(p1, row * {row}LL + i));
  }}
)";

/// Plain attention: a block for each row of a head. Keys are processed in chunks of one key per
/// thread, in two passes: each thread computes the score of one key. The maximum is needed before
/// the first weight is added, so that the order of sums is the interpreter's.
constexpr std::string_view kAttend =
    R"(  PW_SHARED(float, weights, {threads});
  const long long row = blockIdx.x / {heads}, head = blockIdx.x % {heads};
  const long long group = head / {share};
  const int t = threadIdx.x;
  const long long seen = pw_load(p4, row), table = pw_load(p3, row);
  const long long own = (row * {heads} + head) * {width};
  const auto place = [&](long long j) {{
    const long long page = pw_load(p5, table + j / {page});
    return ((page * {page} + j % {page}) * {groups} + group) * {width};
  }};
  const auto score = [&](long long j) {{
    const long long at = place(j);
    float dot = 0.0f;
    for (int d = 0; d < {width}; ++d) dot = pw_fma({load_q}, {load_k}, dot);
    return pw_mul(dot, {scale});
  }};
  float largest = -pw_float(0x7f800000u);
  for (long long j = t; j < seen; j += {threads}) {{
    const float s = score(j);
    largest = s > largest || s != s ? s : largest;
  }}
  pw_put(weights, t, largest);
  __syncthreads();
  for (int i = 0; i < {threads}; ++i) {{
    const float s = pw_at(weights, i);
    largest = s > largest || s != s ? s : largest;
  }}
  __syncthreads();
  float sums[{each}], total = 0.0f;
  for (int e = 0; e < {each}; ++e) sums[e] = 0.0f;
  for (long long j0 = 0; j0 < seen; j0 += {threads}) {{
    pw_put(weights, t, j0 + t < seen ? pw_exp(pw_sub(score(j0 + t), largest)) : 0.0f);
    __syncthreads();
    const int count = seen - j0 < {threads} ? (int)(seen - j0) : {threads};
    for (int i = 0; i < count; ++i) {{
      const float w = pw_at(weights, i);
      const long long at = place(j0 + i);
      total = pw_add(total, w);
      for (int e = 0; e < {each}; ++e) {{
        const int d = t + e * {threads};
        if (d < {width}) sums[e] = pw_fma(w, {load_v}, sums[e]);
      }}
    }}
    __syncthreads();
  }}
  for (int e = 0; e < {each}; ++e) {{
    const int d = t + e * {threads};
    if (d >= {width}) continue;
    float y = seen == 0 ? 0.0f : pw_div(sums[e], total);
    {divide}pw_store(p{out}, own + d, {store});
  }}
)";

bool fits(DType dtype) { return rows::cxx::is_narrow(dtype) || dtype == DType::f32; }

std::string pointer(DType dtype, bool written, int number) {
  return fmt::format("{}{}* __restrict__ p{}, ", written ? "" : "const ", rows::cxx::storage(dtype),
                     number);
}

constexpr std::size_t kRead = 4;  // q, k, v and the divisor; later operands are not read

bool is_op(const Graph& piece, NodeId node, Primitive op) {
  return node.valid() && piece.op_of(node).primitive == op && !piece.op_of(node).has_body();
}

/// Returns the attention node of a piece that contains only it and, optionally, the write of the
/// same keys and values to its layer's cache; invalid for other pieces.
NodeId attention_node(const Graph& piece) {
  const NodeId first = piece.first();
  if (is_op(piece, first, Primitive::unified_attention) && piece.node_count() == 1) return first;
  if (!is_op(piece, first, Primitive::unified_kv_cache_update) || piece.node_count() != 2)
    return {};
  const NodeId node = piece.next(first);
  const bool same = is_op(piece, node, Primitive::unified_attention) &&
                    piece.operand(node, 1) == piece.operand(first, 0) &&
                    piece.operand(node, 2) == piece.operand(first, 1) &&
                    layer_name(piece, node) == layer_name(piece, first) &&
                    !piece.is_output(piece.result(first));
  return same ? node : NodeId();
}

/// Returns the kernel that puts keys and values into their pages.
WrittenKernel put_kernel(const AttentionKernels& out, const std::vector<TypeId>& types,
                         TypeId numbers, const AttentionSizes& sizes) {
  WrittenKernel put;
  put.op = "put keys and values";
  put.arguments = {types[1], types[2], numbers, types[1], types[2]};
  put.results = 2;
  put.rows = out.rows;
  put.threads = kThreads;
  put.signature = pointer(out.k, false, 0) + pointer(out.v, false, 1) +
                  pointer(DType::i64, false, 2) + pointer(out.k, true, 3) +
                  pointer(out.v, true, 4) + "long long rows";
  put.body = fmt::format(kPut, fmt::arg("row", out.row), fmt::arg("threads", kThreads));
  put.why = "page tables determine where rows are written";
  put.by_data = put_accesses(sizes, kThreads);
  return put;
}

/// Returns the kernel that attends to the keys and values in pages.
WrittenKernel attend_kernel(const AttentionKernels& out, const std::vector<TypeId>& types,
                            TypeId numbers, const AttentionSizes& sizes, Context& context) {
  const bool divided = out.operands.size() > 3;
  const DType to = context.types[types.back()].dtype;
  const int last = divided ? 7 : 6;
  const auto load = [&](DType from, const std::string& element) {
    return rows::cxx::loaded(from, element);
  };
  WrittenKernel attend;
  attend.op = "unified_attention";
  attend.arguments = {types[0], types[1], types[2], numbers, numbers, numbers};
  attend.signature = pointer(context.types[types[0]].dtype, false, 0) + pointer(out.k, false, 1) +
                     pointer(out.v, false, 2) + pointer(DType::i64, false, 3) +
                     pointer(DType::i64, false, 4) + pointer(DType::i64, false, 5);
  if (divided) {
    attend.arguments.push_back(types[3]);
    attend.signature += pointer(context.types[types[3]].dtype, false, 6);
  }
  const std::string divide =
      divided ? fmt::format("y = pw_div(y, {});\n    ",
                            load(context.types[types[3]].dtype, "pw_load(p6, 0)"))
              : "";
  attend.arguments.push_back(types.back());
  attend.signature += pointer(to, true, last) + "long long rows";
  attend.rows = context.dims.mul(out.rows, context.dims.constant(out.heads));
  attend.threads = kThreads;
  attend.body = fmt::format(
      kAttend, fmt::arg("threads", kThreads), fmt::arg("heads", out.heads),
      fmt::arg("share", out.heads / out.groups), fmt::arg("groups", out.groups),
      fmt::arg("width", out.width), fmt::arg("page", out.page_tokens),
      fmt::arg("each", (out.width + kThreads - 1) / kThreads),
      fmt::arg("scale",
               rows::cxx::literal(1 / std::sqrt(static_cast<float>(out.width)), DType::f32)),
      fmt::arg("load_q", load(context.types[types[0]].dtype, "pw_load(p0, own + d)")),
      fmt::arg("load_k", load(out.k, "pw_load(p1, at + d)")),
      fmt::arg("load_v", load(out.v, "pw_load(p2, at + d)")), fmt::arg("divide", divide),
      fmt::arg("out", last),
      fmt::arg("store", rows::cxx::is_narrow(to) ? fmt::format("pw_to_{}(y)", name(to)) : "y"));
  attend.why = "page tables determine where keys are read";
  attend.by_data = attend_accesses(sizes, kThreads);
  return attend;
}

}  // namespace

std::optional<AttentionKernels> attention_kernels(const Graph& piece, std::int64_t page_tokens,
                                                  std::string_view arch,
                                                  const AttentionTiles* tiles, std::int64_t query) {
  const NodeId node = attention_node(piece);
  if (!node.valid() || piece.outputs().size() != 1) return std::nullopt;
  AttentionKernels out;
  Context& context = piece.context();
  std::vector<TypeId> types;
  for (std::size_t i = 0; i < std::min(piece.operand_count(node), kRead); ++i) {
    const ValueId v = piece.operand(node, i);
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
  // Copies, because types are interned below.
  const Shape q = context.types[types[0]].shape, k = context.types[types[1]].shape;
  if (q.size() != 3 || k.size() != 3 || context.types[types[2]].shape != k) return std::nullopt;
  const auto heads = context.dims.value(q[1]), width = context.dims.value(q[2]),
             groups = context.dims.value(k[1]);
  if (!heads || !width || !groups || *groups == 0 || *heads % *groups != 0 || k[2] != q[2])
    return std::nullopt;
  out.page_tokens = page_tokens;
  out.heads = *heads;
  out.groups = *groups;
  out.width = *width;
  out.rows = q[0];
  out.row = *groups * *width;
  out.k = dtype(1);
  out.v = dtype(2);

  const bool divided = out.operands.size() > 3;
  const DType to = dtype(types.size() - 1);
  AttentionSizes sizes{*heads,         *groups,        *width,     size_of(dtype(0)),
                       size_of(out.k), size_of(out.v), size_of(to)};
  if (divided) sizes.divisor = size_of(dtype(3));
  const TypeId numbers = context.types.get(DType::i64, {out.rows});
  out.put = written(put_kernel(out, types, numbers, sizes));
  out.attend = written(attend_kernel(out, types, numbers, sizes, context));
  if (dtype(0) == out.k && out.k == out.v) {
    AttentionShape shape;
    shape.in = dtype(0);
    shape.out = to;
    shape.rows = out.rows;
    shape.heads = *heads;
    shape.groups = *groups;
    shape.width = *width;
    shape.page_tokens = page_tokens;
    shape.reads = {types[0], types[1], types[2], numbers, numbers, numbers};
    if (divided) shape.divisor = types[3];
    shape.result = types.back();
    out.forms = tensor_attention(shape, arch, tiles, query, context);
  }
  return out;
}

void DeviceAttention::add(const AttentionKernels& kernels, const std::string& layer) {
  page_tokens_ = kernels.page_tokens;
  pools_[layer] = {kernels.k, kernels.v, kernels.row, 0, 0};
  if (kernels.forms) forms_.push_back(*kernels.forms);
}

/// The maximum over layers, which use the memory one after another.
std::int64_t DeviceAttention::sums_bytes(std::int64_t rows) const {
  std::int64_t floats = 0;  // layers use them one after another
  for (const AttentionForms& forms : forms_) floats = std::max(floats, forms.part_floats(rows));
  return floats * size_of(DType::f32);
}

std::int64_t DeviceAttention::arrived_bytes(std::int64_t rows) const {
  std::int64_t groups = 0;
  for (const AttentionForms& forms : forms_) groups = std::max(groups, forms.groups);
  return rows * groups * size_of(DType::i32);
}

/// Existing contents are kept.
Status DeviceAttention::grow(Address& address, std::int64_t old_bytes, std::int64_t bytes,
                             const std::string& what) {
  auto larger = PW_TRY(allocate_(bytes, what));
  if (old_bytes > 0) {
    LaunchNode copy;
    copy.kind = LaunchNode::Kind::copy;
    copy.name = "copy";
    copy.reads = {{DType::u8, {old_bytes}, address}};
    copy.writes = {{DType::u8, {old_bytes}, larger}};
    if (auto done = driver_.launch(copy); !done) return done;
  }
  address = larger;
  return {};
}

std::int64_t DeviceAttention::page_bytes(const Pool& pool, DType dtype) const {
  return page_tokens_ * pool.row * size_of(dtype);
}

std::int64_t DeviceAttention::table_bytes(std::int64_t pages, std::int64_t rows) {
  return (3 * rows + pages) * size_of(DType::i64);
}

std::int64_t DeviceAttention::bytes(std::int64_t pages, std::int64_t rows) const {
  std::int64_t out = table_bytes(pages, rows) + sums_bytes(rows) + arrived_bytes(rows);
  for (const auto& [layer, pool] : pools_)
    out += pages * (page_bytes(pool, pool.k) + page_bytes(pool, pool.v));
  return out;
}

/// Grows the pools, tables and split-KV memory; nothing shrinks, so addresses of captured graphs
/// stay valid unless a limit is exceeded.
Status DeviceAttention::reserve(std::int64_t pages, std::int64_t rows) {
  if (pages > pages_) {
    for (auto& [layer, pool] : pools_) {
      const std::int64_t k = page_bytes(pool, pool.k), v = page_bytes(pool, pool.v);
      if (auto done = grow(pool.k_pages, pages_ * k, pages * k, "keys and values"); !done)
        return done;
      if (auto done = grow(pool.v_pages, pages_ * v, pages * v, "keys and values"); !done)
        return done;
    }
    pages_ = pages;
  }
  if (const std::int64_t sums = sums_bytes(rows); sums > sums_bytes_) {
    if (auto done = grow(sums_, 0, sums, "sums of parts of keys"); !done) return done;
    sums_bytes_ = sums;
  }
  if (const std::int64_t arrived = arrived_bytes(rows); arrived > arrived_bytes_) {
    if (auto done = grow(arrived_, 0, arrived, "numbers of parts of keys"); !done) return done;
    if (auto done = driver_.fill(arrived_, 0, arrived); !done) return done;
    arrived_bytes_ = arrived;
  }
  const std::int64_t bytes = table_bytes(pages_, rows);
  if (bytes <= table_bytes_) return {};
  if (auto done = grow(table_, 0, bytes, "tables of pages"); !done) return done;
  table_bytes_ = bytes;
  return {};
}

std::int64_t DeviceAttention::place(const KvCache& cache, std::size_t page) {
  std::vector<std::int64_t>& places = places_[&cache];
  while (places.size() <= page) places.push_back(taken_++);
  return places[page];
}

/// Padding rows see no keys, so the kernels write zeros for them.
Result<std::vector<std::int64_t>> DeviceAttention::table_of(const Step& step, std::int64_t rows,
                                                            std::int64_t ahead) {
  if (step.cache == nullptr) once_ = KvCache(page_tokens_);
  KvCache& cache = step.cache == nullptr ? once_ : *step.cache;
  if (cache.page_tokens() != page_tokens_)
    return fail(error_in("attention", "PW1209",
                         fmt::format("the cache has pages of {} tokens, but the kernels use {}",
                                     cache.page_tokens(), page_tokens_)));
  const auto count = static_cast<std::size_t>(rows);
  std::vector<std::int64_t> out(3 * count, 0);
  std::fill_n(out.begin(), count, -1);
  std::size_t row = 0;
  for (const Sequence& s : step.sequences) {
    const std::int64_t past = step.cache == nullptr ? 0 : s.past;
    const std::int64_t fresh = std::min(s.new_tokens, static_cast<std::int64_t>(count - row));
    PW_TRY(cache.extend(all_layers(), s.id, past, std::max(fresh, ahead)));
    const auto first = static_cast<std::int64_t>(out.size() - 3 * count);
    for (std::size_t page : cache.table(all_layers(), s.id)) out.push_back(place(cache, page));
    for (std::int64_t i = past; i < past + fresh; ++i, ++row) {
      const std::int64_t page = out[3 * count + static_cast<std::size_t>(first + i / page_tokens_)];
      out[row] = page * page_tokens_ + i % page_tokens_;
      out[count + row] = first;
      out[2 * count + row] = i + 1;
    }
  }
  return out;
}

Status DeviceAttention::begin(const Step& step, std::int64_t rows, std::int64_t ahead) {
  const auto table = table_of(step, rows, ahead);
  if (!table) return tl::unexpected(table.error());
  if (auto done = reserve(taken_ <= pages_ ? pages_ : std::max(taken_, 2 * pages_), rows); !done)
    return done;
  return driver_.write(table_, table->data(),
                       static_cast<std::int64_t>(table->size() * sizeof(std::int64_t)));
}

Status DeviceAttention::keep(const Step& step, const Sequence& sequence, std::int64_t tokens) {
  if (step.cache == nullptr) return {};
  return step.cache->extend(all_layers(), sequence.id, sequence.past, tokens);
}

DeviceTables DeviceAttention::tables(std::int64_t rows) const {
  const auto part = [&](std::int64_t begin, std::int64_t count) {
    return DeviceTensor{
        DType::i64, {count}, table_ + static_cast<Address>(begin * size_of(DType::i64))};
  };
  return {part(0, rows), part(rows, rows), part(2 * rows, rows), part(3 * rows, pages_)};
}

DeviceTensor DeviceAttention::slots(std::int64_t rows) const {
  return {DType::i64, {rows}, table_};
}

DeviceTensor DeviceAttention::keys(const std::string& layer) const {
  const Pool& pool = pools_.at(layer);
  return {pool.k, {pages_ * page_tokens_ * pool.row}, pool.k_pages};
}

DeviceTensor DeviceAttention::values(const std::string& layer) const {
  const Pool& pool = pools_.at(layer);
  return {pool.v, {pages_ * page_tokens_ * pool.row}, pool.v_pages};
}

std::vector<LaunchNode> DeviceAttention::launches(const AttentionKernels& kernels,
                                                  const std::string& layer,
                                                  std::span<const DeviceTensor> inputs,
                                                  const DeviceTensor& output,
                                                  std::int64_t query) const {
  const DeviceTensor &q = inputs[kernels.operands[0]], &k = inputs[kernels.operands[1]],
                     &v = inputs[kernels.operands[2]];
  const std::int64_t rows = q.extents[0];
  const DeviceTables step = tables(rows);
  const DeviceTensor all_k = keys(layer), all_v = values(layer);
  LaunchNode put;
  put.name = kernels.put.name;
  put.reads = {k, v, step.slots};
  put.writes = {all_k, all_v};
  put.params = {rows};
  LaunchNode attend;
  attend.name = kernels.attend.name;
  attend.reads = {q, all_k, all_v, step.starts, step.seen, step.pages};
  if (kernels.operands.size() > 3) attend.reads.push_back(inputs[kernels.operands[3]]);
  attend.writes = {output};
  attend.params = {rows * kernels.heads};
  if (!kernels.forms) return {std::move(put), std::move(attend)};
  const AttentionForm& form = kernels.forms->of(rows, query);
  attend.name = form.kernel.name;
  attend.params = {rows};
  if (form.part_floats > 0) {
    attend.writes.push_back({DType::f32, {rows * form.part_floats}, sums_});
    attend.writes.push_back({DType::i32, {rows * kernels.groups}, arrived_});
  }
  return {std::move(put), std::move(attend)};
}

std::uint64_t DeviceAttention::address_hash() const {
  std::uint64_t hash =
      combine(combine(combine(table_, sums_), arrived_), static_cast<std::uint64_t>(pages_));
  for (const auto& [layer, pool] : pools_)
    hash = combine(combine(hash, pool.k_pages), pool.v_pages);
  return hash;
}

}  // namespace pw::cuda
