// Exports has_tensor_cores, tensor_product and tensor_kernel.
#include "backends/cuda/tensor_product.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "backends/rowprogram/cxx.hpp"
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
    const std::int64_t each = 16 / size_of(p_.in);
    const std::int64_t along_b = p_.b_transposed ? p_.depth : p_.columns;
    const bool wide_a = p_.depth % each == 0;
    const bool wide_b = along_b % each == 0 && (p_.b_transposed || !is_byte(p_.in));
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
        fmt::arg("form", form), fmt::arg("wide_a", wide_a), fmt::arg("wide_b", wide_b),
        fmt::arg("depth", p_.depth), fmt::arg("columns", p_.columns), fmt::arg("a", p_.a),
        fmt::arg("b", p_.b), fmt::arg("finish", out_.finishes ? finish() : ""),
        fmt::arg("keep", cut ? fmt::format(kKeep, fmt::arg("bn", tile.columns)) : ""));
    Kernel out = tensor_kernel(text, tile.shared_bytes());
    const auto wide = [&](const ElementAccess& e) {
      const bool sums = cut && e.argument == out_.product_reads.size();
      if (e.store) return even() || sums;
      const std::size_t operand = out_.product_reads[e.argument];
      return (operand == p_.a && wide_a) || (operand == p_.b && wide_b);
    };
    out.elements.erase(std::remove_if(out.elements.begin(), out.elements.end(), wide),
                       out.elements.end());
    out.group_reads = (wide_a ? 1 : 0) + (wide_b ? 1 : 0);
    return out;
  }

  [[nodiscard]] Kernel add_kernel() const {
    const int each = p_.columns % 4 == 0 ? 4 : 2;
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
    Kernel out = tensor_kernel(text, 0);
    const auto wide = [&](const ElementAccess& e) {
      return e.argument == out_.add_reads.size() && each == 4;
    };
    out.elements.erase(std::remove_if(out.elements.begin(), out.elements.end(), wide),
                       out.elements.end());
    out.group_reads = each == 4 ? 1 : 0;
    return out;
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
