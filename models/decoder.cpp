// The graph of a family, part by part, as vLLM 0.33 compiles its models (the forms of its dumps
// after AOT autograd, read by `pwr import`). Some ops of a dump own their weights; the open form
// writes these out. Experts become one product each, weighted by the router and summed. Latent
// attention has explicit keys and values, with values padded to the width of keys. Sinks, windows,
// soft caps and the experts' own quantisation are omitted.
#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/try.hpp"
#include "graph/node_maker.hpp"
#include "models/families.hpp"

namespace pw {
namespace {

constexpr std::int64_t kMostDecoderNodes = 1'100'000, kMostDecoderNodesPerLayer = 100;
constexpr const char* kGroup = "tp:0";
constexpr std::int64_t kFp4Group = 16;  ///< neighbours of a row with one scale, in NVFP4

using Values = std::vector<ValueId>;

class Decoder : NodeMaker {
 public:
  Decoder(const ContextPtr& context, const FamilyOptions& options, const ModelFamily& family,
          const ModelSizes& sizes)
      : NodeMaker(context, std::string(family.name)),
        o_(options),
        p_(family.parts),
        s_(sizes),
        eps_(options.eps.value_or(family.parts.eps)),
        heads_(sizes.heads / options.tp),
        kv_heads_(std::max<std::int64_t>(1, sizes.kv_heads / options.tp)),
        turned_(p_.latent ? sizes.head / 2 : sizes.head) {
    graph.facts.symbols["n"] = {1, options.max_tokens, 1, "tokens"};
    tokens_ = context->dims.symbol("n");
  }

  Result<Graph> run() {
    ids_ = everywhere(graph.add_input("ids", type(DType::i32, {tokens_}), InputKind::input));
    positions_ =
        everywhere(graph.add_input("positions", type(DType::i64, {tokens_}), InputKind::input));
    group = "embed";
    if (p_.position_offset < 0)
      cos_sin_ = everywhere(graph.add_input(
          "cos_sin", type(DType::bf16, dims({o_.positions, turned_})), InputKind::buffer));
    ValueId x = embedded();
    for (std::int64_t i = 0; i < s_.layers && !failed(); ++i) x = layer(i, x);
    group = "final";
    prefix = "final_";
    graph.add_output(normalised(x));
    return finish();
  }

 private:
  // ---- layers
  ValueId embedded() {
    ValueId x;
    if (o_.tp == 1) {
      const ValueId ids = call("cast", {ids_}, {{"dtype", DType::i64}}, {"ids_i64"});
      x = call("embedding", {table("embed_w", s_.vocab), ids}, {}, {"embedded"});
    } else {
      const std::int64_t rows = s_.vocab / o_.tp;
      const ValueId part = call("vocab_parallel_embedding",
                                {ids_, weight("embed_w", DType::bf16, {rows, s_.hidden})},
                                {{"first", o_.rank * rows},
                                 {"last", (o_.rank + 1) * rows},
                                 {"added_first", s_.vocab},
                                 {"added_last", s_.vocab}},
                                {"embedded_part"});
      x = reduced(part, "embedded");
    }
    if (p_.scaled_embedding)
      x = call("mul", {x, everywhere(weight("normalizer", DType::bf16, {}))}, {}, {"scaled"});
    return p_.position_offset < 0 ? x : call("add", {x, place()}, {}, {"placed"});
  }

  ValueId table(const std::string& name, std::int64_t rows) {
    return everywhere(weight(name, DType::bf16, {rows, s_.hidden}));
  }

  /// Returns the learned row of each position.
  ValueId place() {
    ValueId at = positions_;
    if (p_.position_offset > 0)
      at =
          call("add", {at, constant(static_cast<double>(p_.position_offset), DType::i64, "offset")},
               {}, {"offset_positions"});
    return call("embedding", {table("position_w", o_.positions + p_.position_offset), at}, {},
                {"place"});
  }

  ValueId layer(std::int64_t i, ValueId x) {
    layer_ = fmt::format("layers.{}", i);
    const bool turns = p_.plain_every == 0 || (i + 1) % p_.plain_every != 0;
    begin_part(i, "attn");
    x = normalised(x);
    x = p_.latent ? latent_attention(x) : attention(x, turns);
    x = result_norm(reduced(x));
    begin_part(i, "mlp");
    x = normalised(x);
    x = p_.router != Router::none && i >= s_.dense_layers ? mixture(x) : mlp(x, s_.ffn / o_.tp);
    return result_norm(reduced(x));
  }

  void begin_part(std::int64_t i, const char* part) {
    prefix = fmt::format("l{}_{}_", i, part);
    group = fmt::format("layers.{}.{}", i, part);
  }

  // ---- norms
  /// Adds the residual, if there is one yet, keeps the sum as the next residual, and normalises it.
  ValueId normalised(ValueId x) {
    if (p_.norm == NormKind::layer) {
      residual_ = residual_.valid() ? call("add", {residual_, x}, {}, {"sum"}) : x;
      return layer_norm(residual_);
    }
    const ValueId w = norm_weight("norm", s_.hidden);
    if (!residual_.valid()) {
      residual_ = x;
      return call("rms_norm", {x, w}, {{"eps", eps_}}, {"normed"});
    }
    const Values both = calls("fused_add_rms_norm", {x, residual_, w},
                              {{"eps", eps_}, {"wide", true}}, {"normed", "sum"});
    residual_ = both[1];
    return both[0];
  }

  ValueId result_norm(ValueId x) {
    if (!p_.norm_results) return x;
    return call("rms_norm", {x, norm_weight("result_norm", s_.hidden)}, {{"eps", eps_}},
                {"result_normed"});
  }

  ValueId norm_weight(const std::string& name, std::int64_t width) {
    const ValueId w = everywhere(weight(name + "_w", DType::bf16, {width}));
    if (p_.norm != NormKind::rms_plus_one) return w;
    const ValueId wide = call("cast", {w}, {{"dtype", DType::f32}}, {name + "_w32"});
    return call("add", {wide, constant(1.0, DType::f64, name + "_one")}, {}, {name + "_w1"});
  }

  ValueId layer_norm(ValueId x) {
    const Given row{{"dim", std::int64_t{1}}, {"keepdim", true}};
    const ValueId w = everywhere(weight("norm_w", DType::bf16, {s_.hidden}));
    const ValueId bias = everywhere(weight("norm_b", DType::bf16, {s_.hidden}));
    const ValueId h = call("cast", {x}, {{"dtype", DType::f32}}, {"h"});
    const ValueId mean = call("mean", {h}, row, {"mean"});
    const ValueId off = call("sub", {h, mean}, {}, {"off"});
    const ValueId square = call("mul", {off, off}, {}, {"square"});
    const ValueId variance = call("mean", {square}, row, {"variance"});
    const ValueId centred = call("sub", {h, mean}, {}, {"centred"});
    const ValueId about =
        call("add", {variance, constant(eps_, DType::f64, "eps")}, {}, {"variance_eps"});
    const ValueId scale = call("rsqrt", {about}, {}, {"scale"});
    const ValueId unit = call("mul", {centred, scale}, {}, {"unit"});
    const ValueId weighted = call("mul", {unit, w}, {}, {"weighted_unit"});
    const ValueId y = call("add", {weighted, bias}, {}, {"normed32"});
    return call("cast", {y}, {{"dtype", DType::bf16}}, {"normed"});
  }

  // ---- attention
  struct Heads {
    ValueId q, k, v;
  };

  ValueId attention(ValueId x, bool turns) {
    const std::int64_t q_width = heads_ * s_.head, kv_width = kv_heads_ * s_.head;
    const ValueId qkv =
        product(x, "qkv", s_.hidden, q_width + 2 * kv_width, p_.qkv_bias ? Bias::own : Bias::none);
    const Shape sizes = dims({q_width, kv_width, kv_width});
    const bool rope = turns && p_.position_offset < 0;
    const Heads h = p_.head_norm == HeadNorm::before_rope ? normed_and_turned(qkv, sizes)
                    : rope                                ? turned_in_place(qkv, sizes)
                                                          : plain(qkv, sizes);
    ValueId q = in_heads(h.q, heads_, "qh");
    ValueId k = in_heads(h.k, kv_heads_, "kh");
    const ValueId v = in_heads(h.v, kv_heads_, "vh");
    if (p_.head_norm == HeadNorm::after_rope && turns) {
      q = unit_heads(q, "q");
      k = unit_heads(k, "k");
    }
    if (!turns) q = scaled_by_position(q);
    const ValueId y = attended(q, k, v);
    const ValueId flat = flat_rows(y, q_width, "flat");
    return product(flat, "o", q_width, s_.hidden, p_.out_bias ? Bias::of_sum : Bias::none);
  }

  ValueId attended(ValueId q, ValueId k, ValueId v) {
    const Attribute layer = layer_ + ".attn";
    const ValueId done = call("unified_kv_cache_update", {k, v}, {{"layer", layer}}, {"cached"});
    return call("unified_attention", {q, k, v, ValueId(), done}, {{"layer", layer}}, {"attended"});
  }

  Heads plain(ValueId qkv, const Shape& sizes) {
    const Values parts = split(qkv, sizes, {"q", "k", "v"});
    return {parts[0], parts[1], parts[2]};
  }

  /// Rotates the operands in place, so that later readers of qkv see the rotated values. As in a
  /// functionalised trace, each reader takes its part of the changed tensor. Parts written by
  /// another kernel are extracted again for each use.
  Heads turned_in_place(ValueId qkv, const Shape& sizes) {
    const Values first = split(qkv, sizes, {"q0", "k0", "v0"});
    const Values second = o_.quant == "none" ? first : split(qkv, sizes, {"q1", "k1", "v1"});
    const Values turned = rotated(first[0], second[1]);
    const std::int64_t q = heads_ * s_.head, k = kv_heads_ * s_.head;
    const ValueId with_q = scattered(qkv, turned[0], 1, 0, q, "qkv_turned_q");
    const ValueId both = scattered(with_q, turned[1], 1, q, q + k, "qkv_turned");
    const Values of_k = split(both, sizes, {"q2", "k2", "v2"});
    const Values of_v = split(both, sizes, {"q3", "k3", "v3"});
    const Values of_q = split(both, sizes, {"q4", "k4", "v4"});
    return {of_q[0], of_k[1], of_v[2]};
  }

  Heads normed_and_turned(ValueId qkv, const Shape& sizes) {
    const Values parts = split(qkv, sizes, {"q", "k", "v"});
    const ValueId qw = norm_weight("q_norm", s_.head), kw = norm_weight("k_norm", s_.head);
    const ValueId q = normed_heads(parts[0], qw, heads_, "q");
    const ValueId k = normed_heads(parts[1], kw, kv_heads_, "k");
    const Values turned = rotated(q, k);
    return {turned[0], turned[1], parts[2]};
  }

  ValueId normed_heads(ValueId x, ValueId w, std::int64_t heads, const std::string& name) {
    const ValueId in = in_heads(x, heads, name + "_heads");
    const ValueId normed = call("rms_norm", {in, w}, {{"eps", eps_}}, {name + "_normed"});
    return flat_rows(normed, heads * s_.head, name + "_flat");
  }

  ValueId unit_heads(ValueId x, const std::string& name) {
    const ValueId ones =
        call("full", {}, {{"shape", dims({s_.head})}, {"value", 1.0}, {"dtype", DType::f32}},
             {name + "_ones"});
    const ValueId wide = call("cast", {x}, {{"dtype", DType::f32}}, {name + "_wide"});
    const ValueId unit = call("rms_norm", {wide, ones}, {{"eps", eps_}}, {name + "_unit32"});
    return call("cast", {unit}, {{"dtype", DType::bf16}}, {name + "_unit"});
  }

  /// Applies Llama 4's temperature: log(floor((position + 1) / 8192) + 1) · 0.1 + 1.
  ValueId scaled_by_position(ValueId q) {
    const auto number = [&](double value, const char* name) {
      return constant(value, DType::f32, name);
    };
    const ValueId at = call("cast", {positions_}, {{"dtype", DType::f32}}, {"position32"});
    const ValueId next = call("add", {at, number(1.0, "one_a")}, {}, {"position_next"});
    const ValueId part = call("div", {next, number(8192.0, "floor_scale")}, {}, {"position_part"});
    const ValueId steps = call("floor", {part}, {}, {"position_steps"});
    const ValueId more = call("add", {steps, number(1.0, "one_b")}, {}, {"position_more"});
    const ValueId log = call("log", {more}, {}, {"position_log"});
    const ValueId small = call("mul", {log, number(0.1, "attn_scale")}, {}, {"position_small"});
    const ValueId scale = call("add", {small, number(1.0, "one_c")}, {}, {"temperature"});
    const ValueId column =
        call("reshape", {scale}, {{"shape", Shape{tokens_, dim(1), dim(1)}}}, {"temperatures"});
    const ValueId scaled = call("mul", {q, column}, {}, {"q_scaled32"});
    return call("cast", {scaled}, {{"dtype", DType::bf16}}, {"q_scaled"});
  }

  Values rotated(ValueId q, ValueId k) {
    return calls("rotary_embedding", {positions_, q, k, cos_sin_},
                 {{"head", turned_}, {"neox", p_.neox}}, {"qr", "kr"});
  }

  // ---- latent attention
  ValueId latent_attention(ValueId x) {
    const std::int64_t head = s_.head, key = head + turned_, r = s_.kv_rank;
    const auto [q_rows, latent] = latent_products(x, heads_ * key);
    const Values parts = split(latent, dims({r, turned_}), {"kv_c", "pe0"});
    const ValueId q0 = in_heads(q_rows, heads_, key, "q_heads");
    const ValueId q_pe = part(q0, 2, head, key, "q_pe");
    const ValueId pe1 = in_heads(parts[1], 1, turned_, "pe1");
    const Values turned =
        rotated(flat_rows(q_pe, heads_ * turned_, "q_pe_flat"), flat_rows(pe1, turned_, "pe_flat"));
    const ValueId qr = in_heads(turned[0], heads_, turned_, "q_turned");
    const ValueId kr =
        flat_rows(in_heads(turned[1], 1, turned_, "pe_turned"), turned_, "pe_squeezed");
    const ValueId latent_turned = scattered(latent, kr, 1, r, r + turned_, "latent_turned");
    const ValueId pe = split(latent_turned, dims({r, turned_}), {"kv_c2", "pe2"})[1];
    const ValueId q = in_place(
        scattered(in_heads(q_rows, heads_, key, "q_heads2"), qr, 2, head, key, "q_scattered"), key);
    const ValueId kv =
        call("rms_norm", {parts[0], norm_weight("kv_norm", r)}, {{"eps", eps_}}, {"kv_normed"});
    const ValueId k_pe = in_heads(pe, 1, turned_, "k_pe");
    const ValueId flat = o_.opaque ? latent_kernel(q, kv, k_pe) : latent_written_out(q, kv, k_pe);
    return product(flat, "o", heads_ * head, s_.hidden);
  }

  /// Returns the queries of all heads, and the latent with the rotated part of the key.
  std::pair<ValueId, ValueId> latent_products(ValueId x, std::int64_t q_width) {
    const std::int64_t latent_width = s_.kv_rank + turned_;
    if (s_.q_rank == 0) {
      const ValueId latent = product(x, "kv_a", s_.hidden, latent_width, Bias::none, true);
      return {product(x, "q", s_.hidden, q_width), latent};
    }
    const ValueId both = product(x, "qkv_a", s_.hidden, s_.q_rank + latent_width, Bias::none, true);
    const Values parts = split(both, dims({s_.q_rank, latent_width}), {"q_c", "latent"});
    const ValueId q_c = call("rms_norm", {parts[0], norm_weight("q_norm", s_.q_rank)},
                             {{"eps", eps_}}, {"q_normed"});
    return {product(q_c, "q_b", s_.q_rank, q_width), parts[1]};
  }

  /// Keeps the trace of an assignment to a part of q: it is written to itself.
  ValueId in_place(ValueId q, std::int64_t key) {
    const ValueId rows = flat_rows(q, heads_ * key, "q_rows");
    const ValueId to = in_heads(rows, heads_, key, "q_to"),
                  from = in_heads(rows, heads_, key, "q_from");
    return scattered(to, part(from, 2, s_.head, key, "q_part"), 2, s_.head, key, "q_turned_heads");
  }

  ValueId latent_kernel(ValueId q, ValueId kv, ValueId k_pe) {
    const Attribute layer = layer_ + ".attn";
    const ValueId scale = everywhere(weight("kv_scale", DType::f32, {}));
    const ValueId done = call("unified_mla_kv_cache_update", {kv, k_pe, scale},
                              {{"layer", layer}, {"format", std::string("auto")}}, {"cached"});
    return call("unified_mla_attention", {q, kv, k_pe, ValueId(), done},
                {{"layer", layer}, {"width", heads_ * s_.head}}, {"attended"});
  }

  ValueId latent_written_out(ValueId q, ValueId kv, ValueId k_pe) {
    const std::int64_t head = s_.head;
    const ValueId both = product(kv, "kv_b", s_.kv_rank, heads_ * 2 * head);
    const Values parts =
        calls("split", {in_heads(both, heads_, 2 * head, "kv_heads")},
              {{"dim", std::int64_t{2}}, {"sizes", dims({head, head})}}, {"k_plain", "v_heads"});
    const ValueId turned = call("expand", {k_pe}, {{"shape", rows(heads_, turned_)}}, {"k_pe_all"});
    const ValueId k = call("cat", {parts[0], turned}, {{"dim", std::int64_t{2}}}, {"k_heads"});
    const ValueId zeros =
        call("full", {}, {{"shape", rows(heads_, turned_)}, {"value", 0.0}, {"dtype", DType::bf16}},
             {"v_padding"});
    const ValueId v = call("cat", {parts[1], zeros}, {{"dim", std::int64_t{2}}}, {"v_padded"});
    const ValueId y = part(attended(q, k, v), 2, 0, head, "attended_values");
    return flat_rows(y, heads_ * head, "flat");
  }

  // ---- feed-forward layers
  ValueId mlp(ValueId x, std::int64_t width, const std::string& name = "") {
    const ValueId first =
        product(x, name + (p_.gated ? "gate_up" : "up"), s_.hidden, p_.gated ? 2 * width : width,
                p_.ffn_bias ? Bias::own : Bias::none);
    return product(activated(first, name + "activated"), name + "down", width, s_.hidden,
                   p_.ffn_bias ? Bias::of_sum : Bias::none);
  }

  ValueId activated(ValueId x, const std::string& name) {
    const auto op = [&]() -> const char* {
      switch (p_.activation) {
        case Activation::silu: return p_.gated ? "silu_and_mul" : "silu";
        case Activation::gelu_tanh: return p_.gated ? "gelu_tanh_and_mul" : "gelu_tanh";
        case Activation::relu: return "relu";
      }
      return "";
    };
    return call(op(), {x}, {}, {name});
  }

  ValueId mixture(ValueId x) {
    const ValueId logits = p_.router == Router::product || !o_.opaque ? router(x) : x;
    if (o_.opaque) return mixture_kernel(x, logits);
    const ValueId y = experts(x, weights(logits));
    if (s_.shared == 0) return y;
    const ValueId z = mlp(x, s_.shared * s_.expert_ffn / o_.tp, "shared_");
    return call("add", {z, y}, {}, {"experts_and_shared"});
  }

  ValueId mixture_kernel(ValueId x, ValueId logits) {
    const Given layer{{"layer", layer_ + ".mlp.experts"}};
    if (s_.shared == 0)
      return calls("moe_forward", {x, logits, ValueId(), ValueId()}, layer, {"mixed", "rows"})[0];
    const ValueId shared = p_.router == Router::inside ? x : ValueId();
    const Values both =
        calls("moe_forward_shared", {x, logits, shared, ValueId()}, layer, {"shared", "mixed"});
    return call("add", {both[0], both[1]}, {}, {"experts_and_shared"});
  }

  ValueId router(ValueId x) {
    const ValueId w = everywhere(weight("router_w", DType::bf16, {s_.experts, s_.hidden}));
    const ValueId turned = transposed(w, "router_wt");
    if (!p_.router_bias) return call("mm", {x, turned}, {}, {"logits"});
    const ValueId bias = everywhere(weight("router_b", DType::bf16, {s_.experts}));
    return call("addmm", {bias, x, turned}, {}, {"logits"});
  }

  /// Returns bf16[n, experts], 0 except for the chosen experts.
  ValueId weights(ValueId logits) {
    const ValueId wide = call("cast", {logits}, {{"dtype", DType::f32}}, {"scores"});
    const ValueId shares = p_.sigmoid ? call("sigmoid", {wide}, {}, {"shares"}) : softmax(wide);
    ValueId chosen = call("keep_topk", {shares}, {{"k", s_.topk}}, {"chosen"});
    if (!p_.whole_weights) {
      const ValueId zero = constant(0.0, DType::f32, "zero");
      const ValueId mask = call("ne", {chosen, zero}, {}, {"is_chosen"});
      chosen = call("select", {mask, shares, zero}, {}, {"chosen_shares"});
    }
    return call("cast", {chosen}, {{"dtype", DType::bf16}}, {"expert_weights"});
  }

  ValueId softmax(ValueId x) {
    const Given row{{"dim", std::int64_t{-1}}, {"keepdim", true}};
    const ValueId most = call("amax", {x}, row, {"most"});
    const ValueId below = call("sub", {x, most}, {}, {"below"});
    const ValueId powers = call("exp", {below}, {}, {"powers"});
    const ValueId total = call("sum", {powers}, row, {"total"});
    return call("div", {powers, total}, {}, {"shares"});
  }

  /// Applies every expert to every row; experts that were not chosen add 0.
  ValueId experts(ValueId x, ValueId weights) {
    const std::int64_t e = s_.experts, width = s_.expert_ffn / o_.tp;
    const std::int64_t first = p_.gated ? 2 * width : width;
    const ValueId up = weight("experts_up_w", DType::bf16, {e, s_.hidden, first});
    const ValueId down = weight("experts_down_w", DType::bf16, {e, width, s_.hidden});
    const ValueId one =
        call("reshape", {x}, {{"shape", Shape{dim(1), tokens_, dim(s_.hidden)}}}, {"one_of_rows"});
    const ValueId all = call("expand", {one}, {{"shape", Shape{dim(e), tokens_, dim(s_.hidden)}}},
                             {"rows_for_each"});
    const ValueId h = activated(call("bmm", {all, up}, {}, {"experts_up"}), "experts_activated");
    const ValueId y = call("bmm", {h, down}, {}, {"experts_down"});
    const ValueId each =
        call("transpose", {weights}, {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}},
             {"weights_of_each"});
    const ValueId column =
        call("reshape", {each}, {{"shape", Shape{dim(e), tokens_, dim(1)}}}, {"weight_columns"});
    const ValueId weighted = call("mul", {y, column}, {}, {"weighted_rows"});
    return call("sum", {weighted}, {{"dim", std::int64_t{0}}, {"keepdim", false}}, {"mixed"});
  }

  // ---- products
  enum class Bias {
    none,
    own,
    of_sum
  };  ///< of_sum: added to the sum over all ranks, so on one rank only

  /// Multiplies by a weight. `whole`: all ranks hold the same matrix. A matrix that does not
  /// consist of whole blocks stays bf16.
  ValueId product(ValueId x, const std::string& name, std::int64_t from, std::int64_t to,
                  Bias bias = Bias::none, bool whole = false) {
    const bool added = bias == Bias::own || (bias == Bias::of_sum && o_.rank == 0);
    const auto of_rank = [&](ValueId input) { return whole ? everywhere(input) : input; };
    const auto bias_input = [&] { return weight(name + "_b", DType::bf16, {to}); };
    if (quantises(from, to)) {
      const ValueId y = quantised_product(x, name, from, to, of_rank);
      return added ? call("add", {y, bias_input()}, {}, {name + "_biased"}) : y;
    }
    const ValueId w = of_rank(weight(name + "_w", DType::bf16, {to, from}));
    if (!added) return call("mm", {x, transposed(w, name + "_wt")}, {}, {name});
    const ValueId b = bias_input();
    return call("addmm", {b, x, transposed(w, name + "_wt")}, {}, {name});
  }

  [[nodiscard]] bool quantises(std::int64_t from, std::int64_t to) const {
    if (o_.quant == "fp8-group") return from % o_.group == 0 && to % o_.group == 0;
    return o_.quant == "nvfp4" ? from % kFp4Group == 0 : o_.quant != "none";
  }

  /// Returns the weights as stored, two numbers a byte; their global scale is a part of alpha.
  template <class OfRank>
  ValueId fp4_product(ValueId x, const std::string& name, std::int64_t from, std::int64_t to,
                      const OfRank& of_rank) {
    const ValueId w = of_rank(weight(name + "_w", DType::u8, {to, from / 2}));
    const ValueId ws = of_rank(weight(name + "_ws", DType::f8e4m3, {to, from / kFp4Group}));
    const ValueId xg = everywhere(weight(name + "_xg", DType::f32, {}));
    const ValueId alpha = of_rank(weight(name + "_alpha", DType::f32, {}));
    const Values q = calls("scaled_fp4_quant", {x, one_element(xg, name + "_xg_of_rows")},
                           {{"swizzled", true}}, {name + "_q", name + "_s"});
    return call("scaled_fp4_mm",
                {q[0], w, q[1], ws, one_element(alpha, name + "_alpha_of_product")},
                {{"out", DType::bf16}}, {name});
  }

  template <class OfRank>
  ValueId quantised_product(ValueId x, const std::string& name, std::int64_t from, std::int64_t to,
                            const OfRank& of_rank) {
    if (o_.quant == "nvfp4") return fp4_product(x, name, from, to, of_rank);
    if (o_.quant == "fp8-group") {
      const std::int64_t g = o_.group;
      const ValueId w = of_rank(weight(name + "_w", DType::f8e4m3, {to, from}));
      const ValueId ws = of_rank(weight(name + "_ws", DType::f32, {to / g, from / g}));
      const Values q = calls("per_token_group_fp8_quant", {x},
                             {{"group", g},
                              {"column_major", true},
                              {"tma_aligned", true},
                              {"least", 1e-10},
                              {"ue8m0", true}},
                             {name + "_q", name + "_s"});
      const ValueId wt = transposed(w, name + "_wt"), wst = transposed(ws, name + "_wst");
      return call("block_scaled_mm", {q[0], wt, q[1], wst}, {{"group", g}, {"out", DType::bf16}},
                  {name});
    }
    const ValueId w = of_rank(weight(name + "_w", DType::f8e4m3, {from, to}));
    const ValueId ws = of_rank(weight(name + "_ws", DType::f32, {}));
    Values q;
    if (o_.quant == "fp8") {
      const ValueId xs = everywhere(weight(name + "_xs", DType::f32, {}));
      const ValueId s = one_element(xs, name + "_xs_of_rows");
      q = {call("static_scaled_fp8_quant", {x, s}, {}, {name + "_q"}),
           one_element(xs, name + "_xs_of_product")};
    } else {
      q = calls("dynamic_per_token_fp8_quant", {x}, {}, {name + "_q", name + "_s"});
    }
    const ValueId s = one_element(ws, name + "_ws_of_product");
    return call("scaled_mm", {q[0], w, q[1], s}, {{"out", DType::bf16}}, {name});
  }

  ValueId reduced(ValueId x, const std::string& name = "reduced") {
    if (o_.tp == 1) return x;
    return call("all_reduce", {x}, {{"group", std::string(kGroup)}}, {name});
  }

  // ---- views
  Values split(ValueId x, const Shape& sizes, std::vector<std::string> names) {
    return calls("split", {x}, {{"dim", std::int64_t{1}}, {"sizes", sizes}}, std::move(names));
  }
  ValueId scattered(ValueId x, ValueId from, std::int64_t axis, std::int64_t start,
                    std::int64_t end, const char* name) {
    return call("slice_scatter", {x, from}, {{"dim", axis}, {"start", start}, {"end", end}},
                {name});
  }
  ValueId part(ValueId x, std::int64_t axis, std::int64_t start, std::int64_t end,
               const char* name) {
    return call("slice", {x}, {{"dim", axis}, {"start", start}, {"end", end}}, {name});
  }
  Shape rows(std::int64_t heads, std::int64_t width) { return {tokens_, dim(heads), dim(width)}; }
  ValueId in_heads(ValueId x, std::int64_t heads, std::int64_t width, const std::string& name) {
    return call("reshape", {x}, {{"shape", rows(heads, width)}}, {name});
  }
  ValueId in_heads(ValueId x, std::int64_t heads, const std::string& name) {
    return in_heads(x, heads, s_.head, name);
  }
  ValueId flat_rows(ValueId x, std::int64_t width, const std::string& name) {
    return call("reshape", {x}, {{"shape", Shape{tokens_, dim(width)}}}, {name});
  }
  ValueId transposed(ValueId x, const std::string& name) {
    return call("transpose", {x}, {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}}, {name});
  }
  ValueId one_element(ValueId x, const std::string& name) {
    return call("reshape", {x}, {{"shape", dims({1})}}, {name});
  }
  ValueId constant(double value, DType dtype, const std::string& name) {
    return call("constant", {}, {{"value", value}, {"dtype", dtype}}, {name});
  }

  /// Declares that all ranks hold the same contents: the input is not a part of a sharded product.
  ValueId everywhere(ValueId input) {
    if (o_.tp > 1) graph.declare_replicated(input, kGroup);
    return input;
  }

  const FamilyOptions& o_;
  const ModelParts& p_;
  const ModelSizes& s_;
  double eps_;
  std::int64_t heads_, kv_heads_;
  std::int64_t turned_;  ///< width of the part rotated by its position
  DimId tokens_;
  ValueId ids_, positions_, cos_sin_, residual_;
  std::string layer_;
};

/// Checks the ranges and divisibility of sizes; messages name the option at fault.
class SizeCheck {
 public:
  void in_range(const char* option, std::int64_t value, std::int64_t most) {
    require(value >= 1 && value <= most, option, fmt::format("{} is not in 1..{}", value, most));
  }
  void require(bool ok, const char* option, const std::string& message) {
    if (!ok) errors_.push_back(error_in(std::string("option --") + option, "PW0801", message));
  }
  [[nodiscard]] bool failed() const { return !errors_.empty(); }
  Status done() {
    if (failed()) return tl::unexpected(std::move(errors_));
    return {};
  }

 private:
  Diagnostics errors_;
};

Status check_sizes(const FamilyOptions& o, const ModelParts& p, const ModelSizes& s) {
  SizeCheck check;
  check.in_range("layers", s.layers, kMostDecoderNodes / kMostDecoderNodesPerLayer);
  check.in_range("hidden", s.hidden, 1 << 20);
  check.in_range("heads", s.heads, 1 << 16);
  check.in_range("kv-heads", s.kv_heads, 1 << 16);
  check.in_range("head", s.head, 1 << 16);
  check.in_range("ffn", s.ffn, 1 << 24);
  check.in_range("vocab", s.vocab, 1 << 24);
  check.in_range("tp", o.tp, 1 << 10);
  check.in_range("group", o.group, 1 << 16);
  check.in_range("positions", o.positions, 1 << 24);
  check.in_range("max-tokens", o.max_tokens, 1 << 24);
  if (s.experts > 0) {
    check.in_range("experts", s.experts, 1 << 10);
    check.in_range("topk", s.topk, s.experts);
    check.in_range("expert-ffn", s.expert_ffn, 1 << 24);
  }
  if (p.latent) {
    check.in_range("kv-rank", s.kv_rank, 1 << 16);
    check.require(s.q_rank >= 0 && s.q_rank <= 1 << 16, "q-rank",
                  fmt::format("{} is not in 0..{}", s.q_rank, 1 << 16));
  }
  const auto& known = family_quantisations();
  check.require(std::find(known.begin(), known.end(), o.quant) != known.end(), "quant",
                fmt::format("`{}` is not one of {}", o.quant, fmt::join(known, ", ")));
  if (check.failed()) return check.done();
  check.require(o.rank >= 0 && o.rank < o.tp, "rank", "it must be at least 0 and below --tp");
  check.require(s.head % (p.latent ? 4 : 2) == 0, "head",
                fmt::format("a head of {} elements cannot be rotated in pairs", s.head));
  check.require(s.heads % s.kv_heads == 0, "kv-heads",
                "the number of query heads must be a multiple of it");
  check.require(s.heads % o.tp == 0 && s.ffn % o.tp == 0, "tp",
                "--heads and --ffn must be multiples of it");
  check.require(s.vocab % o.tp == 0, "tp", "--vocab must be a multiple of it");
  check.require(s.expert_ffn % o.tp == 0, "tp", "--expert-ffn must be a multiple of it");
  check.require(s.kv_heads % o.tp == 0 || o.tp % s.kv_heads == 0, "tp",
                "--kv-heads must be a multiple or a divisor of it");
  return check.done();
}

/// Checks, for blocks of weights, every width that a product reads or writes.
Status check_groups(const FamilyOptions& o, const ModelParts& p, const ModelSizes& s) {
  SizeCheck check;
  const std::int64_t g = o.group;
  const auto whole = [&](const char* option, std::int64_t width) {
    check.require(width % g == 0, option,
                  fmt::format("a width of {} is not a multiple of --group {}", width, g));
  };
  whole("hidden", s.hidden);
  whole("ffn", s.ffn / o.tp);
  if (s.shared > 0) whole("expert-ffn", s.shared * s.expert_ffn / o.tp);
  const std::int64_t heads = s.heads / o.tp, kv = std::max<std::int64_t>(1, s.kv_heads / o.tp);
  if (!p.latent) {
    whole("heads", heads * s.head);
    whole("kv-heads", (heads + 2 * kv) * s.head);
    return check.done();
  }
  const std::int64_t turned = s.head / 2;
  whole("heads", heads * s.head);
  whole("heads", heads * (s.head + turned));
  whole("kv-rank", s.kv_rank);
  whole("q-rank", s.q_rank);
  return check.done();
}

}  // namespace

Result<Graph> generate_family(const ContextPtr& context, const FamilyOptions& options) {
  auto sizes = PW_TRY(family_sizes(options));
  const ModelFamily& family = *find_family(options.family);
  PW_TRY(check_sizes(options, family.parts, sizes));
  if (options.quant == "fp8-group") PW_TRY(check_groups(options, family.parts, sizes));
  return Decoder(context, options, family, sizes).run();
}

}  // namespace pw
