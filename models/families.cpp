#include "models/families.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace pw {
namespace {

constexpr ModelParts kLlama{};

/// Applies changes to a known family.
template <class Change>
constexpr ModelParts with(ModelParts parts, Change change) {
  change(parts);
  return parts;
}

constexpr ModelParts kQwen2 = with(kLlama, [](ModelParts& p) { p.eps = 1e-6, p.qkv_bias = true; });
constexpr ModelParts kQwen3 =
    with(kLlama, [](ModelParts& p) { p.eps = 1e-6, p.head_norm = HeadNorm::before_rope; });
constexpr ModelParts kGemma = with(kLlama, [](ModelParts& p) {
  p.eps = 1e-6, p.norm = NormKind::rms_plus_one, p.scaled_embedding = true;
  p.activation = Activation::gelu_tanh;
});
constexpr ModelParts kGemma2 = with(kGemma, [](ModelParts& p) { p.norm_results = true; });
constexpr ModelParts kGemma3 =
    with(kGemma2, [](ModelParts& p) { p.head_norm = HeadNorm::before_rope; });
constexpr ModelParts kMixtral = with(kLlama, [](ModelParts& p) { p.router = Router::product; });
constexpr ModelParts kQwen3Moe = with(kQwen3, [](ModelParts& p) { p.router = Router::product; });
constexpr ModelParts kLlama4 = with(kLlama, [](ModelParts& p) {
  p.plain_every = 4, p.head_norm = HeadNorm::after_rope;
  p.router = Router::product, p.sigmoid = true, p.whole_weights = false;
});
constexpr ModelParts kDeepseekV2 = with(kLlama, [](ModelParts& p) {
  p.latent = true, p.neox = false, p.router = Router::inside, p.whole_weights = false;
});
constexpr ModelParts kDeepseekV3 = with(
    kDeepseekV2, [](ModelParts& p) { p.eps = 1e-6, p.sigmoid = true, p.whole_weights = true; });
constexpr ModelParts kGptOss = with(kLlama, [](ModelParts& p) {
  p.qkv_bias = p.out_bias = true;
  p.router = Router::product, p.router_bias = true;
});
constexpr ModelParts kOpt = with(kLlama, [](ModelParts& p) {
  p.norm = NormKind::layer, p.position_offset = 2;
  p.qkv_bias = p.out_bias = p.ffn_bias = true;
  p.gated = false, p.activation = Activation::relu;
});
constexpr ModelParts kGpt2 =
    with(kOpt, [](ModelParts& p) { p.position_offset = 0, p.activation = Activation::gelu_tanh; });

/// A size with the name of its option.
struct SizeOption {
  std::string_view name;
  std::int64_t ModelSizes::* size;
  std::optional<std::int64_t> FamilyOptions::* given;
};
constexpr SizeOption kSizeOptions[] = {
    {"layers", &ModelSizes::layers, &FamilyOptions::layers},
    {"hidden", &ModelSizes::hidden, &FamilyOptions::hidden},
    {"heads", &ModelSizes::heads, &FamilyOptions::heads},
    {"kv-heads", &ModelSizes::kv_heads, &FamilyOptions::kv_heads},
    {"head", &ModelSizes::head, &FamilyOptions::head},
    {"ffn", &ModelSizes::ffn, &FamilyOptions::ffn},
    {"vocab", &ModelSizes::vocab, &FamilyOptions::vocab},
    {"experts", &ModelSizes::experts, &FamilyOptions::experts},
    {"topk", &ModelSizes::topk, &FamilyOptions::topk},
    {"expert-ffn", &ModelSizes::expert_ffn, &FamilyOptions::expert_ffn},
    {"q-rank", &ModelSizes::q_rank, &FamilyOptions::q_rank},
    {"kv-rank", &ModelSizes::kv_rank, &FamilyOptions::kv_rank},
};

/// Derives sizes that are not given from those that are.
void follow(ModelSizes& s, const ModelSizes& family, const FamilyOptions& options) {
  if (options.heads)
    s.kv_heads = std::max<std::int64_t>(1, s.heads * family.kv_heads / family.heads);
  if (options.heads || options.hidden) s.head = s.hidden / std::max<std::int64_t>(1, s.heads);
  if (options.ffn && s.experts > 0) s.expert_ffn = s.ffn;
  s.topk = std::min(s.topk, s.experts);
}

}  // namespace

const std::vector<ModelFamily>& decoder_families() {
  // layers, hidden, heads, key heads, head, ffn, vocab; experts, topk, width, shared, dense layers;
  // ranks of queries and of keys and values
  static const std::vector<ModelFamily> kFamilies{
      {"llama3", "Llama 3 (8B)", kLlama, {32, 4096, 32, 8, 128, 14336, 128256}},
      {"llama4",
       "Llama 4 (Scout): no rotation in every fourth layer, experts with one shared",
       kLlama4,
       {48, 5120, 40, 8, 128, 8192, 202048, 16, 1, 8192, 1}},
      {"qwen2",
       "Qwen2 (7B): query, key and value biases",
       kQwen2,
       {28, 3584, 28, 4, 128, 18944, 152064}},
      {"qwen3", "Qwen3 (8B): per-head norms", kQwen3, {36, 4096, 32, 8, 128, 12288, 151936}},
      {"qwen3-moe",
       "Qwen3 (30B-A3B): experts",
       kQwen3Moe,
       {48, 2048, 32, 4, 128, 6144, 151936, 128, 8, 768}},
      {"gemma",
       "Gemma (7B): norms scaled by 1 + w, gelu",
       kGemma,
       {28, 3072, 16, 16, 256, 24576, 256000}},
      {"gemma2",
       "Gemma 2 (9B): norms also after attention and MLP",
       kGemma2,
       {42, 3584, 16, 8, 256, 14336, 256000}},
      {"gemma3",
       "Gemma 3 (12B): norms also after attention and MLP, per-head norms",
       kGemma3,
       {48, 3840, 16, 8, 256, 15360, 262208}},
      {"mixtral",
       "Mixtral (8x7B): experts",
       kMixtral,
       {32, 4096, 32, 8, 128, 14336, 32000, 8, 2, 14336}},
      {"deepseek-v2",
       "DeepSeek V2 (Lite): latent attention, experts with two shared",
       kDeepseekV2,
       {27, 2048, 16, 16, 128, 10944, 102400, 64, 6, 1408, 2, 1, 0, 512}},
      {"deepseek-v3",
       "DeepSeek V3: latent attention with low-rank queries, experts",
       kDeepseekV3,
       {61, 7168, 128, 128, 128, 18432, 129280, 256, 8, 2048, 1, 3, 1536, 512}},
      {"gpt-oss",
       "gpt-oss (20B): biases, experts",
       kGptOss,
       {24, 2880, 64, 8, 64, 2880, 201088, 32, 4, 2880}},
      {"opt",
       "OPT (6.7B): layer normalisation, learned positions, relu",
       kOpt,
       {32, 4096, 32, 32, 128, 16384, 50272}},
      {"gpt2",
       "GPT-2 (124M): layer normalisation, learned positions, gelu",
       kGpt2,
       {12, 768, 12, 12, 64, 3072, 50257}},
  };
  return kFamilies;
}

const std::vector<std::string>& family_quantisations() {
  static const std::vector<std::string> kKinds{"none", "fp8", "fp8-token", "fp8-group", "nvfp4"};
  return kKinds;
}

const ModelFamily* find_family(std::string_view name) {
  for (const ModelFamily& family : decoder_families())
    if (family.name == name) return &family;
  return nullptr;
}

Result<ModelSizes> family_sizes(const FamilyOptions& options) {
  const ModelFamily* family = find_family(options.family);
  if (family == nullptr)
    return fail(error_in("option family", "PW0801", "unknown family `" + options.family + "`"));
  const auto has = [&](const SizeOption& option) {
    return family->sizes.*option.size > 0 || (option.name == "q-rank" && family->parts.latent);
  };
  ModelSizes s = family->sizes;
  for (const bool followed : {false, true}) {
    for (const SizeOption& option : kSizeOptions) {
      if (!(options.*option.given)) continue;
      if (!has(option))
        return fail(error_in(fmt::format("option --{}", option.name), "PW0801",
                             fmt::format("{} has no such part", family->name),
                             "remove the option"));
      s.*option.size = *(options.*option.given);
    }
    if (!followed) follow(s, family->sizes, options);
  }
  s.dense_layers = std::min(s.dense_layers, std::max<std::int64_t>(0, s.layers - 1));
  return s;
}

}  // namespace pw
