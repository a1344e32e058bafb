// Emits keep_topk as a written kernel, since selecting the largest elements is not a row program:
// it has no fixed reduction tree. Rows are independent, so threads need no communication; the row
// is read K + 2 times, which pays for the small K of expert routing.
#include "cuda/kernels/topk.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "codegen/rowprogram/cxx.hpp"

namespace pw::cuda {
namespace {

constexpr int kThreads = 128;

/// The kernel: one thread selects the K largest of a row's E elements by K scans, each of which
/// finds the next one in a total order (larger first, NaN before numbers, equal elements by index),
/// then rescales them by their sum. O(K · E) comparisons and no extra memory. S: stored type, R:
/// computed type; LOAD and STORE convert.
constexpr std::string_view kBody =
    R"(  typedef {stored} S;
  typedef {held} R;
  const long long row = (long long)blockIdx.x * {threads} + threadIdx.x;
  if (row >= rows) return;
  const auto before = [](R a, long long i, R b, long long j) {{
    if (a > b || (a != a && b == b)) return true;
    if (b > a || (b != b && a == a)) return false;
    return i < j;
  }};
  const S* p = p0 + row * {width};
  S* w = p1 + row * {width};
  R last = 0;
  long long at = -1;
  for (int round = 0; round < {kept}; ++round) {{
    R most = 0;
    long long next = -1;
    for (long long i = 0; i < {width}; ++i) {{
      const R v = {load};
      if (at >= 0 && !before(last, at, v, i)) continue;
      if (next < 0 || before(v, i, most, next)) {{
        most = v;
        next = i;
      }}
    }}
    last = most;
    at = next;
  }}
  R total = 0;
  for (long long i = 0; i < {width}; ++i) {{
    const R v = {load};
    if (at >= 0 && !before(last, at, v, i)) total = pw_add(total, v);
  }}
  for (long long i = 0; i < {width}; ++i) {{
    const R v = {load};
    const R share = at >= 0 && !before(last, at, v, i) ? pw_div(v, total) : (R)0;
    pw_store(w, i, {store});
  }}
)";

}  // namespace

std::optional<Kernel> topk_kernel(const Graph& graph, NodeId node) {
  const Op& op = graph.op_of(node);
  if (op.primitive != Primitive::keep_topk || op.has_body()) return std::nullopt;
  Context& context = graph.context();
  const TypeId id = graph.type(graph.result(node));
  if (id == Types::unknown()) return std::nullopt;
  const Type& type = context.types[id];
  const auto* k = std::get_if<std::int64_t>(graph.attribute(node, "k"));
  if (!is_float(type.dtype) || type.shape.empty() || k == nullptr) return std::nullopt;
  const auto width = context.dims.value(type.shape.back());
  DimId rows = context.dims.constant(1);
  for (std::size_t i = 0; i + 1 < type.shape.size() && rows.valid(); ++i)
    rows = context.dims.mul(rows, type.shape[i]);
  if (!width || !rows.valid()) return std::nullopt;

  const bool narrow = rows::cxx::is_narrow(type.dtype);
  const std::string_view storage = rows::cxx::storage(type.dtype);
  WrittenKernel out;
  out.op = op.name;
  out.arguments = {id, id};
  out.rows = rows;
  out.threads = out.rows_per_block = kThreads;
  out.why = "each thread processes a whole row";
  out.signature =
      fmt::format("const {0}* __restrict__ p0, {0}* __restrict__ p1, long long rows", storage);
  out.body = fmt::format(
      kBody, fmt::arg("stored", storage), fmt::arg("held", rows::cxx::held(type.dtype)),
      fmt::arg("threads", kThreads), fmt::arg("width", *width),
      fmt::arg("kept", std::clamp<std::int64_t>(*k, 0, *width)),
      fmt::arg("load", narrow ? fmt::format("pw_from_{}(pw_load(p, i))", name(type.dtype))
                              : "pw_load(p, i)"),
      fmt::arg("store", narrow ? fmt::format("pw_to_{}(share)", name(type.dtype)) : "share"));
  AccessNode access;  // a thread scans its row once for each kept element, and twice more
  access.bytes = static_cast<int>(size_of(type.dtype));
  access.live = true;
  access.times = (std::clamp<std::int64_t>(*k, 0, *width) + 2) * *width;
  out.accesses.push_back(access);
  access.write = true;
  access.argument = 1;
  access.times = *width;
  out.accesses.push_back(access);
  return written(out);
}

}  // namespace pw::cuda
