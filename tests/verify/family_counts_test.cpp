// How often the fusions of pipeline o2 apply to generated decoders of n layers, compared with the
// structure of a layer: two norms, one activation and one attention, each before a linear layer;
// and the generated graphs, op for op, compared with dumps of the real models.
#include <algorithm>
#include <iostream>
#include <map>
#include <regex>

#include <fmt/format.h>

#include "base/io/file.hpp"
#include "graph/compare/graph_diff.hpp"
#include "graph/text/text.hpp"
#include "import/fx/fx.hpp"
#include "models/families.hpp"
#include "tests/shared_dump.hpp"
#include "tests/verify/rules.hpp"
#include "verify/baseline.hpp"

namespace {

using namespace pw;
using namespace pw::test;

/// A model of n layers, and rules of which one applies `each` times a layer and `once` more often.
struct CountRow {
  std::string what, family, quant;
  std::int64_t tp = 1;
  std::vector<std::string> rules;
  std::size_t each = 0, once = 0;
  std::vector<std::pair<std::string, std::string>> params = {};
};

const std::vector<std::pair<std::string, std::string>> kPartsFrom16{{"sp_tokens", "16"}};

const std::vector<CountRow> kCounts{
    {"fp8 rms+quant", "llama3", "fp8", 1, {"rms_quant", "add_rms_quant"}, 2},
    {"fp8 act+quant", "llama3", "fp8", 1, {"silu_mul_quant"}, 1},
    {"fp8 attn+quant", "llama3", "fp8", 1, {"attn_quant"}, 1},
    {"group fp8 rms+quant",
     "llama3",
     "fp8-group",
     1,
     {"rms_quant_dyn[group]", "add_rms_quant_dyn[group]"},
     2},
    {"group fp8 act+quant", "llama3", "fp8-group", 1, {"silu_mul_quant_dyn[group]"}, 1},
    {"token fp8 rms+quant",
     "llama3",
     "fp8-token",
     1,
     {"rms_quant_dyn[token]", "add_rms_quant_dyn[token]"},
     2},
    {"nvfp4 rms+quant",
     "llama3",
     "nvfp4",
     1,
     {"rms_quant_dyn[nvfp4]", "add_rms_quant_dyn[nvfp4]"},
     2},
    {"nvfp4 act+quant", "llama3", "nvfp4", 1, {"silu_mul_quant_dyn[nvfp4]"}, 1},
    {"nvfp4 attn+quant",
     "llama3",
     "nvfp4",
     1,
     {"attn_quant_dyn[nvfp4]"},
     1,
     0,
     {{"attention_output", "nvfp4"}}},
    {"norm+rope", "qwen3", "none", 1, {"qk_norm_rope"}, 1},
    {"all_reduce+norm", "llama3", "none", 2, {"all_reduce_rms", "all_reduce_add_rms"}, 2, 1},
    {"fp8 all_reduce+norm", "llama3", "fp8", 2, {"all_reduce_rms", "all_reduce_add_rms"}, 2, 1},
    {"sequence parallelism", "llama3", "none", 2, {"sp_first_norm", "sp_norm"}, 2, 1, kPartsFrom16},
    {"async TP",
     "llama3",
     "none",
     2,
     {"gemm_reduce_scatter", "all_gather_gemm"},
     4,
     0,
     kPartsFrom16},
    {"async TP with biases",
     "qwen2",
     "none",
     2,
     {"gemm_reduce_scatter", "all_gather_gemm", "all_gather_gemm_bias"},
     4,
     0,
     kPartsFrom16},
    {"fp8 seq. parallelism", "llama3", "fp8", 2, {"sp_first_norm", "sp_norm"}, 2, 1, kPartsFrom16},
    {"fp8 async TP",
     "llama3",
     "fp8",
     2,
     {"scaled_gemm_reduce_scatter[fp8]", "all_gather_scaled_gemm"},
     4,
     0,
     kPartsFrom16},
};

FamilyOptions small_family(const std::string& name, std::int64_t layers) {
  FamilyOptions options;
  options.family = name;
  options.layers = layers;
  options.hidden = 256;
  options.heads = 4;
  options.kv_heads = 2;
  options.ffn = 512;
  options.vocab = 512;
  options.positions = 256;
  return options;
}

Graph made(const RuleSet& rules, const FamilyOptions& options) {
  Result<Graph> graph = generate_family(rules.context, options);
  INFO(options.family << ": " << (graph ? "" : render(graph.error(), rules.context->sources)));
  REQUIRE(graph);
  return std::move(*graph);
}

std::size_t times(const PipelineCounts& counts, const std::vector<std::string>& rules) {
  std::size_t sum = 0;
  for (const auto& [rule, count] : counts.rewrites)
    if (std::find(rules.begin(), rules.end(), rule.substr(0, rule.find('#'))) != rules.end())
      sum += count;
  return sum;
}

/// What only a dump or only a generated graph can state: the name and range of the tokens' symbol,
/// the layers' names, which are numbered here, and which inputs are replicated.
Graph without_names(const Graph& graph) {
  Graph live = graph.compact();
  live.erase_dead();
  const auto replaced = [](const std::string& text, const std::string& what, const char* by) {
    return std::regex_replace(text, std::regex(what), by);
  };
  std::string text = replaced(print_pwg(live), "\\b" + live.facts.tokens() + "\\b", "n");
  text = replaced(text, "symbol n .* tokens", "symbol n in 1..64 tokens");
  text = replaced(text, " replicated \"[^\"]*\"", "");
  const std::string named = "layer = \"";
  std::map<std::string, std::size_t> numbers;
  for (std::size_t at = text.find(named); at != std::string::npos; at = text.find(named, at + 1)) {
    const std::size_t begin = at + named.size(), size = text.find('"', begin) - begin;
    const std::size_t number =
        numbers.emplace(text.substr(begin, size), numbers.size()).first->second;
    text.replace(begin, size, std::to_string(number));
  }
  return parse_graph(graph.context_ptr(), text, "renamed.pwg").value();
}

/// A line for each difference.
std::string differences(const Graph& ours, const Graph& theirs) {
  std::string out;
  for (const GraphChange& change : diff_graphs(ours, theirs, match_graphs(ours, theirs)).changes)
    out +=
        fmt::format("{} × {} {}: {}\n", change.count, name(change.kind), change.thing, change.what);
  return out;
}

struct Dumped {
  std::string dump;
  FamilyOptions options;
};

std::vector<Dumped> dumped_models() {
  const auto model = [](const std::string& dump, const std::string& family, auto change) {
    Dumped out{dump, small_family(family, 2)};
    change(out.options);
    return out;
  };
  return {
      model("llama", "llama3", [](FamilyOptions&) {}),
      model("llama_fp8", "llama3", [](FamilyOptions& o) { o.quant = "fp8"; }),
      model("llama_fp8dyn", "llama3", [](FamilyOptions& o) { o.quant = "fp8-token"; }),
      model("llama_fp8block", "llama3", [](FamilyOptions& o) { o.quant = "fp8-group"; }),
      model("llama_fp8_tp2", "llama3", [](FamilyOptions& o) { o.quant = "fp8", o.tp = 2; }),
      model("qwen3", "qwen3", [](FamilyOptions& o) { o.eps = 1e-5; }),
      model("mixtral", "mixtral", [](FamilyOptions& o) { o.opaque = true, o.experts = 4; }),
      model("opt", "opt", [](FamilyOptions& o) { o.kv_heads = 4; }),
      model("deepseek_v2", "deepseek-v2",
            [](FamilyOptions& o) { o.opaque = true, o.head = 128, o.kv_heads = 4; }),
  };
}

}  // namespace

TEST_CASE("families: fusions apply once a place, in 2, 6 and 32 layers", "[verify][families]") {
  const RuleSet rules = library_rules();
  std::cout << fmt::format("{:22} {:10} {:10} {:>3} {:>6} {:>9} {:>7}\n", "fusion", "family",
                           "quant", "tp", "layers", "expected", "counted");
  for (const CountRow& row : kCounts) {
    for (const std::size_t n : {2, 6, 32}) {
      FamilyOptions options = small_family(row.family, static_cast<std::int64_t>(n));
      options.quant = row.quant;
      options.tp = row.tp;
      auto given = row.params;
      given.emplace_back("tp", std::to_string(row.tp));
      const Env params = bind_params(rules, given).value();
      const PipelineCounts counts =
          count_pipeline(made(rules, options), rules, "o2", params).value();
      const std::size_t expected = row.each * n + row.once, counted = times(counts, row.rules);
      std::cout << fmt::format("{:22} {:10} {:10} {:>3} {:>6} {:>9} {:>7}\n", row.what, row.family,
                               row.quant, row.tp, n, expected, counted);
      CHECK(counted == expected);
    }
  }
}

TEST_CASE("families: a generated model is its dump, op for op", "[verify][families]") {
  if (shared_dump("vllm-0.33/expected.json").empty()) return;
  const RuleSet rules = library_rules();
  for (const auto& [dump, options] : dumped_models()) {
    const std::string path = shared_dump("vllm-0.33/model/" + dump + "/full/before.txt");
    FxOptions reading;
    reading.file = path;
    const FxImport import = import_fx(rules.context, read_file(path).value(), reading).value();
    const std::string differing =
        differences(without_names(made(rules, options)), without_names(import.graph));
    INFO(dump << "\n" << differing);
    CHECK(differing.empty());
  }
}
