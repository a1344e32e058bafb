// Instantiates tensor_product.cu for a product: chooses the tile (given, tuned, or by the model),
// writes the call of pw_product with its constants, and records the kernel's accesses. All extents
// except the rows are template arguments, so that addresses and bounds are constants of the
// compiled code.
#include "cuda/kernels/matmul/tensor_product.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/division.hpp"
#include "base/hash.hpp"
#include "codegen/rowprogram/cxx.hpp"

namespace pw::cuda {
namespace {

constexpr std::string_view kProductBody =
    R"(  PW_KEPT(kept);
  pw_product<pw_{in}, {bm}, {bn}, {down}, {across}, {stages}, {shares}, {most}, {together},
             {at_once}, {at_a_time}, {grouped}, {form}, {wide_a}, {wide_b},
             {depth}LL, {columns}LL>(
      kept, p{a}, p{b}, pw_pieces{{{pieces}}}, rows,
      [&](long long row, long long column0, float s0, float s1, bool two) {{
        {finish}
      }});
)";

constexpr std::string_view kFinish =
    R"(const auto value = [&](long long column, float sum) {{ return {value}; }};
        const {stored} x0 = {store_0}, x1 = two ? {store_1} : 0;
        pw_store_pair<{even}>(p{out} + row * {columns}LL + column0, x0, x1, two);)";

constexpr std::int64_t kWord = 16;      // bytes that copies and ldmatrix move
constexpr std::int64_t kStepWords = 8;  // words of a step for a row of a, or a column of b
constexpr std::int64_t kMet = 8;        // bytes of a tile's counter

bool is_byte(DType dtype) { return dtype == DType::f8e4m3 || dtype == DType::f8e5m2; }

ProductTile tensor_tile_of(const TensorProduct& p, const TensorChoice& choice) {
  if (choice.tile) return *choice.tile;
  if (choice.schedules != nullptr) {
    const TunedSchedule* tuned = choice.schedules->find(p.key(), choice.arch, choice.rows);
    if (tuned != nullptr && tuned->product) return tuned->product->tile;
  }
  return choose_tile(tensor_machine_or_nearest(choice.arch),
                     p.shape(std::max<std::int64_t>(choice.rows, 1)));
}

/// Writes one kernel for a product and a tile, with its access tree.
class TensorWriter {
 public:
  TensorWriter(const TensorProduct& product, ProductTile tile, const TensorMachine& machine,
               Context& context)
      : p_(product), context_(context) {
    out_.tile = tile;
    resident_ = resident(machine, tile, size_of(product.in));
    at_a_time_ = resident_ * machine.multiprocessors;
    division_ = divided(product.shape(0), tile);
  }

  TensorKernels run() {
    if (division_.cut()) {
      Dims& dims = context_.dims;
      const auto number = [&](std::int64_t n) { return dims.constant(n); };
      const DimId tiles =
          dims.div(dims.add(p_.rows, number(out_.tile.rows - 1)), number(out_.tile.rows));
      out_.sums =
          context_.types.get(DType::f32, {tiles, number(division_.shares + division_.across - 1),
                                          number(out_.tile.rows * out_.tile.columns)});
      out_.met = context_.types.get(DType::i64, {tiles, number(division_.across)});
    }
    out_.product = product_kernel();
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool even() const { return p_.columns % 2 == 0; }
  /// Returns true if rows of a, or of b as stored, are copied by whole words.
  [[nodiscard]] bool wide_a() const { return whole_words(p_.depth); }
  [[nodiscard]] bool wide_b() const {
    return p_.b_transposed ? whole_words(p_.depth) : !is_byte(p_.in) && whole_words(p_.columns);
  }
  [[nodiscard]] bool whole_words(std::int64_t elements) const {
    return elements * size_of(p_.in) % kWord == 0;
  }
  [[nodiscard]] std::size_t result() const { return p_.operands.size(); }

  [[nodiscard]] WrittenKernel text_of() const {
    WrittenKernel text;
    text.op = p_.op;
    text.rows = p_.rows;
    text.why = "its rows are not aligned to 16 bytes, or it has one element per row or column";
    for (std::size_t i = 0; i < p_.operands.size(); ++i)
      text.add_pointer(context_, p_.operands[i], fmt::format("p{}", i), false);
    if (division_.cut()) {
      text.add_pointer(context_, *out_.sums, "sums", true);
      text.add_pointer(context_, *out_.met, "met", true);
      text.results += 2;
    }
    text.add_pointer(context_, p_.result, fmt::format("p{}", result()), true);
    return text;
  }

  [[nodiscard]] std::string finish() const {
    const auto stored = [&](std::string_view value) {
      return rows::cxx::is_narrow(p_.out) ? fmt::format("pw_to_{}({})", name(p_.out), value)
                                          : std::string(value);
    };
    return fmt::format(
        kFinish, fmt::arg("value", p_.value), fmt::arg("stored", rows::cxx::storage(p_.out)),
        fmt::arg("store_0", stored("value(column0, s0)")),
        fmt::arg("store_1", stored("value(column0 + 1, s1)")), fmt::arg("even", even()),
        fmt::arg("out", result()), fmt::arg("columns", p_.columns));
  }

  [[nodiscard]] Kernel product_kernel() const {
    const ProductTile& tile = out_.tile;
    const bool cut = division_.cut();
    const std::string_view form = p_.b_transposed  ? "pw_along"
                                  : is_byte(p_.in) ? "pw_across"
                                                   : "pw_down";
    const TileSquares squares = squares_of(tile, division_.most_pieces);
    WrittenKernel text = text_of();
    text.signature += "long long rows";
    text.threads = tile.threads();
    text.resident = static_cast<int>(std::max<std::int64_t>(resident_, 1));
    text.rows_per_block = tile.rows;
    text.column_blocks = static_cast<int>(division_.shares);
    text.body = fmt::format(
        kProductBody, fmt::arg("in", name(p_.in)), fmt::arg("bm", tile.rows),
        fmt::arg("bn", tile.columns), fmt::arg("down", tile.down), fmt::arg("across", tile.across),
        fmt::arg("stages", tile.stages), fmt::arg("shares", division_.shares),
        fmt::arg("most", division_.most_pieces), fmt::arg("together", squares.together),
        fmt::arg("at_once", squares.at_once), fmt::arg("at_a_time", at_a_time_),
        fmt::arg("grouped", tile.grouped), fmt::arg("form", form), fmt::arg("wide_a", wide_a()),
        fmt::arg("wide_b", wide_b()), fmt::arg("depth", p_.depth), fmt::arg("columns", p_.columns),
        fmt::arg("a", p_.a), fmt::arg("b", p_.b), fmt::arg("pieces", cut ? "sums, met" : "0, 0"),
        fmt::arg("finish", finish()));
    add_accesses(text);
    Kernel out = tensor_kernel(text, tile.shared_bytes() + (cut ? kWord : 0));
    const auto wide = [&](const ElementAccess& e) {
      if (e.store) return even() || e.argument + 1 < text.arguments.size();
      return (e.argument == p_.a && wide_a()) || (e.argument == p_.b && wide_b());
    };
    out.elements.erase(std::remove_if(out.elements.begin(), out.elements.end(), wide),
                       out.elements.end());
    out.group_reads = (wide_a() ? 1 : 0) + (wide_b() ? 1 : 0);
    if (cut) out.zero = p_.operands.size() + 1;
    return out;
  }

  /// Adds the accesses of the steps: each tile of each step is fetched once and multiplied once.
  /// Shared memory is filled in whole words, including those outside the matrices.
  void add_accesses(WrittenKernel& text) const {
    const ProductTile& tile = out_.tile;
    const std::int64_t in = size_of(p_.in), depth = p_.depth * in;
    const auto read = [&](std::size_t operand, bool wide) {
      return AccessNode::of_global(operand, false, wide ? kWord : in);
    };
    const AccessNode a = read(p_.a, wide_a()), b = read(p_.b, wide_b());
    text.add_by_row(a, depth / a.bytes * division_.across);
    text.add_by_block(b, depth * p_.columns / b.bytes);
    text.add_by_block(AccessNode::of_shared(true, kWord),
                      division_.steps() * kStepWords * (tile.rows + tile.columns));
    // Each warp, or group, loads its rows of a and its columns of b, two words of each per
    // instruction. Groups also multiply after the end of k.
    const std::int64_t instructions =
        tile.grouped ? division_.deep * kStepWords / 2 : ceil_div(depth, 2 * kWord);
    text.add_by_block(AccessNode::of_shared(false, kWord),
                      division_.across * instructions * 2 *
                          (tile.rows * tile.across + tile.columns * tile.down_loads()));
    if (division_.cut()) add_meetings(text);
    add_results(text);
  }

  /// Adds the accesses of divided tiles if the last block to arrive adds the tile, as in the
  /// emulator, where blocks run one after another.
  void add_meetings(WrittenKernel& text) const {
    const std::size_t sums = p_.operands.size(), met = sums + 1;
    std::int64_t pieces = 0, counted = 0, tiles = 0;
    for (std::int64_t tile = 0; tile < division_.across; ++tile) {
      const std::int64_t of_tile = division_.pieces_of(tile);
      if (of_tile == 1) continue;
      pieces += of_tile;
      counted += of_tile + division_.adders_of(tile);  // an adder arrives and leaves
      ++tiles;
    }
    // Whole tiles, including rows and columns outside the result.
    const std::int64_t words = 4 * out_.tile.rows * out_.tile.columns / kWord;
    text.add_by_block(AccessNode::of_global(sums, true, kWord), pieces * words);
    text.add_by_block(AccessNode::of_global(sums, false, kWord), (pieces - tiles) * words);
    text.add_by_block(AccessNode::of_global(met, false, kMet), counted);
    text.add_by_block(AccessNode::of_global(met, true, kMet), counted + tiles);
    text.add_by_block(AccessNode::of_shared(true, kWord), pieces);
    text.add_by_block(AccessNode::of_shared(false, kWord), pieces * out_.tile.threads());
  }

  /// Adds the results' accesses. Operands other than factors are read for each element.
  void add_results(WrittenKernel& text) const {
    for (std::size_t i = 0; i < p_.operands.size(); ++i) {
      if (i == p_.a || i == p_.b) continue;
      const DType dtype = context_.types[p_.operands[i]].dtype;
      text.add_by_row(AccessNode::of_global(i, false, size_of(dtype)), p_.columns);
    }
    const std::int64_t together = even() ? 2 : 1;
    text.add_by_row(
        AccessNode::of_global(text.arguments.size() - 1, true, together * size_of(p_.out)),
        p_.columns / together);
  }

  const TensorProduct& p_;
  Context& context_;
  ProductDivision division_;
  // From the model: resident blocks of a multiprocessor, and of all.
  std::int64_t resident_ = 0, at_a_time_ = 0;
  TensorKernels out_;
};

}  // namespace

ProductShape TensorProduct::shape(std::int64_t of_rows) const {
  return {of_rows, depth, columns, size_of(in), size_of(out)};
}

std::string TensorProduct::key() const {
  return fmt::format(
      "{:016x}", hash_text(fmt::format("product {} {} {} {} {} {} {} {}", name(in), name(out), a, b,
                                       b_transposed, value, depth, columns)));
}

bool has_tensor_cores(std::string_view arch, DType dtype) {
  const int number = arch_number(arch);
  return dtype == DType::bf16 || dtype == DType::f16 ? number >= 80
                                                     : is_byte(dtype) && number >= 89;
}

Kernel tensor_kernel(const WrittenKernel& text, std::int64_t shared_bytes,
                     std::string_view more_prelude) {
  Kernel out = written(text);
  out.source = fmt::format("{}\n{}\n{}", tensor_prelude(), more_prelude, out.source);
  out.shared_bytes = shared_bytes;
  return out;
}

std::optional<TensorKernels> tensor_product(const TensorProduct& p, const TensorChoice& choice,
                                            Context& context) {
  if (!has_tensor_cores(choice.arch, p.in) || p.depth < 1 || p.columns < 1) return std::nullopt;
  const TensorMachine machine = tensor_machine_or_nearest(choice.arch);
  const ProductTile tile = tensor_tile_of(p, choice);
  if (!tile.fits(machine, size_of(p.in))) return std::nullopt;
  return TensorWriter(p, tile, machine, context).run();
}

}  // namespace pw::cuda
