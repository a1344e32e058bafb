// Graphs of one op each, for tests of kernels: every op with a body, and the row primitives.
#pragma once

namespace pw::test {

/// {0}: the dtype; {1}: the width d; {2}: 2 d.
struct Form {
  const char* op;
  const char* text;
};

inline constexpr Form kForms[] = {
    {"silu", "in x: {0}[n, {1}]  y = silu(x)  out y"},
    {"relu", "in x: {0}[n, {1}]  y = relu(x)  out y"},
    {"sigmoid", "in x: {0}[n, {1}]  y = sigmoid(x)  out y"},
    {"clone", "in x: {0}[n, {1}]  y = clone(x)  out y"},
    {"gelu", "in x: {0}[n, {1}]  y = gelu(x)  out y"},
    {"gelu_tanh", "in x: {0}[n, {1}]  y = gelu_tanh(x)  out y"},
    {"clamp", "in x: {0}[n, {1}]  y = clamp(x){{min = -0.5, max = 0.75}}  out y"},
    {"masked_fill", "in x: {0}[n, {1}], m: b8[n, 1]  y = masked_fill(x, m){{value = -1.5}}  out y"},
    {"detach", "in x: {0}[n, {1}]  y = detach(x)  out y"},
    {"slice_scatter",
     "in x: {0}[n, {2}], z: {0}[n, {1}]  y = slice_scatter(x, z){{dim = 1, start = 1, end = {1} + "
     "1}}  out y"},
    {"silu_and_mul", "in x: {0}[n, {2}]  y = silu_and_mul(x)  out y"},
    {"silu_and_mul_quant", "in x: {0}[n, {2}], s: f32[1]  y = silu_and_mul_quant(x, s)  out y"},
    {"silu_and_mul_dynamic_quant",
     "in x: {0}[n, {2}]  q, t = silu_and_mul_dynamic_quant(x)  out q, t"},
    {"rms_norm", "in x: {0}[n, {1}], w: {0}[{1}]  y = rms_norm(x, w)  out y"},
    {"fused_add_rms_norm",
     "in x: {0}[n, {1}], z: {0}[n, {1}], w: {0}[{1}]  y, r = fused_add_rms_norm(x, z, w){{eps = "
     "1e-5}}  out y, r"},
    {"rms_norm_static_fp8_quant",
     "in x: {0}[n, {1}], w: {0}[{1}], s: f32[1]  q = rms_norm_static_fp8_quant(x, w, s)  out q"},
    {"fused_add_rms_norm_static_fp8_quant",
     "in x: {0}[n, {1}], z: {0}[n, {1}], w: {0}[{1}], s: f32[1]  q, r = "
     "fused_add_rms_norm_static_fp8_quant(x, z, w, s)  out q, r"},
    {"rms_norm_dynamic_per_token_quant",
     "in x: {0}[n, {1}], w: {0}[{1}]  q, t = rms_norm_dynamic_per_token_quant(x, w)  out q, t"},
    {"fused_add_rms_norm_dynamic_per_token_quant",
     "in x: {0}[n, {1}], z: {0}[n, {1}], w: {0}[{1}]  q, t, r = "
     "fused_add_rms_norm_dynamic_per_token_quant(x, z, w)  out q, t, r"},
    {"static_scaled_fp8_quant",
     "in x: {0}[n, {1}], s: f32[1]  q = static_scaled_fp8_quant(x, s)  out q"},
    {"dynamic_per_token_fp8_quant",
     "in x: {0}[n, {1}]  q, t = dynamic_per_token_fp8_quant(x)  out q, t"},
};

/// Shapes that the table above does not vary.
inline constexpr Form kSpecial[] = {
    {"erf", "in x: {0}[n, 40]  y = erf(x)  out y"},
    {"ceil_pow2", "in x: f32[n, 40]  y = ceil_pow2(x)  out y"},
    {"gelu_and_mul", "in x: {0}[n, 80]  y = gelu_and_mul(x)  out y"},
    {"gelu_tanh_and_mul", "in x: {0}[n, 80]  y = gelu_tanh_and_mul(x)  out y"},
    {"silu_and_mul_per_block_quant",
     "in x: {0}[n, 256]  q, s = silu_and_mul_per_block_quant(x){{group = 64}}  out q, s"},
    {"layer_norm", "in x: {0}[n, 40], w: {0}[40], b: {0}[40]  y = layer_norm(x, w, b)  out y"},
    {"rms_norm_of_sum",
     "in x: {0}[n, 40], z: {0}[n, 40], w: {0}[40]  y = rms_norm_of_sum(x, z, w)  out y"},
    {"fused_add_rms_norm",
     "in x: {0}[n, 40], z: {0}[n, 40], w: {0}[40]  y, r = fused_add_rms_norm(x, z, w){{wide = "
     "true}}  out y, r"},
    {"fused_add_rms_norm_per_block_quant",
     "in x: {0}[n, 128], z: {0}[n, 128], w: {0}[128]  q, s, r = "
     "fused_add_rms_norm_per_block_quant(x, z, w){{group = 64}}  out q, s, r"},
    {"rope_by_halves",
     "in x: {0}[n, 3, 8], c: {0}[n, 1, 8], s: {0}[n, 1, 8]  y = rope_by_halves(x, c, s)  out y"},
    {"vocab_parallel_embedding",
     "in i: i64[n], t: {0}[9, 40]  y = vocab_parallel_embedding(i, t){{first = 0, last = 9}}  out "
     "y"},
    {"rotary_embedding",
     "in p: i64[n], q: {0}[n, 12], k: {0}[n, 4], c: {0}[9, 4]  a, b = rotary_embedding(p, q, k, "
     "c){{head = 4}}  out a, b"},
    {"rotary_embedding",
     "in p: i64[n], q: {0}[n, 12], k: {0}[n, 4], c: {0}[9, 4]  a, b = rotary_embedding(p, q, k, "
     "c){{head = 4, neox = false}}  out a, b"},
    {"rotary_embedding",
     "in p: i64[n, 2], q: {0}[n, 2, 256], k: {0}[n, 2, 128], c: f32[9, 128]  a, b = "
     "rotary_embedding(p, q, k, c){{head = 128}}  out a, b"},
    {"rms_norm", "in x: {0}[n, 3, 40], w: f32[40]  y = rms_norm(x, w)  out y"},
    {"rms_norm", "in x: {0}[33], w: {0}[33]  y = rms_norm(x, w)  out y"},
    {"rms_norm", "in x: {0}[n, m], w: {0}[m]  y = rms_norm(x, w)  out y"},
    {"silu_and_mul", "in x: {0}[n, 2*m]  y = silu_and_mul(x)  out y"},
    {"masked_fill", "in x: {0}[n, 7], m: b8[7]  y = masked_fill(x, m){{value = 2.0}}  out y"},
    {"slice_scatter",
     "in x: {0}[n + 2, 7], z: {0}[n, 7]  y = slice_scatter(x, z){{dim = 0, start = 1, end = n + "
     "1}}  out y"},
    {"pad_rows", "in x: {0}[n, 7]  y = pad_rows(x){{multiple = 4}}  out y"},
    {"e2m1_code", "in x: f32[n, 40]  y = e2m1_code(x)  out y"},
    {"e2m1_number", "in x: f32[n, 40]  y = e2m1_number(x)  out y"},
    {"pack_e2m1", "in c: f32[n, 40]  y = pack_e2m1(c)  out y"},
    {"unpack_e2m1", "in q: u8[n, 20]  y = unpack_e2m1(q)  out y"},
    {"scaled_fp4_quant", "in x: {0}[n, 64], g: f32[1]  q, s = scaled_fp4_quant(x, g)  out q, s"},
    {"rms_norm_fp4_quant",
     "in x: {0}[n, 64], w: {0}[64], g: f32[1]  q, s = rms_norm_fp4_quant(x, w, g)  out q, s"},
    {"fused_add_rms_norm_fp4_quant",
     "in x: {0}[n, 64], z: {0}[n, 64], w: {0}[64], g: f32[1]  q, s, r = "
     "fused_add_rms_norm_fp4_quant(x, z, w, g)  out q, s, r"},
    {"silu_and_mul_nvfp4_quant",
     "in x: {0}[n, 128], g: f32[1]  q, s = silu_and_mul_nvfp4_quant(x, g)  out q, s"},
    {"mxfp8_quant", "in x: {0}[n, 64]  q, s = mxfp8_quant(x)  out q, s"},
    {"static_scaled_int8_quant",
     "in x: {0}[n, 40], s: f32[1]  q = static_scaled_int8_quant(x, s)  out q"},
    {"dynamic_scaled_int8_quant",
     "in x: {0}[n, 40]  q, s = dynamic_scaled_int8_quant(x)  out q, s"},
    {"rms_norm_gated",
     "in x: {0}[n, 3, 40], w: {0}[40], g: {0}[n, 3, 40]  y = rms_norm_gated(x, w, g)  out y"},
    // something is reduced over groups of the columns
    {"per_token_group_fp8_quant",
     "in x: {0}[n, 24]  q, t = per_token_group_fp8_quant(x){{group = 8}}  out q, t"},
    {"per_token_group_fp8_quant",
     "in x: {0}[n, 512]  q, t = per_token_group_fp8_quant(x){{group = 128}}  out q, t"},
    {"rms_norm_per_block_quant",
     "in x: {0}[n, 24], w: {0}[24]  q, t = rms_norm_per_block_quant(x, w){{group = 8}}  out q, t"},
    {"rms_norm_per_block_quant",
     "in x: {0}[n, 1280], w: {0}[1280]  q, t = rms_norm_per_block_quant(x, w){{group = 64}}  out "
     "q, t"},
    {"per_token_group_fp8_quant",
     "in x: {0}[n, 12]  q, t = per_token_group_fp8_quant(x){{group = 3}}  out q, t"},
    {"fused_qk_norm_rope",
     "in x: {0}[n, 20], a: {0}[4], b: {0}[4], c: {0}[9, 4], p: i64[n]  y = fused_qk_norm_rope(x, "
     "a, b, c, p){{heads_q = 3, heads_k = 1, head = 4}}  out y"},
    {"fused_qk_norm_rope",
     "in x: {0}[n, 1280], a: {0}[128], b: {0}[128], c: {0}[9, 128], p: i64[n]  y = "
     "fused_qk_norm_rope(x, a, b, c, p){{heads_q = 6, heads_k = 2, head = 128}}  out y"},
    {"fused_qk_norm_rope",
     "in x: {0}[n, 1024], a: {0}[128], b: {0}[128], c: {0}[9, 128], p: i64[n]  y = "
     "fused_qk_norm_rope(x, a, b, c, p){{heads_q = 4, heads_k = 2, head = 128, neox = false}}  out "
     "y"},
    // of few elements that are not zero, else it is true of each lane alone
    {"any", "in x: {0}[n, 9]  y = any(gt(x, 1.5))  out y"},
    {"all", "in x: i64[n, 9]  y = all(x){{keepdim = true}}  out y"},
    {"div_floor", "in x: f32[n, 9], z: f32[n, 9]  y = div_floor(x, z)  out y"},
    {"argmax_in_rows", "in x: {0}[n, 9]  y = argmax_in_rows(x)  out y"},
    {"argmax", "in x: i64[n, 512]  y = argmax(x){{keepdim = true}}  out y"},
    {"largest_logit", "in x: {0}[n, 40]  y = largest_logit(x)  out y"},
    {"philox_round",
     "in a: i64[n], b: i64[n], c: i64[n], d: i64[n], k: i64[n], l: i64[n]  p, q, r, s = "
     "philox_round(a, b, c, d, k, l){{round = 3}}  out p, q, r, s"},
    {"philox",
     "in a: i64[n], b: i64[n], c: i64[n], d: i64[n], k: i64[n], l: i64[n]  p, q, r, s = "
     "philox(a, b, c, d, k, l)  out p, q, r, s"},
    {"exponential", "in s: i64[n], p: i64[n]  y = exponential(s, p){{count = 40}}  out y"},
    {"mass_within_step",
     "in y: f32[n, 40], w: i64[n, 40], l: i64[n, 1], t: f32[n, 1], c: f32[n, 1]  r = "
     "mass_within_step(y, w, l, t, c)  out r"},
    {"mass_within_bits",
     "in y: f32[n, 40], w: i64[n, 40], l: i64[n, 1], t: f32[n, 1], c: f32[n, 1]  r = "
     "mass_within_bits(y, w, l, t, c)  out r"},
    {"mass_within",
     "in y: f32[n, 40], w: i64[n, 40], l: i64[n, 1]  a = mass_within(abs(y), w, l)  out a"},
    {"top_k_logits", "in x: {0}[n, 40]  y = top_k_logits(x){{k = 5}}  out y"},
    {"top_p_logits", "in x: {0}[n, 40]  y = top_p_logits(x){{p = 0.8, temperature = 0.7}}  out y"},
    // row primitives by themselves
    {"iota", "in x: {0}[n, 24]  y = x + iota(){{shape = [24], dtype = {0}}}  out y"},
    {"iota", "in i: i64[n, 7]  y = i + iota(){{shape = [n, 7]}}  out y"},
    {"embedding", "in t: {0}[7, 2, 5], i: i32[n, 2]  y = embedding(t, i)  out y"},
    {"add", "in x: {0}[n, 3, 5], z: f32[3, 1]  y = add(x, z)  out y"},
    {"add", "in x: {0}[n, 5]  y = add(x, 0.1)  out y"},
    {"mul", "in x: i64[n]  y = mul(x, 3)  out y"},
    {"div", "in x: i32[n, 3], z: i32[3]  y = div(x, z)  out y"},
    {"pow", "in x: {0}[n, 9]  y = pow(x, 3)  out y"},
    {"pow", "in x: f32[n, 72], z: {0}[n, 72]  y = pow(x, z)  out y"},
    {"sin", "in x: {0}[n, 72]  y = sin(x)  out y"},
    {"cos", "in x: f32[n, 72]  y = cos(x)  out y"},
    {"lt", "in x: {0}[n, 9], z: {0}[n, 1]  y = lt(x, z)  out y"},
    {"eq", "in x: i64[n, 9], z: i32[9]  y = eq(x, z)  out y"},
    {"bitwise_not", "in x: b8[n, 9]  y = bitwise_not(x)  out y"},
    {"bitwise_or", "in x: i32[n, 9], z: i64[9]  y = bitwise_or(x, z)  out y"},
    {"select", "in x: {0}[n, 9], m: b8[n, 9], z: f64[1]  y = select(m, x, z)  out y"},
    {"cast", "in x: {0}[n, 9]  y = i32(x)  out y"},
    {"cast", "in x: {0}[n, 9]  y = f8e5m2(x)  out y"},
    {"cast", "in x: f64[n, 9]  y = {0}(x)  out y"},
    {"cast", "in x: i64[n, 9]  y = {0}(x)  out y"},
    {"sum", "in x: {0}[n, 3000]  y = sum(x)  out y"},
    {"sum", "in x: i32[n, 17]  y = sum(x){{keepdim = true}}  out y"},
    {"mean", "in x: {0}[n, 6, 11]  y = mean(x){{dim = 1}}  out y"},
    {"amax", "in x: {0}[n, 6, 11]  y = amax(x){{dim = -1, keepdim = true}}  out y"},
    {"amin", "in x: f64[n, 2100]  y = amin(x)  out y"},
    {"sum", "in x: {0}[5, 11]  y = sum(x){{dim = 0}}  out y"},
    {"reshape", "in x: {0}[n, 6, 4]  y = reshape(x){{shape = [n, 3, 8]}}  out y"},
    {"reshape", "in x: {0}[n, 6, 4]  y = reshape(x){{shape = [n*6, 4]}}  out y"},
    {"reshape", "in x: {0}[n*3, 4]  y = reshape(x){{shape = [3, n, 4]}}  out y"},
    {"transpose", "in x: {0}[n, 6, 4]  y = transpose(x){{dim0 = 1, dim1 = 2}}  out y"},
    {"transpose", "in x: {0}[6, n]  y = transpose(x){{dim0 = 0, dim1 = 1}}  out y"},
    {"slice", "in x: {0}[n, 13]  y = slice(x){{dim = 1, start = 2, end = 11, step = 3}}  out y"},
    {"slice", "in x: {0}[n, 13]  y = slice(x){{dim = 1, start = -4, end = 13}}  out y"},
    {"split", "in x: {0}[n, 13]  a, b, c = split(x){{dim = -1, sizes = [4, 1, 8]}}  out a, b, c"},
    {"cat", "in x: {0}[n, 3], z: {0}[n, 1], w: {0}[n, 4]  y = cat(x, z, w){{dim = 1}}  out y"},
    {"cat", "in x: {0}[2, 3], z: {0}[n, 3]  y = cat(x, z){{dim = 0}}  out y"},
    {"expand", "in x: {0}[n, 1, 4]  y = expand(x){{shape = [n, 3, 4]}}  out y"},
    {"full", "in x: {0}[n]  y = full(){{shape = [n, 3], value = 1.1, dtype = {0}}}  out y"},
};

}  // namespace pw::test
