#include "models/decoder_feed_forward.hpp"

#include "models/decoder_products.hpp"

namespace pw {

namespace {

ValueId activated(DecoderNodes& n, ValueId x, const std::string& name) {
  const auto op = [&]() -> const char* {
    switch (n.parts.activation) {
      case Activation::silu: return n.parts.gated ? "silu_and_mul" : "silu";
      case Activation::gelu_tanh: return n.parts.gated ? "gelu_tanh_and_mul" : "gelu_tanh";
      case Activation::relu: return "relu";
    }
    return "";
  };
  return n.call(op(), {x}, {}, {name});
}

ValueId mixture_kernel(DecoderNodes& n, ValueId x, ValueId logits) {
  const NodeMaker::Given layer{{"layer", n.layer + ".mlp.experts"}};
  if (n.sizes.shared == 0)
    return n.calls("moe_forward", {x, logits, ValueId(), ValueId()}, layer, {"mixed", "rows"})[0];
  const ValueId shared = n.parts.router == Router::inside ? x : ValueId();
  const Values both =
      n.calls("moe_forward_shared", {x, logits, shared, ValueId()}, layer, {"shared", "mixed"});
  return n.call("add", {both[0], both[1]}, {}, {"experts_and_shared"});
}

ValueId router(DecoderNodes& n, ValueId x) {
  const ValueId w =
      n.everywhere(n.weight("router_w", DType::bf16, {n.sizes.experts, n.sizes.hidden}));
  const ValueId turned = n.transposed(w, "router_wt");
  if (!n.parts.router_bias) return n.call("mm", {x, turned}, {}, {"logits"});
  const ValueId bias = n.everywhere(n.weight("router_b", DType::bf16, {n.sizes.experts}));
  return n.call("addmm", {bias, x, turned}, {}, {"logits"});
}

ValueId softmax(DecoderNodes& n, ValueId x) {
  const NodeMaker::Given row{{"dim", std::int64_t{-1}}, {"keepdim", true}};
  const ValueId most = n.call("amax", {x}, row, {"most"});
  const ValueId below = n.call("sub", {x, most}, {}, {"below"});
  const ValueId powers = n.call("exp", {below}, {}, {"powers"});
  const ValueId total = n.call("sum", {powers}, row, {"total"});
  return n.call("div", {powers, total}, {}, {"shares"});
}

/// Returns bf16[n, experts], 0 except for the chosen experts.
ValueId weights(DecoderNodes& n, ValueId logits) {
  const ValueId wide = n.call("cast", {logits}, {{"dtype", DType::f32}}, {"scores"});
  const ValueId shares =
      n.parts.sigmoid ? n.call("sigmoid", {wide}, {}, {"shares"}) : softmax(n, wide);
  ValueId chosen = n.call("keep_topk", {shares}, {{"k", n.sizes.topk}}, {"chosen"});
  if (!n.parts.whole_weights) {
    const ValueId zero = n.constant(0.0, DType::f32, "zero");
    const ValueId mask = n.call("ne", {chosen, zero}, {}, {"is_chosen"});
    chosen = n.call("select", {mask, shares, zero}, {}, {"chosen_shares"});
  }
  return n.call("cast", {chosen}, {{"dtype", DType::bf16}}, {"expert_weights"});
}

/// Applies every expert to every row; experts that were not chosen add 0.
ValueId experts(DecoderNodes& n, ValueId x, ValueId weights) {
  const std::int64_t e = n.sizes.experts, width = n.sizes.expert_ffn / n.options.tp;
  const std::int64_t first = n.parts.gated ? 2 * width : width;
  const ValueId up = n.weight("experts_up_w", DType::bf16, {e, n.sizes.hidden, first});
  const ValueId down = n.weight("experts_down_w", DType::bf16, {e, width, n.sizes.hidden});
  const ValueId one =
      n.call("reshape", {x}, {{"shape", Shape{n.dim(1), n.tokens, n.dim(n.sizes.hidden)}}},
             {"one_of_rows"});
  const ValueId all =
      n.call("expand", {one}, {{"shape", Shape{n.dim(e), n.tokens, n.dim(n.sizes.hidden)}}},
             {"rows_for_each"});
  const ValueId h = activated(n, n.call("bmm", {all, up}, {}, {"experts_up"}), "experts_activated");
  const ValueId y = n.call("bmm", {h, down}, {}, {"experts_down"});
  const ValueId each =
      n.call("transpose", {weights}, {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}},
             {"weights_of_each"});
  const ValueId column = n.call("reshape", {each}, {{"shape", Shape{n.dim(e), n.tokens, n.dim(1)}}},
                                {"weight_columns"});
  const ValueId weighted = n.call("mul", {y, column}, {}, {"weighted_rows"});
  return n.call("sum", {weighted}, {{"dim", std::int64_t{0}}, {"keepdim", false}}, {"mixed"});
}

}  // namespace

ValueId mlp(DecoderNodes& n, ValueId x, std::int64_t width, const std::string& name) {
  const ValueId first =
      product(n, x, name + (n.parts.gated ? "gate_up" : "up"), n.sizes.hidden,
              n.parts.gated ? 2 * width : width, n.parts.ffn_bias ? Bias::own : Bias::none);
  return product(n, activated(n, first, name + "activated"), name + "down", width, n.sizes.hidden,
                 n.parts.ffn_bias ? Bias::of_sum : Bias::none);
}

ValueId mixture(DecoderNodes& n, ValueId x) {
  const ValueId logits = n.parts.router == Router::product || !n.options.opaque ? router(n, x) : x;
  if (n.options.opaque) return mixture_kernel(n, x, logits);
  const ValueId y = experts(n, x, weights(n, logits));
  if (n.sizes.shared == 0) return y;
  const ValueId z = mlp(n, x, n.sizes.shared * n.sizes.expert_ffn / n.options.tp, "shared_");
  return n.call("add", {z, y}, {}, {"experts_and_shared"});
}

}  // namespace pw
