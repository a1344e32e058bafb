#include "pipeline/generate.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/parse_number.hpp"
#include "base/try.hpp"
#include "dsl/dsl.hpp"
#include "models/generate.hpp"

namespace pw {
namespace {

std::optional<double> real_number(const std::string& text) {
  const auto value = parse_number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::string out_of_range(const ModelNumber& number, std::string_view given) {
  return fmt::format("--{}: Value {} not in range {} to {}", number.name, given, number.least,
                     number.most);
}

/// Returns why `word` is not one of them; empty if it is.
std::string not_among(std::string_view option, const std::string& word,
                      const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), word) != known.end()) return "";
  return fmt::format("{}: {} not in {{{}}}", option, word, fmt::join(known, ","));
}

const std::vector<std::string>& family_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> out;
    for (const FamilyName& family : model_families()) out.push_back(family.name);
    return out;
  }();
  return kNames;
}

/// Reads the words of a command and stores the first mistake.
class ModelWords {
 public:
  explicit ModelWords(const std::string& text) {
    std::istringstream words(text);
    for (std::string word; words >> word;) add(word);
  }

  /// Returns the first mistake in the order of the command line; empty if there is none.
  std::string read(ModelRequest& request) {
    for (std::size_t i = 0; i < words_.size(); ++i)
      if (const std::string wrong = take(request, i); !wrong.empty()) return wrong;
    if (!unexpected_.empty())
      return fmt::format("The following argument{} not expected: {}",
                         unexpected_.size() == 1 ? " was" : "s were",
                         fmt::join(unexpected_.rbegin(), unexpected_.rend(), " "));
    return request.model.family.empty() ? "family is required" : "";
  }

 private:
  /// `--layers=2` is two words.
  void add(const std::string& word) {
    const std::size_t equals = word.find('=');
    if (!word.starts_with("--") || equals == std::string::npos) return words_.push_back(word);
    words_.push_back(word.substr(0, equals));
    words_.push_back(word.substr(equals + 1));
  }

  std::string take(ModelRequest& request, std::size_t& at) {
    const std::string word = words_[at];
    if (!word.starts_with("--")) return take_family(request, word);
    if (!is_option(word)) {
      unexpected_.push_back(word);
      return "";
    }
    if (!seen_.insert(word).second) return word + ": At Most 1 required but received 2";
    if (word == "--opaque" || word == "--separate") {
      (word == "--opaque" ? request.model.opaque : request.separate) = true;
      return "";
    }
    if (at + 1 == words_.size()) return word + ": 1 required value missing";
    return take_value(request, word.substr(2), words_[++at]);
  }

  std::string take_family(ModelRequest& request, const std::string& word) {
    if (!request.model.family.empty()) {
      unexpected_.push_back(word);
      return "";
    }
    request.model.family = word;
    return not_among("family", word, family_names());
  }

  static bool is_option(const std::string& word) {
    const auto& numbers = model_numbers();
    return word == "--quant" || word == "--lm-head" || word == "--eps" || word == "--shuffle" ||
           word == "--opaque" || word == "--separate" ||
           std::any_of(numbers.begin(), numbers.end(),
                       [&](const ModelNumber& n) { return word.substr(2) == n.name; });
  }

  static std::string take_value(ModelRequest& request, const std::string& name,
                                const std::string& value) {
    if (name == "quant") {
      request.model.quant = value;
      return not_among("--quant", value, model_quantisations());
    }
    if (name == "lm-head") {
      request.model.lm_head = value;
      return "";
    }
    if (name == "eps") {
      request.model.eps = real_number(value);
      return request.model.eps ? "" : "Could not convert: --eps = " + value;
    }
    if (name == "shuffle") {
      request.shuffle = parse_number<std::uint64_t>(value);
      return request.shuffle ? "" : "Could not convert: --shuffle = " + value;
    }
    for (const ModelNumber& number : model_numbers()) {
      if (number.name != name) continue;
      const auto read = parse_number<std::int64_t>(value);
      if (!read || *read < number.least || *read > number.most) return out_of_range(number, value);
      *number.place(request) = *read;
    }
    return "";
  }

  std::vector<std::string> words_, unexpected_;
  std::set<std::string> seen_;
};

std::string wrong_in(ModelRequest& request) {
  if (std::string wrong = not_among("family", request.model.family, family_names()); !wrong.empty())
    return wrong;
  for (const ModelNumber& number : model_numbers()) {
    const std::optional<std::int64_t>& value = *number.place(request);
    if (value && (*value < number.least || *value > number.most))
      return out_of_range(number, std::to_string(*value));
  }
  return not_among("--quant", request.model.quant, model_quantisations());
}

bool is_plain(std::string_view family) { return family == "llama" || family == "moe"; }

/// Returns options for the families llama and moe. Rejects parts that they lack.
Result<LlamaOptions> plain_options(const ModelRequest& request) {
  const FamilyOptions& given = request.model;
  for (const auto& [name, is_given] : {std::pair{"head", given.head.has_value()},
                                       {"expert-ffn", given.expert_ffn.has_value()},
                                       {"q-rank", given.q_rank.has_value()},
                                       {"kv-rank", given.kv_rank.has_value()},
                                       {"rank", request.rank.has_value()},
                                       {"group", request.group.has_value()},
                                       {"eps", given.eps.has_value()},
                                       {"opaque", given.opaque}}) {
    if (is_given)
      return fail(error_at({}, "PW1430",
                           fmt::format("--{}: the family {} has no such part", name, given.family),
                           "leave it out, or use another family"));
  }
  LlamaOptions out;
  for (auto [size, value] : {std::pair{&out.layers, given.layers},
                             {&out.hidden, given.hidden},
                             {&out.heads, given.heads},
                             {&out.kv_heads, given.kv_heads},
                             {&out.ffn, given.ffn},
                             {&out.vocab, given.vocab},
                             {&out.max_tokens, request.max_tokens},
                             {&out.topk, given.topk},
                             {&out.tp, request.tp}})
    *size = value.value_or(*size);
  out.quant = given.quant;
  out.lm_head = given.lm_head;
  out.separate = request.separate;
  out.experts = given.family == "moe" ? given.experts.value_or(8) : 0;
  return out;
}

Result<Graph> generate_any(const ContextPtr& context, const ModelRequest& request) {
  if (is_plain(request.model.family))
    return generate_llama(context, PW_TRY(plain_options(request)));
  if (request.separate)
    return fail(
        error_at({}, "PW1430",
                 fmt::format("--separate: the family {} always uses the merged matmuls of vLLM",
                             request.model.family),
                 "leave it out, or use llama or moe"));
  FamilyOptions options = request.model;
  options.max_tokens = request.max_tokens.value_or(options.max_tokens);
  options.tp = request.tp.value_or(options.tp);
  options.rank = request.rank.value_or(options.rank);
  options.group = request.group.value_or(options.group);
  return generate_family(context, options);
}

}  // namespace

const std::vector<ModelNumber>& model_numbers() {
  static const std::vector<ModelNumber> kNumbers{
      {"layers", 1, 100000, [](ModelRequest& r) { return &r.model.layers; }},
      {"hidden", 1, 1 << 20, [](ModelRequest& r) { return &r.model.hidden; }},
      {"heads", 1, 1 << 16, [](ModelRequest& r) { return &r.model.heads; }},
      {"kv-heads", 1, 1 << 16, [](ModelRequest& r) { return &r.model.kv_heads; }},
      {"head", 1, 1 << 16, [](ModelRequest& r) { return &r.model.head; }},
      {"ffn", 1, 1 << 22, [](ModelRequest& r) { return &r.model.ffn; }},
      {"vocab", 1, 1 << 24, [](ModelRequest& r) { return &r.model.vocab; }},
      {"max-tokens", 1, 1 << 24, [](ModelRequest& r) { return &r.max_tokens; }},
      {"tp", 1, 1024, [](ModelRequest& r) { return &r.tp; }},
      {"rank", 0, 1023, [](ModelRequest& r) { return &r.rank; }},
      {"group", 1, 1 << 16, [](ModelRequest& r) { return &r.group; }},
      {"experts", 1, 1024, [](ModelRequest& r) { return &r.model.experts; }},
      {"topk", 1, 1024, [](ModelRequest& r) { return &r.model.topk; }},
      {"expert-ffn", 1, 1 << 22, [](ModelRequest& r) { return &r.model.expert_ffn; }},
      {"q-rank", 0, 1 << 16, [](ModelRequest& r) { return &r.model.q_rank; }},
      {"kv-rank", 1, 1 << 16, [](ModelRequest& r) { return &r.model.kv_rank; }},
  };
  return kNumbers;
}

const std::vector<FamilyName>& model_families() {
  static const std::vector<FamilyName> kFamilies = [] {
    std::vector<FamilyName> out{
        {"llama", "a Llama of plain ops, before any fusion"},
        {"moe", "the same with experts, one branch for each"},
    };
    for (const ModelFamily& family : decoder_families())
      out.push_back({std::string(family.name), std::string(family.what)});
    return out;
  }();
  return kFamilies;
}

const std::vector<std::string>& model_quantisations() { return family_quantisations(); }

std::int64_t model_layers(const ModelRequest& request) {
  if (request.model.layers) return *request.model.layers;
  const ModelFamily* family = find_family(request.model.family);
  return family != nullptr ? family->sizes.layers : LlamaOptions{}.layers;
}

Result<Graph> generate_model(const ContextPtr& context, const ModelRequest& request) {
  ModelRequest model = request;
  if (const std::string wrong = wrong_in(model); !wrong.empty())
    return fail(error_at({}, "PW1430", wrong, "`pwr generate --help` lists the options"));
  PW_TRY(load_op_library(context));
  Graph graph = PW_TRY(generate_any(context, model));
  return model.shuffle ? shuffled(std::move(graph), *model.shuffle) : std::move(graph);
}

Result<ModelRequest> parse_model(const std::string& options) {
  ModelRequest request;
  if (const std::string wrong = ModelWords(options).read(request); !wrong.empty())
    return fail(error_at({}, "PW1430",
                         "`pwr generate " + options + "` is not a valid command: " + wrong,
                         "`pwr generate --help` lists the options"));
  return request;
}

}  // namespace pw
