// Exports generate_model and parse_model.
#include "pipeline/generating.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/try.hpp"
#include "dsl/dsl.hpp"

namespace pw {
namespace {

template <class Number>
std::optional<Number> whole_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string out_of_range(const ModelNumber& number, std::string_view given) {
  return fmt::format("--{}: Value {} not in range {} to {}", number.name, given, number.least,
                     number.most);
}

/// What keeps `word` from being one of them; empty: nothing.
std::string not_among(std::string_view option, const std::string& word,
                      const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), word) != known.end()) return "";
  return fmt::format("{}: {} not in {{{}}}", option, word, fmt::join(known, ","));
}

/// Reads the words of a command; the first mistake is kept.
class ModelWords {
 public:
  explicit ModelWords(const std::string& text) {
    std::istringstream words(text);
    for (std::string word; words >> word;) add(word);
  }

  /// The first mistake, in the order in which the command line finds them; empty: none.
  std::string read(ModelRequest& request) {
    for (std::size_t i = 0; i < words_.size(); ++i)
      if (const std::string wrong = take(request, i); !wrong.empty()) return wrong;
    if (!unexpected_.empty())
      return fmt::format("The following argument{} not expected: {}",
                         unexpected_.size() == 1 ? " was" : "s were",
                         fmt::join(unexpected_.rbegin(), unexpected_.rend(), " "));
    return request.family.empty() ? "family is required" : "";
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
    if (at + 1 == words_.size()) return word + ": 1 required value missing";
    return take_value(request, word.substr(2), words_[++at]);
  }

  std::string take_family(ModelRequest& request, const std::string& word) {
    if (!request.family.empty()) {
      unexpected_.push_back(word);
      return "";
    }
    request.family = word;
    return not_among("family", word, model_families());
  }

  static bool is_option(const std::string& word) {
    const auto& numbers = model_numbers();
    return word == "--quant" || word == "--shuffle" ||
           std::any_of(numbers.begin(), numbers.end(),
                       [&](const ModelNumber& n) { return word.substr(2) == n.name; });
  }

  static std::string take_value(ModelRequest& request, const std::string& name,
                                const std::string& value) {
    if (name == "quant") {
      request.llama.quant = value;
      return not_among("--quant", value, model_quantisations());
    }
    if (name == "shuffle") {
      request.shuffle = whole_number<std::uint64_t>(value);
      return request.shuffle ? "" : "Could not convert: --shuffle = " + value;
    }
    for (const ModelNumber& number : model_numbers()) {
      if (number.name != name) continue;
      const auto read = whole_number<std::int64_t>(value);
      if (!read || *read < number.least || *read > number.most) return out_of_range(number, value);
      *number.place(request) = *read;
    }
    return "";
  }

  std::vector<std::string> words_, unexpected_;
  std::set<std::string> seen_;
};

std::string wrong_in(ModelRequest& request) {
  if (std::string wrong = not_among("family", request.family, model_families()); !wrong.empty())
    return wrong;
  for (const ModelNumber& number : model_numbers()) {
    const std::int64_t value = *number.place(request);
    if (value < number.least || value > number.most)
      return out_of_range(number, std::to_string(value));
  }
  return not_among("--quant", request.llama.quant, model_quantisations());
}

}  // namespace

const std::vector<ModelNumber>& model_numbers() {
  static const std::vector<ModelNumber> kNumbers{
      {"layers", 1, 100000, [](ModelRequest& r) { return &r.llama.layers; }},
      {"hidden", 1, 1 << 20, [](ModelRequest& r) { return &r.llama.hidden; }},
      {"heads", 1, 1 << 16, [](ModelRequest& r) { return &r.llama.heads; }},
      {"kv-heads", 1, 1 << 16, [](ModelRequest& r) { return &r.llama.kv_heads; }},
      {"ffn", 1, 1 << 22, [](ModelRequest& r) { return &r.llama.ffn; }},
      {"vocab", 1, 1 << 24, [](ModelRequest& r) { return &r.llama.vocab; }},
      {"tp", 1, 1024, [](ModelRequest& r) { return &r.llama.tp; }},
      {"experts", 1, 1024, [](ModelRequest& r) { return &r.experts; }},
      {"topk", 1, 1024, [](ModelRequest& r) { return &r.llama.topk; }},
  };
  return kNumbers;
}

const std::vector<std::string>& model_families() {
  static const std::vector<std::string> kFamilies{"llama", "moe"};
  return kFamilies;
}

const std::vector<std::string>& model_quantisations() {
  static const std::vector<std::string> kQuantisations{"none", "fp8"};
  return kQuantisations;
}

Result<Graph> generate_model(const ContextPtr& context, const ModelRequest& request) {
  ModelRequest model = request;
  if (const std::string wrong = wrong_in(model); !wrong.empty())
    return fail(error_at({}, "PW1430", wrong, "`pwr generate --help` lists the options"));
  PW_TRY(load_op_library(context));
  model.llama.experts = model.family == "moe" ? model.experts : 0;
  Graph graph = PW_TRY(generate_llama(context, model.llama));
  return model.shuffle ? shuffled(std::move(graph), *model.shuffle) : std::move(graph);
}

Result<ModelRequest> parse_model(const std::string& options) {
  ModelRequest request;
  if (const std::string wrong = ModelWords(options).read(request); !wrong.empty())
    return fail(error_at({}, "PW1430", "`pwr generate " + options + "` is no command: " + wrong,
                         "`pwr generate --help` lists the options"));
  return request;
}

}  // namespace pw
