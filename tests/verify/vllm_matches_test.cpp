// What vLLM 0.33's own passes match in its graphs, pipeline o2 matches too: dumps as they are
// printed before those passes, and their numbers.
#include <iostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/io/file.hpp"
#include "import/fx/fx.hpp"
#include "splitter/splitter.hpp"
#include "tests/shared_dump.hpp"
#include "tests/verify/rules.hpp"
#include "verify/baseline.hpp"

namespace {

using namespace pw;
using namespace pw::test;

const std::map<std::string, std::vector<std::string>> kRules = {
    {"RMSNormQuantFusionPass",
     {"rms_quant", "add_rms_quant", "rms_quant_dyn", "add_rms_quant_dyn"}},
    {"ActivationQuantFusionPass", {"silu_mul_quant", "silu_mul_quant_dyn"}},
    {"AllReduceFusionPass", {"all_reduce_rms", "all_reduce_add_rms"}},
    {"QKNormRoPEFusionPass", {"qk_norm_rope"}},
};

Graph read(const RuleSet& rules, const std::string& path) {
  FxOptions options;
  options.file = path;
  Result<FxImport> import = import_fx(rules.context, read_file(path).value(), options);
  INFO((import ? std::string() : render(import.error(), rules.context->sources)));
  REQUIRE(import);
  return std::move(import->graph);
}

/// The number of rewrites by these rules, and the rewrites.
std::size_t count(const PipelineCounts& counts, const std::vector<std::string>& rules,
                  std::string& which) {
  std::size_t sum = 0;
  for (const auto& [rule, times] : counts.rewrites) {
    if (std::find(rules.begin(), rules.end(), rule.substr(0, rule.find_first_of("[#"))) ==
        rules.end())
      continue;
    sum += times;
    which += fmt::format("{}{} {}", which.empty() ? "" : ", ", rule, times);
  }
  return sum;
}

std::string before_of(const std::string& folder, const std::string& name) {
  return folder + "/" + name + (name.starts_with("model/") ? "/full/before.txt" : "/before.txt");
}

}  // namespace

TEST_CASE("vllm: o2 makes the matches of vLLM's passes on its own dumps", "[verify][vllm]") {
  const std::string path = shared_dump("vllm-0.33/expected.json");
  if (path.empty()) return;
  const std::string folder = path.substr(0, path.rfind('/'));
  const RuleSet rules = library_rules();
  std::size_t theirs = 0, ours = 0;
  const auto cases = nlohmann::json::parse(read_file(path).value());
  for (const auto& [name, expected] : cases.items()) {
    INFO(name);
    const bool two_ranks = name.ends_with("_tp2");
    const Env params = bind_params(rules, {{"tp", two_ranks ? "2" : "1"}}).value();
    const Graph graph = read(rules, before_of(folder, name));
    const PipelineCounts counts = count_pipeline(graph, rules, "o2", params).value();
    for (const auto& [pass, number] : expected.at("matches").items()) {
      INFO(pass);
      REQUIRE(kRules.contains(pass));
      std::string which;
      const std::size_t made = count(counts, kRules.at(pass), which);
      std::cout << fmt::format("{:36} {:26} vLLM {:2}  ours {:2}  {}\n", name, pass,
                               number.get<int>(), made, which);
      CHECK(made >= number.get<std::size_t>());
      theirs += number.get<std::size_t>();
      ours += std::min(made, number.get<std::size_t>());
    }
  }
  std::cout << fmt::format("{} of {} matches\n", ours, theirs);
  CHECK(theirs > 0);
}

TEST_CASE("vllm: its dumps fall into as many pieces as it makes, or fewer", "[verify][vllm]") {
  const std::string path = shared_dump("vllm-0.33/expected.json");
  if (path.empty()) return;
  const std::string folder = path.substr(0, path.rfind('/'));
  const RuleSet rules = library_rules();
  const auto splitting = splitting_ops(rules.context, &rules, {}, {}).value();
  const auto cases = nlohmann::json::parse(read_file(path).value());
  for (const auto& [name, expected] : cases.items()) {
    if (!expected.contains("pieces")) continue;
    for (const std::string file : {"full/before.txt", "computation_graph.txt", "split.txt"}) {
      INFO(name << ", " << file);
      const std::string text = folder + "/" + name + "/" + file;
      Graph graph = read(rules, text);
      const std::size_t raw = split(graph, splitting).value().pieces.size();
      CHECK(run_pipeline(graph, rules, "o2", bind_params(rules, {}).value()));
      const std::size_t pieces = split(graph, splitting).value().pieces.size();
      std::cout << fmt::format("{:24} {:22} vLLM {} pieces, ours {}, {} after o2\n", name, file,
                               expected.at("pieces").get<int>(), raw, pieces);
      CHECK(pieces <= expected.at("pieces").get<std::size_t>());
      CHECK(raw <= expected.at("pieces").get<std::size_t>());
    }
  }
}
