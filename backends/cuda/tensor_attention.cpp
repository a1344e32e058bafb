// Exports tensor_attention and AttentionForms.
#include "backends/cuda/tensor_attention.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "backends/cuda/tensor_product.hpp"
#include "backends/rowprogram/cxx.hpp"

namespace pw::cuda {
namespace {

constexpr std::string_view kAttentionBody =
    R"(  PW_KEPT(kept);
  pw_attention<pw_{in}, {down}, {tall}, {strands}, {keys}, {width}, {share}, {groups}, {page}, {parts}>(
      kept, p0, p1, p2, pw_pages{{p3, p4, p5}}, rows, {factor},
      [&](int part, long long token, int head, float largest, float total) {{
        {keep}
      }},
      [&](int part, long long token, int head, int column, float y0, float y1) {{
        {finish}
      }});
)";

constexpr std::string_view kAttentionKeep =
    R"(pw_write2(sums + ((part * rows + token) * {heads} + head) * {floats} + {width},
                  pw_bits(largest), pw_bits(total));)";
constexpr std::string_view kAttentionPart =
    R"(pw_write2(sums + ((part * rows + token) * {heads} + head) * {floats} + column, pw_bits(y0),
                  pw_bits(y1));)";
constexpr std::string_view kAttentionFinish =
    R"(const auto finished = [&](float y) {{
          {divide}return {store};
        }};
        pw_store_pair<true>(p7 + (token * {heads} + head) * {width} + column, finished(y0),
                            finished(y1), true);)";
constexpr std::string_view kAttentionAdd =
    R"(  pw_add_attended<{parts}, {heads}, {width}>(
      sums, p4, rows, {factor}, [&](long long token, int head, int column, float y0, float y1) {{
        {finish}
      }});
)";

constexpr int kAddThreadsOfAttention = 128;
constexpr std::int64_t kPartRow = 4;  // floats beside the sums: pw_part_row
constexpr float kLog2E = 1.44269504F;

class AttentionWriter {
 public:
  AttentionWriter(const AttentionShape& shape, Context& context)
      : shape_(shape), context_(context) {}

  [[nodiscard]] AttentionForm form(const AttentionTile& tile) {
    AttentionForm out;
    out.tile = tile;
    const std::int64_t parts = tile.order.parts;
    if (parts > 1) {
      out.part_floats = parts * shape_.heads * (shape_.width + kPartRow);
      sums_ = context_.types.get(
          DType::f32, {context_.dims.constant(parts), shape_.rows,
                       context_.dims.constant(shape_.heads * (shape_.width + kPartRow))});
    }
    out.kernel = attention(tile);
    if (parts > 1) out.add = add(tile);
    return out;
  }

 private:
  /// Pointers `numbers` of q, k, v, tables, keys seen, pages, the divisor and y; sums where told.
  [[nodiscard]] WrittenKernel text_of(std::initializer_list<int> numbers, bool reads_sums,
                                      bool writes_sums) const {
    WrittenKernel text;
    text.op = "unified_attention";
    text.rows = shape_.rows;
    text.why = "keys are where their pages are";
    for (int i : numbers)
      text.add_pointer(context_, shape_.reads[static_cast<std::size_t>(i)], fmt::format("p{}", i),
                       false);
    if (reads_sums) text.add_pointer(context_, sums_, "sums", false);
    if (!writes_sums && shape_.divisor) text.add_pointer(context_, *shape_.divisor, "p6", false);
    if (writes_sums)
      text.add_pointer(context_, sums_, "sums", true);
    else
      text.add_pointer(context_, shape_.result, "p7", true);
    text.signature += "long long rows";
    return text;
  }

  [[nodiscard]] std::string factor() const {
    return rows::cxx::literal(1 / std::sqrt(static_cast<float>(shape_.width)) * kLog2E, DType::f32);
  }

  [[nodiscard]] std::string finish() const {
    const std::string divide =
        shape_.divisor
            ? fmt::format("y = pw_div(y, {});\n          ",
                          rows::cxx::loaded(context_.types[*shape_.divisor].dtype, "p6[0]"))
            : "";
    return fmt::format(kAttentionFinish, fmt::arg("divide", divide),
                       fmt::arg("heads", shape_.heads), fmt::arg("width", shape_.width),
                       fmt::arg("store", rows::cxx::is_narrow(shape_.out)
                                             ? fmt::format("pw_to_{}(y)", name(shape_.out))
                                             : std::string("y")));
  }

  [[nodiscard]] Kernel attention(const AttentionTile& tile) const {
    const std::int64_t share = shape_.heads / shape_.groups;
    const bool whole = tile.order.parts == 1;
    const auto of_part = [&](std::string_view text) {
      return fmt::format(fmt::runtime(text), fmt::arg("heads", shape_.heads),
                         fmt::arg("floats", shape_.width + kPartRow),
                         fmt::arg("width", shape_.width));
    };
    WrittenKernel text = text_of({0, 1, 2, 3, 4, 5}, false, !whole);
    text.rows_per_block = static_cast<int>(tile.tokens(share));
    text.threads = tile.threads();
    text.column_blocks = static_cast<int>(shape_.groups) * tile.order.parts;
    text.body = fmt::format(
        kAttentionBody, fmt::arg("in", name(shape_.in)), fmt::arg("down", tile.down),
        fmt::arg("tall", tile.tall), fmt::arg("strands", tile.order.strands),
        fmt::arg("keys", tile.order.keys), fmt::arg("width", shape_.width),
        fmt::arg("share", share), fmt::arg("groups", shape_.groups),
        fmt::arg("page", shape_.page_tokens), fmt::arg("parts", tile.order.parts),
        fmt::arg("factor", factor()), fmt::arg("keep", whole ? "" : of_part(kAttentionKeep)),
        fmt::arg("finish", whole ? finish() : of_part(kAttentionPart)));
    return tensor_kernel(text, tile.shared_bytes(shape_.width), tensor_attention_prelude());
  }

  [[nodiscard]] Kernel add(const AttentionTile& tile) const {
    WrittenKernel text = text_of({4}, true, false);
    text.op = "unified_attention (adds parts)";
    text.threads = kAddThreadsOfAttention;
    const std::int64_t each = std::int64_t{4} * kAddThreadsOfAttention;
    text.column_blocks = static_cast<int>((shape_.heads * shape_.width + each - 1) / each);
    text.body = fmt::format(kAttentionAdd, fmt::arg("parts", tile.order.parts),
                            fmt::arg("heads", shape_.heads), fmt::arg("width", shape_.width),
                            fmt::arg("factor", factor()), fmt::arg("finish", finish()));
    return tensor_kernel(text, 0, tensor_attention_prelude());
  }

  const AttentionShape& shape_;
  Context& context_;
  TypeId sums_;
};

}  // namespace

std::int64_t AttentionForms::part_floats(std::int64_t rows) const {
  std::int64_t out = 0, begin = 0;
  for (const auto& [end, form] : tiles.chosen) {
    if (rows > begin) out = std::max(out, std::min(rows, end) * all[form].part_floats);
    begin = end;
  }
  return out;
}

std::optional<AttentionForms> tensor_attention(const AttentionShape& shape, std::string_view arch,
                                               Context& context) {
  const bool halves = shape.in == DType::bf16 || shape.in == DType::f16;
  if (!halves || !has_tensor_cores(arch, shape.in) || shape.width % 16 != 0 || shape.width > 128 ||
      shape.width == 0 || shape.heads / shape.groups > 16)
    return std::nullopt;
  AttentionWriter writer(shape, context);
  AttentionForms out;
  out.tiles =
      attention_tiles(tensor_machine_or_nearest(arch), shape.heads, shape.groups, shape.width);
  for (const AttentionTile& tile : out.tiles.all) out.all.push_back(writer.form(tile));
  return out;
}

}  // namespace pw::cuda
