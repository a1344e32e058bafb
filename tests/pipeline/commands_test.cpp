// What the commands do, as functions: their data, and their mistakes.
#include <filesystem>
#include <fstream>

#include "pipeline/capture_sizes.hpp"
#include "pipeline/check/check.hpp"
#include "pipeline/check/test.hpp"
#include "pipeline/compare.hpp"
#include "pipeline/explain.hpp"
#include "pipeline/generate.hpp"
#include "pipeline/judge/judge.hpp"
#include "pipeline/optimize.hpp"
#include "pipeline/report/graph_stats.hpp"
#include "pipeline/report/op_list.hpp"
#include "tests/catch.hpp"

namespace pw {
namespace {

constexpr const char* kAskedGraph =
    "graph g { symbol n in 1..64 tokens  in x: f32[n, 8]  y = relu(x)  z = relu(y)  out z }";
constexpr const char* kAskedRules =
    "rule a { y = relu(x) => y = neg(x) }\n"
    "rule b { y = relu(x) => y = maximum(x, 0) }\n"
    "pass p = greedy { a }\n"
    "test one { graph { in x: f32[4]  y = relu(x)  out y } apply p expect a == 1 }\n"
    "test two { graph { in x: f32[4]  y = relu(x)  out y } apply p expect a == 2 }\n";

/// A folder that goes with the test.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/pw-commands-XXXXXX";
    path_ = ::mkdtemp(name);
  }
  Folder(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(path_ + "/" + name) << text;
    return path_ + "/" + name;
  }
  [[nodiscard]] std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

Graph read(const ContextPtr& context, const std::string& path) {
  GraphSource source;
  source.path = path;
  return load_logged_graph(context, source, Log()).value();
}

struct Loaded {
  Folder folder;
  ContextPtr context = std::make_shared<Context>();
  std::string graph_file = folder.file("g.pwg", kAskedGraph);
  std::string rule_file = folder.file("r.pwr", kAskedRules);
  LoadedRules rules = load_rules(context, RuleSource{{rule_file}, "", {}}, Log()).value();
  Graph graph = read(context, graph_file);
};

template <class T>
std::string code_of(const Result<T>& result) {
  return result ? "" : result.error().front().code;
}

}  // namespace

TEST_CASE("pipeline: check states what rules do, and every mistake of the files", "[pipeline]") {
  const Loaded at;
  const auto context = std::make_shared<Context>();
  const auto checked = check_rule_files(context, {{at.rule_file}});
  REQUIRE(checked);
  CHECK(check_table(*checked).rows().size() >= 3);
  CHECK(check_to_json(*checked).find("\"kind\":\"summary\"") != std::string::npos);
  const std::string bad = at.folder.file("bad.pwr",
                                         "rule a { y = relux(x) => y = x }\n"
                                         "rule b { y = negx(x) => y = x }\n");
  const auto wrong = check_rule_files(context, {{bad}});
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().size() == 2);
}

TEST_CASE("pipeline: explain takes rules that there are, and options that fit", "[pipeline]") {
  const Loaded at;
  ExplainRequest request{"a", {}, false};
  CHECK(explain_rule(at.graph, at.rules, request)->matches == 2);
  request.pieces = true;
  CHECK(explain_rule(at.graph, at.rules, request)->matches == 2);
  request.options.at = "nothing";
  CHECK(code_of(explain_rule(at.graph, at.rules, request)) == "PW1424");
  request.options.at = "";
  request.options.tokens = 3;
  CHECK(code_of(explain_rule(at.graph, at.rules, request)) == "PW1423");
  for (const char* name : {"aa", ""})
    CHECK(code_of(explain_rule(at.graph, at.rules, {name, {}, false})) == "PW1420");
  CHECK(code_meaning("N08").starts_with("extra users"));
  CHECK(code_meaning("N99").empty());
}

TEST_CASE("pipeline: a pattern gives its matches, or the nearest misses", "[pipeline]") {
  const Loaded at;
  const auto found = load_pattern(at.context, "y = relu(x)  z = relu(y)", {});
  REQUIRE(found);
  const PatternMatches matches = match_pattern(at.graph, *found);
  REQUIRE(matches.matches.size() == 1);
  CHECK(matches.matches.front().nodes.size() == 2);
  CHECK(match_table(matches, 0).empty());
  const auto other = load_pattern(at.context, "z = neg(relu(x))", {});
  REQUIRE(other);
  CHECK(match_pattern(at.graph, *other).matches.empty());
}

TEST_CASE("pipeline: each verdict is passed on as soon as it is known", "[pipeline]") {
  const Loaded at;
  std::vector<std::string> done;
  const auto all = judge_rules(at.rules, {}, {}, Log(), [&](const RuleJudgement& judgement) {
    done.push_back(judgement.rule);
  });
  REQUIRE(all);
  CHECK(done == std::vector<std::string>{"a", "b"});
  CHECK_FALSE(all->front().holds());
  CHECK(all->back().holds());
  CHECK(code_of(judge_rules(at.rules, {"c"}, {}, Log())) == "PW1420");
  CHECK(code_of(judge_rules(at.rules, {}, {.ranks = {0}}, Log())) == "PW1402");
}

TEST_CASE("pipeline: tests of a file that does not load hide no others", "[pipeline]") {
  const Loaded at;
  const std::string bad = at.folder.file("bad.pwr", "rule a { y = relux(x) => y = x }\n");
  std::size_t mistakes = 0;
  const auto outcome = run_test_files(
      {{bad, at.rule_file}, {}, "", 1, false}, Log(),
      [&](const Diagnostics& diagnostics, const ContextPtr&) { mistakes += diagnostics.size(); });
  REQUIRE(outcome);
  CHECK(mistakes == 1);
  REQUIRE(outcome->unloaded.size() == 1);
  CHECK(outcome->report.tests.size() == 2);
  CHECK(outcome->report.failed() == 1);
  CHECK(test_table(outcome->report).rows().back().back().text != "ok");
  CHECK(code_of(run_test_files({{at.rule_file}, {"tp=2"}, "", 1, false}, Log())) == "PW1422");
  std::filesystem::create_directory(at.folder.path("empty"));
  CHECK(code_of(test_files({at.folder.path("empty")})) == "PW1421");
}

TEST_CASE("pipeline: a trace that cannot be written ends a rewrite", "[pipeline]") {
  const Loaded at;
  OptimizeRequest request;
  request.pipeline = "p";
  const auto variants = optimize(at.graph, at.rules, request, Log());
  REQUIRE(variants);
  CHECK(count_graph(variants->front().result.graph).ops.front().op == "neg");
  CHECK(pass_table(*variants).rows().size() == 1);
  request.trace = at.graph_file + "/trace";
  CHECK(code_of(optimize(at.graph, at.rules, request, Log())) == "PW0001");
  CHECK(code_of(check_graph_path("graph.txt")) == "PW1426");
  CHECK(code_of(matcher_text(at.graph, at.rules, "q")) == "PW1428");
}

TEST_CASE("pipeline: models by the text of their options", "[pipeline]") {
  const auto context = std::make_shared<Context>();
  const auto request =
      parse_model("--layers=2 moe --hidden 64 --heads 4 --kv-heads 2 --ffn 128 --shuffle 3");
  REQUIRE(request);
  CHECK(request->model.family == "moe");
  CHECK(request->model.layers == 2);
  CHECK(request->shuffle == 3);
  CHECK(generate_model(context, *request)->node_count() > 20);
  const std::pair<const char*, const char*> wrong[] = {
      {"", "family is required"},
      {"gpt", "family: gpt not in {llama,moe,llama3,"},
      {"llama --layers", "--layers: 1 required"},
      {"llama --layers 2.5", "--layers: Value 2.5 not in range 1 to 100000"},
      {"llama --layers 99999999999999999999", "not in range"},
      {"llama --layers 2 --layers 3", "--layers: At Most 1 required but received 2"},
      {"llama --shuffle x", "Could not convert: --shuffle = x"},
      {"llama --quant int4", "--quant: int4 not in {none,fp8,"},
      {"llama extra", "The following argument was not expected: extra"},
      {"llama --layer 2", "The following arguments were not expected: 2 --layer"},
  };
  for (const auto& [options, message] : wrong) {
    const auto result = parse_model(options);
    REQUIRE(code_of(result) == "PW1430");
    CHECK(result.error().front().message.find(message) != std::string::npos);
  }
}

TEST_CASE("pipeline: sizes are chosen for what is dynamic and captured", "[pipeline]") {
  const Loaded at;
  const auto cut = rewrite_and_cut(at.graph, at.rules, "", {}, Log());
  REQUIRE(cut);
  SizesRequest request;
  request.graphs = 4;
  const auto sized = size_graph(*cut, request, Log());
  REQUIRE(sized);
  const auto choice = choose_sizes(*sized, "uniform", request);
  REQUIRE(choice);
  CHECK(choice->chosen().size() == 4);
  CHECK(choice->sets.back().mark == "default");
  CHECK(size_table({*choice}, true).rows().size() == choice->sets.size());
  CHECK(code_of(choose_sizes(*sized, "no_such_file", request)) == "PW0001");
  const Graph fixed =
      read(at.context, at.folder.file("s.pwg", "graph s { in x: f32[4]  y = relu(x)  out y }"));
  const auto whole = rewrite_and_cut(fixed, at.rules, "", {}, Log());
  REQUIRE(whole);
  CHECK(code_of(size_graph(*whole, request, Log())) == "PW1432");
}

TEST_CASE("pipeline: ops by their own names and by foreign ones", "[pipeline]") {
  const Loaded at;
  const auto lines = list_ops(*at.context, {{"aten.relu.default"}, "", false});
  REQUIRE(lines);
  CHECK(lines->size() == 1);
  CHECK(lines->front().name == "relu");
  CHECK(code_of(list_ops(*at.context, {{"rms_nrom"}, "", false})) == "PW1440");
  CHECK(code_of(list_ops(*at.context, {{}, "gpu", false})) == "PW1425");
}

TEST_CASE("pipeline: graphs compared row by row", "[pipeline]") {
  const Loaded at;
  CHECK(compare_graphs(at.graph, at.graph).equal());
  Graph other = at.graph;
  REQUIRE(rewrite(other, at.rules, "p", {}, Log()));
  const GraphDiff diff = compare_graphs(at.graph, other);
  CHECK_FALSE(diff.equal());
  CHECK(change_table(diff).rows().size() == diff.changes.size());
  CHECK(change_table(diff, 1).rows().size() == 1);
}

}  // namespace pw
