// Exports tensor_attention.
#include "backends/cuda/tensor_attention.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "backends/cuda/tensor_product.hpp"
#include "backends/rowprogram/cxx.hpp"

namespace pw::cuda {
namespace {

constexpr std::string_view kFormBody =
    R"(  PW_KEPT(kept);
  pw_attention<pw_{in}, {down}, {strands}, {keys}, {width}, {share}, {groups}, {page}>(
      kept, p0, p1, p2, pw_pages{{p3, p4, p5}}, rows, {scale},
      [&](long long token, int head, int column, float y0, float y1) {{
        const auto finished = [&](float y) {{
          {divide}return {store};
        }};
        pw_store_pair<true>(p{out} + (token * {heads} + head) * {width} + column, finished(y0),
                            finished(y1), true);
      }});
)";

struct FormSizes {
  int down = 1;  ///< tiles of 16 rows
  AttentionOrder order;
};

std::int64_t form_bytes(const FormSizes& sizes, std::int64_t width) {
  const std::int64_t words = (width / 8 + 7) / 8 * 8, warps = sizes.down * sizes.order.strands;
  const std::int64_t stages = std::int64_t{4} * sizes.order.keys * sizes.order.strands * words;
  const std::int64_t merged = sizes.order.strands > 1 ? warps * 32 * (1 + width / 8) : 0;
  return 16 * (std::max(stages, merged) + std::int64_t{sizes.down} * 16 * words);
}

AttentionForm form_of(WrittenKernel text, const AttentionShape& shape, const FormSizes& sizes) {
  const std::int64_t share = shape.heads / shape.groups;
  text.rows_per_block = sizes.down == 1 ? 1 : static_cast<int>(sizes.down * 16 / share);
  text.threads = 32 * sizes.down * sizes.order.strands;
  text.column_blocks = static_cast<int>(shape.groups);
  text.body = fmt::format(
      kFormBody, fmt::arg("in", name(shape.in)), fmt::arg("down", sizes.down),
      fmt::arg("strands", sizes.order.strands), fmt::arg("keys", sizes.order.keys),
      fmt::arg("width", shape.width), fmt::arg("share", share), fmt::arg("groups", shape.groups),
      fmt::arg("page", shape.page_tokens),
      fmt::arg("scale",
               rows::cxx::literal(1 / std::sqrt(static_cast<float>(shape.width)), DType::f32)),
      fmt::arg("heads", shape.heads), fmt::arg("divide", shape.divide),
      fmt::arg("out", text.arguments.size() - 1),
      fmt::arg("store", rows::cxx::is_narrow(shape.out)
                            ? fmt::format("pw_to_{}(y)", name(shape.out))
                            : std::string("y")));
  return {tensor_kernel(text, form_bytes(sizes, shape.width), tensor_attention_prelude()),
          sizes.order};
}

}  // namespace

std::optional<AttentionForms> tensor_attention(const WrittenKernel& text,
                                               const AttentionShape& shape, std::string_view arch) {
  const bool halves = shape.in == DType::bf16 || shape.in == DType::f16;
  if (!halves || !has_tensor_cores(arch, shape.in) || shape.width % 16 != 0 || shape.width > 128 ||
      shape.width == 0 || shape.heads / shape.groups > 16)
    return std::nullopt;
  return AttentionForms{form_of(text, shape, {1, {16, 4}}), form_of(text, shape, {4, {64, 1}})};
}

}  // namespace pw::cuda
