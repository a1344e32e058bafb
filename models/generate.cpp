#include "models/generate.hpp"

#include <algorithm>

#include "base/hash.hpp"
#include "base/try.hpp"
#include "graph/node_maker.hpp"
#include "models/next_token.hpp"

namespace pw {
namespace {

constexpr std::int64_t kMostNodes = 1'100'000;
constexpr std::int64_t kMostNodesPerLayer = 26, kMostNodesPerExpert = 10;  // with scales and ranks
constexpr std::int64_t kMostExperts = 1024;
constexpr const char* kRanks = "tp";  // the group of tensor-parallel ranks

Status check_options(const LlamaOptions& o) {
  Diagnostics errors;
  const auto require = [&](bool ok, const char* option, const std::string& message) {
    if (!ok) errors.push_back(error_in(std::string("option --") + option, "PW0801", message));
  };
  const auto in_range = [&](const char* option, std::int64_t value, std::int64_t most) {
    require(value >= 1 && value <= most, option,
            std::to_string(value) + " is not in 1.." + std::to_string(most));
  };
  require(o.experts >= 0 && o.experts <= kMostExperts, "experts",
          std::to_string(o.experts) + " is not in 0.." + std::to_string(kMostExperts));
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  in_range("layers", o.layers, kMostNodes / (kMostNodesPerLayer + o.experts * kMostNodesPerExpert));
  if (o.experts > 0) in_range("topk", o.topk, o.experts);
  in_range("hidden", o.hidden, 1 << 20);
  in_range("heads", o.heads, 1 << 16);
  in_range("kv-heads", o.kv_heads, 1 << 16);
  in_range("ffn", o.ffn, 1 << 24);
  in_range("vocab", o.vocab, 1 << 24);
  in_range("positions", o.positions, 1 << 24);
  in_range("max-tokens", o.max_tokens, 1 << 24);
  in_range("tp", o.tp, 1 << 10);
  require(o.quant == "none" || o.quant == "fp8", "quant",
          "`" + o.quant + "` is neither none nor fp8");
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  require(o.hidden % o.heads == 0 && (o.hidden / o.heads) % 2 == 0, "heads",
          "--hidden must be an even multiple of --heads");
  require(o.heads % o.kv_heads == 0, "kv-heads",
          "the number of query heads must be a multiple of it");
  require(o.heads % o.tp == 0 && o.ffn % o.tp == 0, "tp",
          "--heads and --ffn must be multiples of it");
  require(o.kv_heads % o.tp == 0 || o.tp % o.kv_heads == 0, "tp",
          "--kv-heads must be a multiple or a divisor of it");
  require(o.lm_head == "none" || o.vocab % o.tp == 0, "tp", "--vocab must be a multiple of it");
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  return {};
}

class Llama : NodeMaker {
 public:
  Llama(const ContextPtr& context, const LlamaOptions& options, const NextToken& choice)
      : NodeMaker(context, options.experts > 0 ? "moe" : "llama"),
        o_(options),
        choice_(choice),
        head_(options.hidden / options.heads),
        heads_(options.heads / options.tp),
        kv_heads_(std::max<std::int64_t>(1, options.kv_heads / options.tp)),
        ffn_(options.ffn / options.tp) {
    graph.facts.symbols["n"] = {1, options.max_tokens, 1, "tokens"};
    tokens_ = context->dims.symbol("n");
  }

  Result<Graph> run() {
    const ValueId ids =
        everywhere(graph.add_input("ids", type(DType::i64, {tokens_}), InputKind::input));
    positions_ =
        everywhere(graph.add_input("positions", type(DType::i64, {tokens_}), InputKind::input));
    const ValueId table = everywhere(weight("embed_w", DType::bf16, {o_.vocab, o_.hidden}));
    cos_sin_ = everywhere(weight("cos_sin", DType::bf16, {o_.positions, head_}));
    group = "embed";
    ValueId x = call("embedding", {table, ids}, {}, {"embedded"});
    for (std::int64_t i = 0; i < o_.layers && !failed(); ++i) x = layer(i, x);
    group = "final";
    prefix = "final_";
    x = normalised(x);
    if (!choice_.logits) {
      graph.add_output(x);
      return finish();
    }
    prefix.clear();
    ValueId logits = product(Operand{x, {}}, "lm_head", o_.hidden, o_.vocab / o_.tp, false);
    if (o_.tp > 1)
      logits = call("all_gather", {logits},
                    {{"dim", std::int64_t{-1}}, {"world", o_.tp}, {"group", std::string(kRanks)}},
                    {"logits"});
    add_next_token(*this, choice_, {logits, ids, positions_, o_.tp > 1 ? kRanks : ""});
    return finish();
  }

 private:
  ValueId layer(std::int64_t i, ValueId x) {
    const std::string number = std::to_string(i);
    prefix = "l" + number + "_attn_";
    group = "layers." + number + ".attn";
    x = attention(normalised(x), "layers." + number + ".attn");
    prefix = "l" + number + "_mlp_";
    group = "layers." + number + ".mlp";
    x = normalised(x);
    return reduced(o_.experts > 0 ? mixture(x) : mlp(x));
  }

  /// Adds the residual, if there is one yet, keeps the sum as the next residual, and normalises it.
  ValueId normalised(ValueId x) {
    residual_ = residual_.valid() ? call("add", {x, residual_}, {}, {"sum"}) : x;
    const ValueId w = everywhere(weight("norm_w", DType::bf16, {o_.hidden}));
    return call("rms_norm", {residual_, w}, {{"eps", 1e-5}}, {"normed"});
  }

  ValueId attention(ValueId x, const std::string& layer_name) {
    const std::int64_t q_width = heads_ * head_, kv_width = kv_heads_ * head_;
    const auto parts = products(x, "qkv", {{"q", q_width}, {"k", kv_width}, {"v", kv_width}});
    if (parts.empty()) return x;
    const NodeId turned = node("rotary_embedding", {positions_, parts[0], parts[1], cos_sin_},
                               {{"head", head_}, {"neox", true}}, {"qr", "kr"});
    if (!turned.valid()) return x;
    const ValueId q = heads_of(graph.result(turned, 0), heads_, "qh");
    const ValueId k = heads_of(graph.result(turned, 1), kv_heads_, "kh");
    const ValueId v = heads_of(parts[2], kv_heads_, "vh");
    const ValueId y =
        call("unified_attention", {q, k, v, ValueId()}, {{"layer", layer_name}}, {"attended"});
    const ValueId flat = call("reshape", {y}, {{"shape", Shape{tokens_, dim(q_width)}}}, {"flat"});
    return reduced(product(flat, "o", q_width, o_.hidden));
  }

  ValueId mlp(ValueId x) {
    const auto parts = products(x, "gate_up", {{"gate", ffn_}, {"up", ffn_}});
    if (parts.empty()) return x;
    const ValueId gate = call("silu", {parts[0]}, {}, {"gated"});
    const ValueId both_halves = call("mul", {gate, parts[1]}, {}, {"activated"});
    return product(both_halves, "down", ffn_, o_.hidden);
  }

  /// Applies every expert to every token; experts that were not chosen have weight 0.
  ValueId mixture(ValueId x) {
    const ValueId chosen = routed(x);
    const std::string layer = prefix;
    ValueId sum;
    for (std::int64_t e = 0; e < o_.experts && !failed(); ++e) {
      prefix = layer + "e" + std::to_string(e) + "_";
      const ValueId y = mlp(x);
      const ValueId weight = call(
          "slice", {chosen}, {{"dim", std::int64_t{-1}}, {"start", e}, {"end", e + 1}}, {"weight"});
      const ValueId weighted = call("mul", {y, weight}, {}, {"weighted"});
      sum = sum.valid() ? call("add", {sum, weighted}, {}, {"so_far"}) : weighted;
    }
    prefix = layer;
    return sum;
  }

  /// Returns the weights of the experts: softmax of the router's product, with all but the best few
  /// set to 0.
  ValueId routed(ValueId x) {
    const Attribute last = std::int64_t{-1};
    const ValueId w = everywhere(weight("router_w", DType::bf16, {o_.hidden, o_.experts}));
    const ValueId product = call("mm", {x, w}, {}, {"router"});
    const ValueId scores = call("cast", {product}, {{"dtype", DType::f32}}, {"scores"});
    const ValueId most = call("amax", {scores}, {{"dim", last}, {"keepdim", true}}, {"most"});
    const ValueId below = call("sub", {scores, most}, {}, {"below"});
    const ValueId powers = call("exp", {below}, {}, {"powers"});
    const ValueId total = call("sum", {powers}, {{"dim", last}, {"keepdim", true}}, {"total"});
    const ValueId shares = call("div", {powers, total}, {}, {"shares"});
    const ValueId chosen = call("keep_topk", {shares}, {{"k", o_.topk}}, {"chosen"});
    return call("cast", {chosen}, {{"dtype", DType::bf16}}, {"weights"});
  }

  ValueId heads_of(ValueId x, std::int64_t heads, const char* value) {
    return call("reshape", {x}, {{"shape", Shape{tokens_, dim(heads), dim(head_)}}}, {value});
  }

  /// Multiplies x by several weights: one product that is split, or one product each.
  std::vector<ValueId> products(ValueId x, const std::string& all,
                                const std::vector<std::pair<std::string, std::int64_t>>& parts) {
    std::vector<ValueId> out;
    if (o_.separate) {
      const Operand in = operand(x, all);
      for (const auto& [what, width] : parts)
        out.push_back(product(in, what, o_.hidden, width, o_.quant != "none"));
      return out;
    }
    Shape widths;
    std::vector<std::string> names;
    std::int64_t sum = 0;
    for (const auto& [what, width] : parts) {
      widths.push_back(dim(width));
      names.push_back(what);
      sum += width;
    }
    const ValueId whole = product(x, all, o_.hidden, sum);
    const NodeId split =
        node("split", {whole}, {{"dim", std::int64_t{-1}}, {"sizes", widths}}, names);
    if (!split.valid()) return {};
    for (std::size_t i = 0; i < parts.size(); ++i) out.push_back(graph.result(split, i));
    return out;
  }

  /// Left operand of a product: quantised once if several weights follow.
  struct Operand {
    ValueId value, scale;
  };
  Operand operand(ValueId x, const std::string& what) {
    if (o_.quant == "none") return {x, {}};
    const ValueId scale = everywhere(weight(what + "_xs", DType::f32, {1}));
    return {call("static_scaled_fp8_quant", {x, scale}, {}, {what + "_q"}), scale};
  }

  ValueId product(ValueId x, const std::string& what, std::int64_t from, std::int64_t to) {
    if (o_.quant == "none") return product(Operand{x, {}}, what, from, to, false);
    // The weight precedes the scales among the inputs.
    const ValueId w = weight(what + "_w", DType::f8e4m3, {from, to});
    const ValueId x_scale = everywhere(weight(what + "_xs", DType::f32, {1}));
    const ValueId w_scale = weight(what + "_ws", DType::f32, {1});
    const ValueId q = call("static_scaled_fp8_quant", {x, x_scale}, {}, {what + "_q"});
    return call("scaled_mm", {q, w, x_scale, w_scale}, {{"out", DType::bf16}}, {what});
  }

  ValueId product(const Operand& x, const std::string& what, std::int64_t from, std::int64_t to,
                  bool quantised) {
    if (!quantised) {
      const ValueId w = weight(what + "_w", DType::bf16, {from, to});
      return call("mm", {x.value, w}, {}, {what});
    }
    const ValueId w = weight(what + "_w", DType::f8e4m3, {from, to});
    const ValueId scale = weight(what + "_ws", DType::f32, {1});
    return call("scaled_mm", {x.value, w, x.scale, scale}, {{"out", DType::bf16}}, {what});
  }

  ValueId reduced(ValueId x) {
    if (o_.tp == 1) return x;
    return call("all_reduce", {x}, {{"group", std::string(kRanks)}}, {"reduced"});
  }

  /// Declares that all ranks hold the same contents: the input is not a part of a sharded product.
  ValueId everywhere(ValueId input) {
    if (o_.tp > 1) graph.declare_replicated(input, kRanks);
    return input;
  }

  const LlamaOptions& o_;
  const NextToken choice_;
  std::int64_t head_, heads_, kv_heads_, ffn_;
  DimId tokens_;
  ValueId positions_, cos_sin_, residual_;
};

}  // namespace

Graph shuffled(Graph graph, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::size_t> missing(graph.node_bound());  // operands whose producers come first
  std::vector<NodeId> after(graph.node_bound());         // the next that keeps its order
  std::vector<NodeId> ready;
  NodeId kept;
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n)) {
    for (std::size_t i = 0; i < graph.operand_count(n); ++i) {
      const ValueId v = graph.operand(n, i);
      missing[n.index] += v.valid() && !graph.is_input(v) ? 1 : 0;
    }
    const Traits& traits = graph.op_of(n).traits;
    if (traits.effect || traits.collective) {
      if (kept.valid()) after[kept.index] = n, ++missing[n.index];
      kept = n;
    }
    if (missing[n.index] == 0) ready.push_back(n);
  }
  const auto found = [&](NodeId n) {
    if (--missing[n.index] == 0) ready.push_back(n);
  };
  while (!ready.empty()) {
    std::swap(ready[random.below(ready.size())], ready.back());
    const NodeId n = ready.back();
    ready.pop_back();
    graph.move_before(n, {});
    for (std::size_t i = 0; i < graph.result_count(n); ++i)
      for (UseId u = graph.first_use(graph.result(n, i)); u.valid(); u = graph.next_use(u))
        found(graph.user(u));
    if (after[n.index].valid()) found(after[n.index]);
  }
  return graph.compact();
}

Result<Graph> generate_llama(const ContextPtr& context, const LlamaOptions& options) {
  PW_TRY(check_options(options));
  const NextToken choice = PW_TRY(parse_next_token(options.lm_head));
  return Llama(context, options, choice).run();
}

}  // namespace pw
