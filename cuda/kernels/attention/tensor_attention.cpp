// Instantiates tensor_attention.cu and group_attention.cu for the heads, widths, page size and
// tiles of a piece. All of these are template arguments; only the rows of a step and its tables are
// run-time values, so one kernel serves every step.
#include "cuda/kernels/attention/tensor_attention.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "codegen/rowprogram/cxx.hpp"
#include "cuda/kernels/attention/attention_accesses.hpp"
#include "cuda/kernels/matmul/tensor_product.hpp"

namespace pw::cuda {
namespace {

constexpr std::string_view kByWarps =
    R"(  PW_KEPT(kept);
  pw_attention<pw_{in}, {down}, {tall}, {strands}, {keys}, {deep}, {at_a_time}, {width}, {share},
               {together}, {groups}, {page}, {parts}>(
      kept, p0, p1, p2, pw_pages{{p3, p4, p5}}, pw_sums{{{sums}}}, rows, {factor},
)";
constexpr std::string_view kByGroups =
    R"(  PW_KEPT(kept);
  PW_SHARED(unsigned long long, barriers, pw_group_turn + {down} / 4);
  pw_group_attention<pw_{in}, {down}, {keys}, {width}, {share}, {groups}, {page}>(
      kept, barriers, p0, p1, p2, pw_pages{{p3, p4, p5}}, rows, {factor},
)";
constexpr std::string_view kStoreTwo =
    R"(      [&](long long token, int head, int column, float y0, float y1) {{
        const auto finished = [&](float y) {{
          {divide}return {store};
        }};
        pw_store_pair<true>(p7 + (token * {heads} + head) * {width} + column, finished(y0),
                            finished(y1), true);
      }});
)";

constexpr std::int64_t kPartRow = 4;  // floats after the sums of a part
constexpr float kLog2E = 1.44269504F;

/// Writes one attention kernel for each tile.
class AttentionWriter {
 public:
  AttentionWriter(const AttentionShape& shape, const TensorMachine& machine, Context& context)
      : shape_(shape), machine_(machine), context_(context) {}

  [[nodiscard]] AttentionForm form(const AttentionTile& tile) {
    AttentionForm out;
    out.tile = tile;
    if (tile.order.parts > 1)
      out.part_floats = tile.order.parts * shape_.heads * (shape_.width + kPartRow);
    out.kernel = attention(tile);
    return out;
  }

 private:
  /// Writes the kernel's text. Pointers p0 to p5 are q, k, v, tables, key counts and pages, p6 the
  /// divisor and p7 y; with split-KV the partial sums and arrival counters follow.
  [[nodiscard]] WrittenKernel text_of(const AttentionTile& tile) {
    WrittenKernel text;
    text.op = "unified_attention";
    text.rows = shape_.rows;
    text.why = "page tables determine where keys are read";
    for (std::size_t i = 0; i < shape_.reads.size(); ++i)
      text.add_pointer(context_, shape_.reads[i], fmt::format("p{}", i), false);
    if (shape_.divisor) text.add_pointer(context_, *shape_.divisor, "p6", false);
    text.add_pointer(context_, shape_.result, "p7", true);
    if (const int parts = tile.order.parts; parts > 1) {
      const auto type = [&](DType dtype, const Shape& shape) {
        return context_.types.get(dtype, shape);
      };
      text.add_pointer(
          context_,
          type(DType::f32, {context_.dims.constant(parts), shape_.rows,
                            context_.dims.constant(shape_.heads * (shape_.width + kPartRow))}),
          "sums", true);
      text.add_pointer(context_,
                       type(DType::i32, {shape_.rows, context_.dims.constant(shape_.groups)}),
                       "arrived", true);
      text.results = 3;
    }
    text.signature += "long long rows";
    return text;
  }

  [[nodiscard]] AttentionSizes sizes() const {
    const std::int64_t in = size_of(shape_.in);
    AttentionSizes out{shape_.heads, shape_.groups, shape_.width, in, in, in, size_of(shape_.out)};
    out.page_tokens = shape_.page_tokens;
    if (shape_.divisor) out.divisor = size_of(context_.types[*shape_.divisor].dtype);
    return out;
  }

  [[nodiscard]] Kernel attention(const AttentionTile& tile) {
    const std::int64_t share = shape_.heads / shape_.groups;
    WrittenKernel text = text_of(tile);
    text.rows_per_block = static_cast<int>(tile.tokens(share));
    text.threads = tile.threads();
    // Limits the compiler to the registers that the model assumes.
    text.resident = static_cast<int>(
        std::max<std::int64_t>(1, machine_.resident(tile.threads(), tile.registers(shape_.width),
                                                    tile.shared_bytes(shape_.width))));
    text.column_blocks = static_cast<int>(shape_.groups) * tile.order.parts;
    text.body = body(tile);
    text.by_data = tensor_attention_accesses(sizes(), tile);
    return tensor_kernel(text, tile.shared_bytes(shape_.width), tensor_attention_prelude());
  }

  [[nodiscard]] std::string body(const AttentionTile& tile) const {
    const std::string divide =
        shape_.divisor ? fmt::format("y = pw_div(y, {});\n          ",
                                     rows::cxx::loaded(context_.types[*shape_.divisor].dtype,
                                                       "pw_load(p6, 0)"))
                       : "";
    const float factor = 1 / std::sqrt(static_cast<float>(shape_.width)) * kLog2E;
    return fmt::format(
        fmt::runtime(std::string(tile.grouped ? kByGroups : kByWarps) + std::string(kStoreTwo)),
        fmt::arg("in", name(shape_.in)), fmt::arg("down", tile.down), fmt::arg("tall", tile.tall),
        fmt::arg("strands", tile.order.strands), fmt::arg("keys", tile.order.keys),
        fmt::arg("deep", tile.deep),
        fmt::arg("at_a_time", tile.keys_at_a_time(shape_.width, shape_.page_tokens)),
        fmt::arg("width", shape_.width), fmt::arg("share", shape_.heads / shape_.groups),
        fmt::arg("together", tile.tokens(shape_.heads / shape_.groups)),
        fmt::arg("groups", shape_.groups), fmt::arg("page", shape_.page_tokens),
        fmt::arg("parts", tile.order.parts),
        fmt::arg("sums", tile.order.parts > 1 ? "sums, arrived" : "0, 0"),
        fmt::arg("factor", rows::cxx::literal(factor, DType::f32)), fmt::arg("divide", divide),
        fmt::arg("heads", shape_.heads),
        fmt::arg("store", rows::cxx::is_narrow(shape_.out)
                              ? fmt::format("pw_to_{}(y)", name(shape_.out))
                              : std::string("y")));
  }

  const AttentionShape& shape_;
  const TensorMachine& machine_;
  Context& context_;
};

}  // namespace

std::int64_t AttentionForms::part_floats(std::int64_t rows) const {
  std::int64_t out = 0;
  for (const AttentionTiles::Chosen* chosen : {&tiles.chosen, &tiles.decodes}) {
    std::int64_t begin = 0;
    for (const auto& [end, form] : *chosen) {
      if (rows > begin) out = std::max(out, std::min(rows, end) * all[form].part_floats);
      begin = end;
    }
  }
  return out;
}

std::optional<AttentionForms> tensor_attention(const AttentionShape& shape, std::string_view arch,
                                               const AttentionTiles* tiles, std::int64_t query,
                                               Context& context) {
  const bool halves = shape.in == DType::bf16 || shape.in == DType::f16;
  if (!halves || !has_tensor_cores(arch, shape.in) || shape.width % 16 != 0 || shape.width > 128 ||
      shape.width == 0 || shape.heads / shape.groups > 16)
    return std::nullopt;
  const TensorMachine machine = tensor_machine_or_nearest(arch);
  AttentionWriter writer(shape, machine, context);
  AttentionForms out;
  out.groups = shape.groups;
  out.tiles = tiles != nullptr
                  ? *tiles
                  : attention_tiles(machine, shape.heads, shape.groups, shape.width, query);
  for (const AttentionTile& tile : out.tiles.all) {
    if (!tile.fits(machine, shape.width)) return std::nullopt;
    out.all.push_back(writer.form(tile));
  }
  return out;
}

}  // namespace pw::cuda
