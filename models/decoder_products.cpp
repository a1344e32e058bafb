#include "models/decoder_products.hpp"

namespace pw {

namespace {

constexpr std::int64_t kFp4Group = 16;  ///< neighbours of a row with one scale, in NVFP4

bool quantises(DecoderNodes& n, std::int64_t from, std::int64_t to) {
  if (n.options.quant == "fp8-group")
    return from % n.options.group == 0 && to % n.options.group == 0;
  return n.options.quant == "nvfp4" ? from % kFp4Group == 0 : n.options.quant != "none";
}

/// Returns the weights as stored, two numbers a byte; their global scale is a part of alpha.
template <class OfRank>
ValueId fp4_product(DecoderNodes& n, ValueId x, const std::string& name, std::int64_t from,
                    std::int64_t to, const OfRank& of_rank) {
  const ValueId w = of_rank(n.weight(name + "_w", DType::u8, {to, from / 2}));
  const ValueId ws = of_rank(n.weight(name + "_ws", DType::f8e4m3, {to, from / kFp4Group}));
  const ValueId xg = n.everywhere(n.weight(name + "_xg", DType::f32, {}));
  const ValueId alpha = of_rank(n.weight(name + "_alpha", DType::f32, {}));
  const Values q = n.calls("scaled_fp4_quant", {x, n.one_element(xg, name + "_xg_of_rows")},
                           {{"swizzled", true}}, {name + "_q", name + "_s"});
  return n.call("scaled_fp4_mm",
                {q[0], w, q[1], ws, n.one_element(alpha, name + "_alpha_of_product")},
                {{"out", DType::bf16}}, {name});
}

template <class OfRank>
ValueId quantised_product(DecoderNodes& n, ValueId x, const std::string& name, std::int64_t from,
                          std::int64_t to, const OfRank& of_rank) {
  if (n.options.quant == "nvfp4") return fp4_product(n, x, name, from, to, of_rank);
  if (n.options.quant == "fp8-group") {
    const std::int64_t g = n.options.group;
    const ValueId w = of_rank(n.weight(name + "_w", DType::f8e4m3, {to, from}));
    const ValueId ws = of_rank(n.weight(name + "_ws", DType::f32, {to / g, from / g}));
    const Values q = n.calls("per_token_group_fp8_quant", {x},
                             {{"group", g},
                              {"column_major", true},
                              {"tma_aligned", true},
                              {"least", 1e-10},
                              {"ue8m0", true}},
                             {name + "_q", name + "_s"});
    const ValueId wt = n.transposed(w, name + "_wt"), wst = n.transposed(ws, name + "_wst");
    return n.call("block_scaled_mm", {q[0], wt, q[1], wst}, {{"group", g}, {"out", DType::bf16}},
                  {name});
  }
  const ValueId w = of_rank(n.weight(name + "_w", DType::f8e4m3, {from, to}));
  const ValueId ws = of_rank(n.weight(name + "_ws", DType::f32, {}));
  Values q;
  if (n.options.quant == "fp8") {
    const ValueId xs = n.everywhere(n.weight(name + "_xs", DType::f32, {}));
    const ValueId s = n.one_element(xs, name + "_xs_of_rows");
    q = {n.call("static_scaled_fp8_quant", {x, s}, {}, {name + "_q"}),
         n.one_element(xs, name + "_xs_of_product")};
  } else {
    q = n.calls("dynamic_per_token_fp8_quant", {x}, {}, {name + "_q", name + "_s"});
  }
  const ValueId s = n.one_element(ws, name + "_ws_of_product");
  return n.call("scaled_mm", {q[0], w, q[1], s}, {{"out", DType::bf16}}, {name});
}

}  // namespace

ValueId product(DecoderNodes& n, ValueId x, const std::string& name, std::int64_t from,
                std::int64_t to, Bias bias, bool whole) {
  const bool added = bias == Bias::own || (bias == Bias::of_sum && n.options.rank == 0);
  const auto of_rank = [&](ValueId input) { return whole ? n.everywhere(input) : input; };
  const auto bias_input = [&] { return n.weight(name + "_b", DType::bf16, {to}); };
  if (quantises(n, from, to)) {
    const ValueId y = quantised_product(n, x, name, from, to, of_rank);
    return added ? n.call("add", {y, bias_input()}, {}, {name + "_biased"}) : y;
  }
  const ValueId w = of_rank(n.weight(name + "_w", DType::bf16, {to, from}));
  if (!added) return n.call("mm", {x, n.transposed(w, name + "_wt")}, {}, {name});
  const ValueId b = bias_input();
  return n.call("addmm", {b, x, n.transposed(w, name + "_wt")}, {}, {name});
}

}  // namespace pw
