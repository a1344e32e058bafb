// Exports has_tensor_cores, tensor_product and tensor_kernel.
#include "backends/cuda/tensor_product.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "backends/rowprogram/cxx.hpp"
#include "base/ceil_div.hpp"
#include "base/hash.hpp"

namespace pw::cuda {
namespace {

constexpr std::string_view kProductBody =
    R"(  PW_KEPT(kept);
  pw_product<pw_{in}, {bm}, {bn}, {down}, {across}, {stages}, {shares}, {form}, {wide_a}, {wide_b},
             {depth}LL, {columns}LL>(
      kept, p{a}, p{b}, rows,
      [&](long long row, long long column0, float s0, float s1, bool two) {{
        {finish}
      }},
      [&](int tile, long long row, long long column0, float s0, float s1, bool two) {{
        {keep}
      }});
)";

constexpr std::string_view kProductAdd =
    R"(  pw_add_pieces<{bn}, {of_tile}, {shares}, {most}, {each}, {columns}LL>(
      sums, rows, [&](long long row, long long column0, float s0, float s1, bool two) {{
        {finish}
      }});
)";

constexpr std::string_view kFinish =
    R"(const auto value = [&](long long column, float sum) {{ return {value}; }};
        const {stored} x0 = {store_0}, x1 = two ? {store_1} : 0;
        pw_store_pair<{even}>(p{out} + row * {columns}LL + column0, x0, x1, two);)";

// A piece has BN columns, so that pairs are whole and aligned.
constexpr std::string_view kKeep =
    R"(pw_store_pair<true>(sums + (((int)blockIdx.y + tile) * rows + row) * {bn} + column0 -
                                (long long)tile * {bn}, s0, s1, two);)";

constexpr int kAddThreads = 128;
constexpr std::int64_t kWord = 16;      // bytes that copies and ldmatrix move
constexpr std::int64_t kStepWords = 8;  // of a step of a row of a, or a column of b
constexpr std::int64_t kSum = 4;        // bytes of a sum

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

class TensorWriter {
 public:
  TensorWriter(const TensorProduct& product, ProductTile tile, const TensorMachine& machine,
               Context& context)
      : p_(product), context_(context) {
    out_.tile = tile;
    resident_ = resident(machine, tile, size_of(product.in));
    division_ = divided(product.shape(0), tile);
  }

  TensorKernels run() {
    out_.finishes = division_.whole > 0;
    for (std::size_t i = 0; i < p_.operands.size(); ++i) {
      const bool factor = i == p_.a || i == p_.b;
      if (factor || out_.finishes) out_.product_reads.push_back(i);
      if (!factor && division_.cut()) out_.add_reads.push_back(i);
    }
    if (division_.cut())
      out_.sums = context_.types.get(
          DType::f32, {context_.dims.constant(division_.shares + division_.across - 1), p_.rows,
                       context_.dims.constant(out_.tile.columns)});
    out_.product = product_kernel();
    if (division_.cut()) out_.add = add_kernel();
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool even() const { return p_.columns % 2 == 0; }
  /// Whether rows of a, or of b as it is stored, are copied by words.
  [[nodiscard]] bool wide_a() const { return whole_words(p_.depth); }
  [[nodiscard]] bool wide_b() const {
    return p_.b_transposed ? whole_words(p_.depth) : !is_byte(p_.in) && whole_words(p_.columns);
  }
  [[nodiscard]] bool whole_words(std::int64_t elements) const {
    return elements * size_of(p_.in) % kWord == 0;
  }
  /// Columns that a thread adds.
  [[nodiscard]] int added_together() const { return p_.columns % 4 == 0 ? 4 : 2; }
  [[nodiscard]] std::size_t result() const { return p_.operands.size(); }

  [[nodiscard]] WrittenKernel text_of(const std::vector<std::size_t>& reads) const {
    WrittenKernel text;
    text.op = p_.op;
    text.rows = p_.rows;
    text.why = "its rows are not aligned to 16 bytes, or one element for a row or column";
    for (std::size_t i : reads)
      text.add_pointer(context_, p_.operands[i], fmt::format("p{}", i), false);
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
    WrittenKernel text = text_of(out_.product_reads);
    if (cut) text.add_pointer(context_, out_.sums, "sums", true);
    if (out_.finishes) text.add_pointer(context_, p_.result, fmt::format("p{}", result()), true);
    text.results = (cut ? 1 : 0) + (out_.finishes ? 1 : 0);
    text.signature += "long long rows";
    text.threads = tile.threads();
    text.resident = static_cast<int>(std::max<std::int64_t>(resident_, 1));
    text.rows_per_block = tile.rows;
    text.column_blocks = static_cast<int>(division_.shares);
    text.body = fmt::format(
        kProductBody, fmt::arg("in", name(p_.in)), fmt::arg("bm", tile.rows),
        fmt::arg("bn", tile.columns), fmt::arg("down", tile.down), fmt::arg("across", tile.across),
        fmt::arg("stages", tile.stages), fmt::arg("shares", division_.shares),
        fmt::arg("form", form), fmt::arg("wide_a", wide_a()), fmt::arg("wide_b", wide_b()),
        fmt::arg("depth", p_.depth), fmt::arg("columns", p_.columns), fmt::arg("a", p_.a),
        fmt::arg("b", p_.b), fmt::arg("finish", out_.finishes ? finish() : ""),
        fmt::arg("keep", cut ? fmt::format(kKeep, fmt::arg("bn", tile.columns)) : ""));
    add_product_accesses(text);
    Kernel out = tensor_kernel(text, tile.shared_bytes());
    const auto wide = [&](const ElementAccess& e) {
      const bool sums = cut && e.argument == out_.product_reads.size();
      if (e.store) return even() || sums;
      const std::size_t operand = out_.product_reads[e.argument];
      return (operand == p_.a && wide_a()) || (operand == p_.b && wide_b());
    };
    out.elements.erase(std::remove_if(out.elements.begin(), out.elements.end(), wide),
                       out.elements.end());
    out.group_reads = (wide_a() ? 1 : 0) + (wide_b() ? 1 : 0);
    return out;
  }

  [[nodiscard]] Kernel add_kernel() const {
    const int each = added_together();
    WrittenKernel text = text_of(out_.add_reads);
    text.add_pointer(context_, out_.sums, "sums", false);
    text.add_pointer(context_, p_.result, fmt::format("p{}", result()), true);
    text.signature += "long long rows";
    text.op = p_.op + " (adds pieces)";
    text.threads = kAddThreads;
    text.column_blocks =
        static_cast<int>((p_.columns + each * kAddThreads - 1) / (each * kAddThreads));
    text.body = fmt::format(
        kProductAdd, fmt::arg("bn", out_.tile.columns), fmt::arg("of_tile", division_.deep),
        fmt::arg("shares", division_.shares), fmt::arg("most", division_.most_pieces),
        fmt::arg("each", each), fmt::arg("columns", p_.columns), fmt::arg("finish", finish()));
    add_adding_accesses(text);
    Kernel out = tensor_kernel(text, 0);
    const auto wide = [&](const ElementAccess& e) {
      return e.argument == out_.add_reads.size() && each == 4;
    };
    out.elements.erase(std::remove_if(out.elements.begin(), out.elements.end(), wide),
                       out.elements.end());
    out.group_reads = each == 4 ? 1 : 0;
    return out;
  }

  /// Of a row of y: columns of tiles that are one piece, and of the others those of all pieces,
  /// together and as pairs that are stored.
  struct Columns {
    std::int64_t whole = 0, pieces = 0, pairs = 0;
  };
  [[nodiscard]] Columns columns() const {
    Columns out;
    for (std::int64_t tile = 0; tile < division_.across; ++tile) {
      const std::int64_t width = out_.tile.columns, pieces = division_.pieces_of(tile);
      const std::int64_t there = std::min(width, p_.columns - tile * width);
      if (pieces == 1) {
        out.whole += there;
      } else {
        out.pieces += pieces * there;
        out.pairs += pieces * ceil_div(there, 2);
      }
    }
    return out;
  }

  /// Of pw_product: each tile of each step is fetched once and multiplied once. Whole words of
  /// shared memory are filled, be they there or not.
  void add_product_accesses(WrittenKernel& text) const {
    const ProductTile& tile = out_.tile;
    const std::int64_t in = size_of(p_.in), depth = p_.depth * in;
    const auto read = [&](std::size_t operand, bool wide) {
      return AccessNode::of_global(place(operand), false, wide ? kWord : in);
    };
    const AccessNode a = read(p_.a, wide_a()), b = read(p_.b, wide_b());
    text.add_by_row(a, depth / a.bytes * division_.across);
    text.add_by_block(b, depth * p_.columns / b.bytes);
    text.add_by_block(AccessNode::of_shared(true, kWord),
                      division_.steps() * kStepWords * (tile.rows + tile.columns));
    // Each warp loads its rows of a and its columns of b, two words of each an instruction.
    text.add_by_block(AccessNode::of_shared(false, kWord),
                      division_.across * ceil_div(depth, 2 * kWord) * 2 *
                          (tile.rows * tile.across + tile.columns * tile.down));
    if (out_.finishes) add_results(text, out_.product_reads, columns().whole);
    if (division_.cut())
      text.add_by_row(AccessNode::of_global(out_.product_reads.size(), true, 2 * kSum),
                      columns().pairs);
  }
  /// Of pw_add_pieces.
  void add_adding_accesses(WrittenKernel& text) const {
    const std::int64_t together = added_together() == 4 ? 4 : 1;
    text.add_by_row(AccessNode::of_global(out_.add_reads.size(), false, together * kSum),
                    columns().pieces / together);
    add_results(text, out_.add_reads, p_.columns - columns().whole);
  }
  /// Of so many columns of a row: other operands than factors are read for each element.
  void add_results(WrittenKernel& text, const std::vector<std::size_t>& reads,
                   std::int64_t count) const {
    for (std::size_t i = 0; i < reads.size(); ++i) {
      if (reads[i] == p_.a || reads[i] == p_.b) continue;
      const DType dtype = context_.types[p_.operands[reads[i]]].dtype;
      text.add_by_row(AccessNode::of_global(i, false, size_of(dtype)), count);
    }
    const std::int64_t together = even() ? 2 : 1;
    text.add_by_row(
        AccessNode::of_global(text.arguments.size() - 1, true, together * size_of(p_.out)),
        count / together);
  }
  /// Among the arguments of `product`.
  [[nodiscard]] std::size_t place(std::size_t operand) const {
    const auto& reads = out_.product_reads;
    return static_cast<std::size_t>(std::find(reads.begin(), reads.end(), operand) - reads.begin());
  }

  const TensorProduct& p_;
  Context& context_;
  ProductDivision division_;
  std::int64_t resident_ = 0;  // blocks of a multiprocessor, by the model
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
  return TensorWriter(p, tensor_tile_of(p, choice), tensor_machine_or_nearest(choice.arch), context)
      .run();
}

}  // namespace pw::cuda
