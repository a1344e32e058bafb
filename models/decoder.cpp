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
#include "models/decoder_attention.hpp"
#include "models/decoder_feed_forward.hpp"
#include "models/next_token.hpp"

namespace pw {
namespace {

constexpr std::int64_t kMostDecoderNodes = 1'100'000, kMostDecoderNodesPerLayer = 100;

class Decoder {
 public:
  Decoder(const ContextPtr& context, const FamilyOptions& options, const ModelFamily& family,
          const ModelSizes& sizes, const NextToken& choice)
      : n_(context, options, family, sizes), choice_(choice) {}

  Result<Graph> run() {
    n_.group = "embed";
    ValueId x = embedded();
    for (std::int64_t i = 0; i < n_.sizes.layers && !n_.failed(); ++i) x = layer(i, x);
    n_.group = "final";
    n_.prefix = "final_";
    x = normalised(x);
    if (!choice_.logits) {
      n_.graph.add_output(x);
      return n_.finish();
    }
    n_.prefix.clear();
    const ValueId logits = whole_logits(x);
    add_next_token(n_, choice_, {logits, n_.ids, n_.positions, n_.group_of_ranks()});
    return n_.finish();
  }

 private:
  // ---- layers
  ValueId embedded() {
    ValueId x;
    if (n_.options.tp == 1) {
      const ValueId ids = n_.call("cast", {n_.ids}, {{"dtype", DType::i64}}, {"ids_i64"});
      x = n_.call("embedding", {table("embed_w", n_.sizes.vocab), ids}, {}, {"embedded"});
    } else {
      const std::int64_t rows = n_.sizes.vocab / n_.options.tp;
      const ValueId part =
          n_.call("vocab_parallel_embedding",
                  {n_.ids, n_.weight("embed_w", DType::bf16, {rows, n_.sizes.hidden})},
                  {{"first", n_.options.rank * rows},
                   {"last", (n_.options.rank + 1) * rows},
                   {"added_first", n_.sizes.vocab},
                   {"added_last", n_.sizes.vocab}},
                  {"embedded_part"});
      x = n_.reduced(part, "embedded");
    }
    if (n_.parts.scaled_embedding)
      x = n_.call("mul", {x, n_.everywhere(n_.weight("normalizer", DType::bf16, {}))}, {},
                  {"scaled"});
    return n_.parts.position_offset < 0 ? x : n_.call("add", {x, place()}, {}, {"placed"});
  }

  ValueId table(const std::string& name, std::int64_t rows) {
    return n_.everywhere(n_.weight(name, DType::bf16, {rows, n_.sizes.hidden}));
  }

  /// Returns the learned row of each position.
  ValueId place() {
    ValueId at = n_.positions;
    if (n_.parts.position_offset > 0)
      at = n_.call(
          "add",
          {at, n_.constant(static_cast<double>(n_.parts.position_offset), DType::i64, "offset")},
          {}, {"offset_positions"});
    return n_.call("embedding",
                   {table("position_w", n_.options.positions + n_.parts.position_offset), at}, {},
                   {"place"});
  }

  ValueId layer(std::int64_t i, ValueId x) {
    n_.layer = fmt::format("layers.{}", i);
    const bool turns = n_.parts.plain_every == 0 || (i + 1) % n_.parts.plain_every != 0;
    begin_part(i, "attn");
    x = normalised(x);
    x = n_.parts.latent ? latent_attention(n_, x) : attention(n_, x, turns);
    x = result_norm(n_.reduced(x));
    begin_part(i, "mlp");
    x = normalised(x);
    x = n_.parts.router != Router::none && i >= n_.sizes.dense_layers
            ? mixture(n_, x)
            : mlp(n_, x, n_.sizes.ffn / n_.options.tp);
    return result_norm(n_.reduced(x));
  }

  void begin_part(std::int64_t i, const char* part) {
    n_.prefix = fmt::format("l{}_{}_", i, part);
    n_.group = fmt::format("layers.{}.{}", i, part);
  }

  // ---- norms
  /// Adds the residual, if there is one yet, keeps the sum as the next residual, and normalises it.
  ValueId normalised(ValueId x) {
    if (n_.parts.norm == NormKind::layer) {
      residual_ = residual_.valid() ? n_.call("add", {residual_, x}, {}, {"sum"}) : x;
      return layer_norm(residual_);
    }
    const ValueId w = n_.norm_weight("norm", n_.sizes.hidden);
    if (!residual_.valid()) {
      residual_ = x;
      return n_.call("rms_norm", {x, w}, {{"eps", n_.eps}}, {"normed"});
    }
    const Values both = n_.calls("fused_add_rms_norm", {x, residual_, w},
                                 {{"eps", n_.eps}, {"wide", true}}, {"normed", "sum"});
    residual_ = both[1];
    return both[0];
  }

  ValueId result_norm(ValueId x) {
    if (!n_.parts.norm_results) return x;
    return n_.call("rms_norm", {x, n_.norm_weight("result_norm", n_.sizes.hidden)},
                   {{"eps", n_.eps}}, {"result_normed"});
  }

  ValueId layer_norm(ValueId x) {
    const NodeMaker::Given row{{"dim", std::int64_t{1}}, {"keepdim", true}};
    const ValueId w = n_.everywhere(n_.weight("norm_w", DType::bf16, {n_.sizes.hidden}));
    const ValueId bias = n_.everywhere(n_.weight("norm_b", DType::bf16, {n_.sizes.hidden}));
    const ValueId h = n_.call("cast", {x}, {{"dtype", DType::f32}}, {"h"});
    const ValueId mean = n_.call("mean", {h}, row, {"mean"});
    const ValueId off = n_.call("sub", {h, mean}, {}, {"off"});
    const ValueId square = n_.call("mul", {off, off}, {}, {"square"});
    const ValueId variance = n_.call("mean", {square}, row, {"variance"});
    const ValueId centred = n_.call("sub", {h, mean}, {}, {"centred"});
    const ValueId about =
        n_.call("add", {variance, n_.constant(n_.eps, DType::f64, "eps")}, {}, {"variance_eps"});
    const ValueId scale = n_.call("rsqrt", {about}, {}, {"scale"});
    const ValueId unit = n_.call("mul", {centred, scale}, {}, {"unit"});
    const ValueId weighted = n_.call("mul", {unit, w}, {}, {"weighted_unit"});
    const ValueId y = n_.call("add", {weighted, bias}, {}, {"normed32"});
    return n_.call("cast", {y}, {{"dtype", DType::bf16}}, {"normed"});
  }

  /// Multiplies with the output embedding, which is not quantised; each rank has a part of its
  /// rows.
  ValueId whole_logits(ValueId x) {
    const std::int64_t tp = n_.options.tp;
    const ValueId w = n_.weight("lm_head_w", DType::bf16, {n_.sizes.vocab / tp, n_.sizes.hidden});
    const ValueId part = n_.call("mm", {x, n_.transposed(w, "lm_head_wt")}, {}, {"lm_head"});
    if (tp == 1) return part;
    return n_.call("all_gather", {part},
                   {{"dim", std::int64_t{-1}}, {"world", tp}, {"group", n_.group_of_ranks()}},
                   {"logits"});
  }

  DecoderNodes n_;
  const NextToken choice_;
  ValueId residual_;
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
  const NextToken choice = PW_TRY(parse_next_token(options.lm_head));
  return Decoder(context, options, family, sizes, choice).run();
}

}  // namespace pw
