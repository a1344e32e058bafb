// Exports has_tensor_cores, tensor_product and tensor_kernel.
#include "backends/cuda/tensor_product.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "backends/rowprogram/cxx.hpp"

namespace pw::cuda {
namespace {

constexpr std::string_view kTensorBody =
    R"(  PW_KEPT(kept);
  pw_product<pw_{in}, {bm}, {bn}, {down}, {across}, {stages}, {form}, {wide_a}, {wide_b}, {depth}LL,
             {columns}LL>(
      kept, p{a}, p{b}, rows, [&](long long row, long long column0, float s0, float s1, bool two) {{
        const auto value = [&](long long column, float sum) {{ return {value}; }};
        const {stored} x0 = {store_0}, x1 = two ? {store_1} : 0;
        pw_store_pair<{even}>(p{out} + row * {columns}LL + column0, x0, x1, two);
      }});
)";

/// 86 of "sm_86"; 0 where it is none.
int number_of(std::string_view arch) {
  int out = 0;
  if (arch.substr(0, 3) == "sm_") std::from_chars(arch.data() + 3, arch.data() + arch.size(), out);
  return out;
}

bool is_byte(DType dtype) { return dtype == DType::f8e4m3 || dtype == DType::f8e5m2; }

/// What an architecture that the model does not know is taken for.
const TensorMachine& machine_or_nearest(std::string_view arch) {
  if (const TensorMachine* known = tensor_machine(arch)) return *known;
  const int number = number_of(arch);
  return *tensor_machine(number >= 120   ? "sm_120"
                         : number >= 100 ? "sm_100"
                         : number >= 90  ? "sm_90"
                                         : "sm_80");
}

ProductTile tile_of(const TensorProduct& p, const TensorChoice& choice) {
  if (choice.tile) return *choice.tile;
  TensorMachine machine = machine_or_nearest(choice.arch);
  if (machine.byte_flops == 0) machine.byte_flops = machine.flops;
  return choose_tile(machine, {std::max<std::int64_t>(choice.rows, 1), p.depth, p.columns,
                               size_of(p.in), size_of(p.out)});
}

}  // namespace

bool has_tensor_cores(std::string_view arch, DType dtype) {
  const int number = number_of(arch);
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

std::optional<Kernel> tensor_product(const TensorProduct& p, const TensorChoice& choice) {
  if (!has_tensor_cores(choice.arch, p.in) || p.depth < 1 || p.columns < 1) return std::nullopt;
  const ProductTile tile = tile_of(p, choice);
  const std::int64_t each = 16 / size_of(p.in);
  const std::int64_t along_b = p.b_transposed ? p.depth : p.columns;
  const bool wide_a = p.depth % each == 0;
  const bool wide_b = along_b % each == 0 && (p.b_transposed || !is_byte(p.in));
  const std::string_view form = p.b_transposed  ? "pw_along"
                                : is_byte(p.in) ? "pw_across"
                                                : "pw_down";
  const std::size_t result = p.arguments.size() - 1;
  const auto stored = [&](std::string_view value) {
    return rows::cxx::is_narrow(p.out) ? fmt::format("pw_to_{}({})", name(p.out), value)
                                       : std::string(value);
  };
  WrittenKernel text;
  text.op = p.op;
  text.arguments = p.arguments;
  text.signature = p.signature;
  text.rows = p.rows;
  text.threads = tile.threads();
  text.rows_per_block = tile.rows;
  text.column_blocks = static_cast<int>((p.columns + tile.columns - 1) / tile.columns);
  text.why = "its rows are not aligned to 16 bytes, or one element for a row or column";
  text.body = fmt::format(
      kTensorBody, fmt::arg("in", name(p.in)), fmt::arg("bm", tile.rows),
      fmt::arg("bn", tile.columns), fmt::arg("down", tile.down), fmt::arg("across", tile.across),
      fmt::arg("stages", tile.stages), fmt::arg("form", form), fmt::arg("wide_a", wide_a),
      fmt::arg("wide_b", wide_b), fmt::arg("depth", p.depth), fmt::arg("columns", p.columns),
      fmt::arg("a", p.a), fmt::arg("b", p.b), fmt::arg("out", result), fmt::arg("value", p.value),
      fmt::arg("stored", rows::cxx::storage(p.out)),
      fmt::arg("store_0", stored("value(column0, s0)")),
      fmt::arg("store_1", stored("value(column0 + 1, s1)")), fmt::arg("even", p.columns % 2 == 0));
  Kernel out = tensor_kernel(text, tile.shared_bytes());
  const auto wide = [&](const ElementAccess& e) {
    return (e.argument == p.a && wide_a) || (e.argument == p.b && wide_b) ||
           (e.argument == result && p.columns % 2 == 0);
  };
  out.elements.erase(std::remove_if(out.elements.begin(), out.elements.end(), wide),
                     out.elements.end());
  out.group_reads = (wide_a ? 1 : 0) + (wide_b ? 1 : 0);
  return out;
}

}  // namespace pw::cuda
