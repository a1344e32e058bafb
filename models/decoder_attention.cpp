#include "models/decoder_attention.hpp"

#include "models/decoder_products.hpp"

namespace pw {

namespace {

struct Heads {
  ValueId q, k, v;
};

Values rotated(DecoderNodes& n, ValueId q, ValueId k) {
  return n.calls("rotary_embedding", {n.positions, q, k, n.cos_sin},
                 {{"head", n.turned}, {"neox", n.parts.neox}}, {"qr", "kr"});
}

Heads plain(DecoderNodes& n, ValueId qkv, const Shape& sizes) {
  const Values parts = n.split(qkv, sizes, {"q", "k", "v"});
  return {parts[0], parts[1], parts[2]};
}

/// Rotates the operands in place, so that later readers of qkv see the rotated values. As in a
/// functionalised trace, each reader takes its part of the changed tensor. Parts written by
/// another kernel are extracted again for each use.
Heads turned_in_place(DecoderNodes& n, ValueId qkv, const Shape& sizes) {
  const Values first = n.split(qkv, sizes, {"q0", "k0", "v0"});
  const Values second = n.options.quant == "none" ? first : n.split(qkv, sizes, {"q1", "k1", "v1"});
  const Values turned = rotated(n, first[0], second[1]);
  const std::int64_t q = n.heads * n.sizes.head, k = n.kv_heads * n.sizes.head;
  const ValueId with_q = n.scattered(qkv, turned[0], 1, 0, q, "qkv_turned_q");
  const ValueId both = n.scattered(with_q, turned[1], 1, q, q + k, "qkv_turned");
  const Values of_k = n.split(both, sizes, {"q2", "k2", "v2"});
  const Values of_v = n.split(both, sizes, {"q3", "k3", "v3"});
  const Values of_q = n.split(both, sizes, {"q4", "k4", "v4"});
  return {of_q[0], of_k[1], of_v[2]};
}

ValueId normed_heads(DecoderNodes& n, ValueId x, ValueId w, std::int64_t heads,
                     const std::string& name) {
  const ValueId in = n.in_heads(x, heads, name + "_heads");
  const ValueId normed = n.call("rms_norm", {in, w}, {{"eps", n.eps}}, {name + "_normed"});
  return n.flat_rows(normed, heads * n.sizes.head, name + "_flat");
}

Heads normed_and_turned(DecoderNodes& n, ValueId qkv, const Shape& sizes) {
  const Values parts = n.split(qkv, sizes, {"q", "k", "v"});
  const ValueId qw = n.norm_weight("q_norm", n.sizes.head),
                kw = n.norm_weight("k_norm", n.sizes.head);
  const ValueId q = normed_heads(n, parts[0], qw, n.heads, "q");
  const ValueId k = normed_heads(n, parts[1], kw, n.kv_heads, "k");
  const Values turned = rotated(n, q, k);
  return {turned[0], turned[1], parts[2]};
}

ValueId unit_heads(DecoderNodes& n, ValueId x, const std::string& name) {
  const ValueId ones =
      n.call("full", {}, {{"shape", n.dims({n.sizes.head})}, {"value", 1.0}, {"dtype", DType::f32}},
             {name + "_ones"});
  const ValueId wide = n.call("cast", {x}, {{"dtype", DType::f32}}, {name + "_wide"});
  const ValueId unit = n.call("rms_norm", {wide, ones}, {{"eps", n.eps}}, {name + "_unit32"});
  return n.call("cast", {unit}, {{"dtype", DType::bf16}}, {name + "_unit"});
}

/// Applies Llama 4's temperature: log(floor((position + 1) / 8192) + 1) · 0.1 + 1.
ValueId scaled_by_position(DecoderNodes& n, ValueId q) {
  const auto number = [&](double value, const char* name) {
    return n.constant(value, DType::f32, name);
  };
  const ValueId at = n.call("cast", {n.positions}, {{"dtype", DType::f32}}, {"position32"});
  const ValueId next = n.call("add", {at, number(1.0, "one_a")}, {}, {"position_next"});
  const ValueId part = n.call("div", {next, number(8192.0, "floor_scale")}, {}, {"position_part"});
  const ValueId steps = n.call("floor", {part}, {}, {"position_steps"});
  const ValueId more = n.call("add", {steps, number(1.0, "one_b")}, {}, {"position_more"});
  const ValueId log = n.call("log", {more}, {}, {"position_log"});
  const ValueId small = n.call("mul", {log, number(0.1, "attn_scale")}, {}, {"position_small"});
  const ValueId scale = n.call("add", {small, number(1.0, "one_c")}, {}, {"temperature"});
  const ValueId column = n.call("reshape", {scale},
                                {{"shape", Shape{n.tokens, n.dim(1), n.dim(1)}}}, {"temperatures"});
  const ValueId scaled = n.call("mul", {q, column}, {}, {"q_scaled32"});
  return n.call("cast", {scaled}, {{"dtype", DType::bf16}}, {"q_scaled"});
}

ValueId attended(DecoderNodes& n, ValueId q, ValueId k, ValueId v) {
  const Attribute layer = n.layer + ".attn";
  const ValueId done = n.call("unified_kv_cache_update", {k, v}, {{"layer", layer}}, {"cached"});
  return n.call("unified_attention", {q, k, v, ValueId(), done}, {{"layer", layer}}, {"attended"});
}

/// Returns the queries of all heads, and the latent with the rotated part of the key.
std::pair<ValueId, ValueId> latent_products(DecoderNodes& n, ValueId x, std::int64_t q_width) {
  const std::int64_t latent_width = n.sizes.kv_rank + n.turned;
  if (n.sizes.q_rank == 0) {
    const ValueId latent = product(n, x, "kv_a", n.sizes.hidden, latent_width, Bias::none, true);
    return {product(n, x, "q", n.sizes.hidden, q_width), latent};
  }
  const ValueId both =
      product(n, x, "qkv_a", n.sizes.hidden, n.sizes.q_rank + latent_width, Bias::none, true);
  const Values parts = n.split(both, n.dims({n.sizes.q_rank, latent_width}), {"q_c", "latent"});
  const ValueId q_c = n.call("rms_norm", {parts[0], n.norm_weight("q_norm", n.sizes.q_rank)},
                             {{"eps", n.eps}}, {"q_normed"});
  return {product(n, q_c, "q_b", n.sizes.q_rank, q_width), parts[1]};
}

/// Keeps the trace of an assignment to a part of q: it is written to itself.
ValueId in_place(DecoderNodes& n, ValueId q, std::int64_t key) {
  const ValueId rows = n.flat_rows(q, n.heads * key, "q_rows");
  const ValueId to = n.in_heads(rows, n.heads, key, "q_to"),
                from = n.in_heads(rows, n.heads, key, "q_from");
  return n.scattered(to, n.part(from, 2, n.sizes.head, key, "q_part"), 2, n.sizes.head, key,
                     "q_turned_heads");
}

ValueId latent_kernel(DecoderNodes& n, ValueId q, ValueId kv, ValueId k_pe) {
  const Attribute layer = n.layer + ".attn";
  const ValueId scale = n.everywhere(n.weight("kv_scale", DType::f32, {}));
  const ValueId done = n.call("unified_mla_kv_cache_update", {kv, k_pe, scale},
                              {{"layer", layer}, {"format", std::string("auto")}}, {"cached"});
  return n.call("unified_mla_attention", {q, kv, k_pe, ValueId(), done},
                {{"layer", layer}, {"width", n.heads * n.sizes.head}}, {"attended"});
}

ValueId latent_written_out(DecoderNodes& n, ValueId q, ValueId kv, ValueId k_pe) {
  const std::int64_t head = n.sizes.head;
  const ValueId both = product(n, kv, "kv_b", n.sizes.kv_rank, n.heads * 2 * head);
  const Values parts =
      n.calls("split", {n.in_heads(both, n.heads, 2 * head, "kv_heads")},
              {{"dim", std::int64_t{2}}, {"sizes", n.dims({head, head})}}, {"k_plain", "v_heads"});
  const ValueId turned =
      n.call("expand", {k_pe}, {{"shape", n.rows(n.heads, n.turned)}}, {"k_pe_all"});
  const ValueId k = n.call("cat", {parts[0], turned}, {{"dim", std::int64_t{2}}}, {"k_heads"});
  const ValueId zeros = n.call(
      "full", {}, {{"shape", n.rows(n.heads, n.turned)}, {"value", 0.0}, {"dtype", DType::bf16}},
      {"v_padding"});
  const ValueId v = n.call("cat", {parts[1], zeros}, {{"dim", std::int64_t{2}}}, {"v_padded"});
  const ValueId y = n.part(attended(n, q, k, v), 2, 0, head, "attended_values");
  return n.flat_rows(y, n.heads * head, "flat");
}

}  // namespace

ValueId attention(DecoderNodes& n, ValueId x, bool turns) {
  const std::int64_t q_width = n.heads * n.sizes.head, kv_width = n.kv_heads * n.sizes.head;
  const ValueId qkv = product(n, x, "qkv", n.sizes.hidden, q_width + 2 * kv_width,
                              n.parts.qkv_bias ? Bias::own : Bias::none);
  const Shape sizes = n.dims({q_width, kv_width, kv_width});
  const bool rope = turns && n.parts.position_offset < 0;
  const Heads h = n.parts.head_norm == HeadNorm::before_rope ? normed_and_turned(n, qkv, sizes)
                  : rope                                     ? turned_in_place(n, qkv, sizes)
                                                             : plain(n, qkv, sizes);
  ValueId q = n.in_heads(h.q, n.heads, "qh");
  ValueId k = n.in_heads(h.k, n.kv_heads, "kh");
  const ValueId v = n.in_heads(h.v, n.kv_heads, "vh");
  if (n.parts.head_norm == HeadNorm::after_rope && turns) {
    q = unit_heads(n, q, "q");
    k = unit_heads(n, k, "k");
  }
  if (!turns) q = scaled_by_position(n, q);
  const ValueId y = attended(n, q, k, v);
  const ValueId flat = n.flat_rows(y, q_width, "flat");
  return product(n, flat, "o", q_width, n.sizes.hidden,
                 n.parts.out_bias ? Bias::of_sum : Bias::none);
}

ValueId latent_attention(DecoderNodes& n, ValueId x) {
  const std::int64_t head = n.sizes.head, key = head + n.turned, r = n.sizes.kv_rank;
  const auto [q_rows, latent] = latent_products(n, x, n.heads * key);
  const Values parts = n.split(latent, n.dims({r, n.turned}), {"kv_c", "pe0"});
  const ValueId q0 = n.in_heads(q_rows, n.heads, key, "q_heads");
  const ValueId q_pe = n.part(q0, 2, head, key, "q_pe");
  const ValueId pe1 = n.in_heads(parts[1], 1, n.turned, "pe1");
  const Values turned = rotated(n, n.flat_rows(q_pe, n.heads * n.turned, "q_pe_flat"),
                                n.flat_rows(pe1, n.turned, "pe_flat"));
  const ValueId qr = n.in_heads(turned[0], n.heads, n.turned, "q_turned");
  const ValueId kr =
      n.flat_rows(n.in_heads(turned[1], 1, n.turned, "pe_turned"), n.turned, "pe_squeezed");
  const ValueId latent_turned = n.scattered(latent, kr, 1, r, r + n.turned, "latent_turned");
  const ValueId pe = n.split(latent_turned, n.dims({r, n.turned}), {"kv_c2", "pe2"})[1];
  const ValueId q = in_place(
      n, n.scattered(n.in_heads(q_rows, n.heads, key, "q_heads2"), qr, 2, head, key, "q_scattered"),
      key);
  const ValueId kv =
      n.call("rms_norm", {parts[0], n.norm_weight("kv_norm", r)}, {{"eps", n.eps}}, {"kv_normed"});
  const ValueId k_pe = n.in_heads(pe, 1, n.turned, "k_pe");
  const ValueId flat =
      n.options.opaque ? latent_kernel(n, q, kv, k_pe) : latent_written_out(n, q, kv, k_pe);
  return product(n, flat, "o", n.heads * head, n.sizes.hidden);
}

}  // namespace pw
