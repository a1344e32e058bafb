// What became of matches over a whole pipeline: taken by which rewrite, undone, or left, whichever
// pass the question looks at.
#include <algorithm>

#include "rewriter/explain/explain.hpp"
#include "tests/rewriter/fixture.hpp"

using namespace pw;
using namespace pw::test;

namespace {

constexpr const char* kRules = R"(
op foreign_write(mut x: T[*s], y: T[*s]) -> (z: T[*s] from x) effect
rule early { y = relu(neg(x)) => y = abs(x) }
rule late { y = exp(relu(neg(x))) => y = sin(x) }
rule made { y = cos(x) => y = relu(neg(x)) }
rule after_late { y = sin(x) => y = exp(cos(x)) }
rule double { y = abs(x) => y = exp(exp(x)) }
rule pair { y = exp(relu(x)) => y = sin(x) }
rule same { y = abs(x) => y = abs(x) }
rule untyped { y = neg(x: T[*s]) => y = mm(x, x) }
rule retyped { y = neg(x: T[*s]) => y = bf16(x) }
rule cheap { y = neg(relu(x)) => y = abs(x) }
rule dear { y = abs(sin(x)) => y = cos(x) }
rule third { y = exp(abs(x)) => y = tanh(x) }
pass first = greedy { early }
pass second = greedy { late }
pipeline starved { first second }
pipeline fed { second first }
pipeline within { greedy { made, early } second }
pipeline nested { (greedy { early } ; greedy { late }) }
pipeline rounds { repeat (greedy { early } ; greedy { late } ; greedy { made }) fuel 1 }
pipeline merged { cse greedy { pair } }
pipeline dead { dce greedy { pair } }
pipeline unsaturated { saturate { early } nodes 500 cost nodes  second }
pipeline saturated { saturate { early, late } nodes 500 cost nodes }
pass back = atomic greedy { double } ensures count(exp) == 0
pipeline undone { back }
pass both = atomic (greedy { early } ; greedy { double }) ensures count(exp) == 1
pipeline undone_inside { both }
pipeline undone_then_taken { both second }
pass better = best of { greedy { dear } | greedy { cheap } } by nodes
pipeline choice { better }
pass less = best of { greedy { early } ; greedy { third } | greedy { late } } by nodes
pipeline inner_choice { less }
pipeline bad_type { greedy { untyped } }
pipeline other_type { greedy { retyped } }
pipeline idle { greedy { same } }
pipeline once_only { once { made, early } }
pipeline too_late { first greedy { made } }
pipeline left_out { first greedy { made }  second when 1 > 2 }
pipeline ranged { for tokens in ranges(16) { first second } }
)";

const char kChain[] = "in x: f32[n, 8]  a = neg(x)  b = relu(a)  c = exp(b)  out c";

struct HistorySubject {
  World world{kRules};
  Graph graph;

  explicit HistorySubject(const std::string& text) : graph(world.graph(text)) {}

  Explanation about(const std::string& rule, const std::string& pipeline,
                    ExplainOptions options = {}) const {
    options.pipeline = pipeline;
    Result<Explanation> found = explain_rules(graph, world.rules, rule, world.params, options);
    if (!found) FAIL(render(found.error(), world.context->sources));
    return std::move(*found);
  }

  /// The only near miss.
  NearMiss one(const std::string& rule, const std::string& pipeline,
               const ExplainOptions& options = {}) const {
    const Explanation found = about(rule, pipeline, options);
    std::string all;
    for (const NearMissGroup& group : found.groups)
      all += group.first.why.code + " " + group.first.why.message + "\n";
    INFO(all);
    REQUIRE(found.groups.size() == 1);
    return found.groups.front().first;
  }
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void check_taken(const NearMiss& miss, const std::string& by, const std::string& pass,
                 std::size_t step, const std::string& node) {
  INFO(miss.why.message);
  REQUIRE(miss.taken_by);
  CHECK(miss.taken_by->name == by);
  CHECK(miss.taken_by->pass == pass);
  CHECK(miss.taken_by->step == step);
  REQUIRE(miss.at);
  CHECK(miss.at->name == node);
  CHECK(has(miss.why.message, "%" + node));
}

}  // namespace

TEST_CASE("explain: for a starved rule, the rule that took its match is reported", "[rewriter]") {
  const HistorySubject subject(kChain);
  for (const char* before : {"", "first", "second"}) {
    INFO(before);
    ExplainOptions options;
    options.before = before;
    const NearMiss miss = subject.one("late", "starved", options);
    CHECK(miss.why.code == "N10");
    CHECK(miss.node_names == std::vector<std::string>{"a", "b", "c"});
    CHECK(miss.since.empty());
    CHECK(miss.missed_by == "second");
    check_taken(miss, "early", "first", 1, "a");
  }
  CHECK(subject.about("late", "fed").matches == 1);
  CHECK(subject.about("late", "fed").groups.empty());
}

TEST_CASE("explain: near misses of a graph that the run made are named as they were",
          "[rewriter]") {
  ExplainOptions options;
  options.pipeline = "p";
  for (const char* before : {"", "two"}) {
    INFO(before);
    options.before = before;
    const World world(
        "rule first { y = relu(neg(x)) => y = cos(x) }\n"
        "rule next { y = abs(sin(x)) => y = sqrt(x) }\n"
        "pass one = greedy { first }\npass two = greedy { next }\n"
        "pipeline p { one two }");
    const Graph graph = world.graph("in x: f32[4]  a = neg(x)  b = relu(a)  c = abs(b)  out c");
    const auto found = explain_rules(graph, world.rules, "next", world.params, options);
    REQUIRE(found);
    REQUIRE(found->groups.size() == 1);
    const NearMiss& miss = found->groups.front().first;
    CHECK(miss.why.code == "N01");
    CHECK(miss.why.at.index >= graph.node_bound());
    CHECK(miss.at->text == "b = cos(x)");
    CHECK(miss.notes == std::vector<std::string>{"%b was made by `first` at step 1 of pass `one`"});
  }
}

TEST_CASE("explain: a match that comes and goes within one pass is reported too", "[rewriter]") {
  const HistorySubject subject("in x: f32[n, 8]  a = cos(x)  c = exp(a)  out c");
  const NearMiss miss = subject.one("late", "within");
  CHECK(miss.why.code == "N10");
  CHECK(miss.since == "greedy { made, early }");
  REQUIRE(miss.taken_by);
  CHECK(miss.taken_by->name == "early");
  CHECK(miss.taken_by->step == 2);
  CHECK(miss.node_names.size() == 3);
}

TEST_CASE("explain: starving inside one pass, and by rounds that ended", "[rewriter]") {
  const HistorySubject subject(kChain);
  const NearMiss miss = subject.one("late", "nested");
  CHECK(miss.why.code == "N10");
  CHECK(miss.taken_by->name == "early");
  const HistorySubject cosine("in x: f32[n, 8]  a = cos(x)  out a");
  CHECK(cosine.one("early", "rounds").why.code == "N12");
}

TEST_CASE("explain: built-in passes that took a match are named", "[rewriter]") {
  const HistorySubject twice(
      "in x: f32[n, 8]  a = relu(x)  b = relu(x)  c = exp(a)  d = exp(b)  e = sqrt(c)  f = sqrt(d) "
      " "
      "out e, f");
  const NearMiss merged = twice.one("pair", "merged");
  CHECK(merged.why.code == "N10");
  check_taken(merged, "cse", "cse", 1, "b");
  CHECK_FALSE(merged.taken_by->rule.valid());
  const HistorySubject unread("in x: f32[n, 8]  a = relu(x)  c = exp(a)  d = neg(x)  out d");
  const NearMiss dead = unread.one("pair", "dead");
  CHECK(dead.why.code == "N10");
  check_taken(dead, "dce", "dce", 1, "c");
}

TEST_CASE("explain: what a saturation took, from another pass and from its own", "[rewriter]") {
  const HistorySubject subject(kChain);
  const NearMiss starved = subject.one("late", "unsaturated");
  CHECK(starved.why.code == "N10");
  check_taken(starved, "early", "saturate { early }", 1, "a");
  const NearMiss dearer = subject.one("early", "saturated");
  CHECK(dearer.why.code == "N16");
  CHECK(dearer.taken_by->name == "late");
}

TEST_CASE("explain: an `ensures` that took a rewrite back is named, with the node", "[rewriter]") {
  const HistorySubject subject("in x: f32[n, 8]  a = abs(x)  out a");
  const NearMiss miss = subject.one("double", "undone");
  CHECK(miss.why.code == "N17");
  REQUIRE(miss.undone_by);
  CHECK(miss.undone_by->strategy == "back");
  CHECK(miss.undone_by->promise == "count(exp) == 0");
  CHECK(miss.undone_by->values == "count(exp) is 2");
  REQUIRE(miss.undone_by->nodes.size() == 2);
  CHECK(std::count(miss.undone_by->nodes.begin(), miss.undone_by->nodes.end(), "a") == 1);
  CHECK(has(miss.why.message, "%a (exp), which `double` made at step 1"));
}

TEST_CASE("explain: what came up in an undone strategy is reported without the graph it was in",
          "[rewriter]") {
  const HistorySubject subject(kChain);
  const NearMiss miss = subject.one("double", "undone_inside");
  CHECK(miss.why.code == "N17");
  CHECK(miss.at->text == "b = abs(x)");
  CHECK(miss.since == "both");
  const NearMiss taken = subject.one("early", "undone_then_taken");
  CHECK(taken.why.code == "N17");
  CHECK(std::any_of(taken.notes.begin(), taken.notes.end(), [](const std::string& note) {
    return has(note, "%a (neg) was consumed by `late` at step 1 of pass `second`");
  }));
}

TEST_CASE("explain: alternatives that lost", "[rewriter]") {
  const HistorySubject subject(
      "in x: f32[4], z: f32[4]  a = relu(x)  y = neg(a)  b = relu(z)  c = neg(b)  d = sin(x)  "
      "e = abs(d)  out y, c, e");
  const NearMiss miss = subject.one("dear", "choice");
  CHECK(miss.why.code == "N16");
  CHECK(miss.at->name == "d");
  CHECK(has(miss.why.message, "alternative 2 was kept, 4"));
  CHECK(subject.about("cheap", "choice").groups.empty());
  // Both alternatives end with one node: the first stays, and its second rule had what it made.
  const HistorySubject chain(kChain);
  CHECK(chain.about("third", "inner_choice").matches == 1);
  const NearMiss late = chain.one("late", "inner_choice");
  CHECK(late.why.code == "N16");
  REQUIRE(late.taken_by);
  CHECK(late.taken_by->name == "early");
  CHECK(has(late.notes.front(), "%a (neg) was consumed by `early` at step 1 of pass `less`"));
}

TEST_CASE("explain: right sides that cannot be typed say so, with their code", "[rewriter]") {
  const HistorySubject subject(kChain);
  const NearMiss untyped = subject.one("untyped", "bad_type");
  CHECK(untyped.why.code.starts_with("PW03"));
  CHECK(has(untyped.why.message, "its right side cannot be typed"));
  CHECK(untyped.at->name == "a");
  const NearMiss retyped = subject.one("retyped", "other_type");
  CHECK(retyped.why.code == "N05");
  CHECK(has(retyped.why.message, "its right side cannot be typed"));
  // The same without a pipeline.
  CHECK(subject.about("untyped", "").matches == 0);
  CHECK(subject.one("untyped", "").why.code == untyped.why.code);
  const HistorySubject absolute("in x: f32[n, 8]  a = abs(x)  out a");
  CHECK(absolute.one("same", "idle").why.code == "PW1105");
}

TEST_CASE("explain: matches that came up when it was too late", "[rewriter]") {
  const HistorySubject subject("in x: f32[n, 8]  a = cos(x)  out a");
  const NearMiss once = subject.one("early", "once_only");
  CHECK(once.why.code == "N11");
  CHECK(has(once.why.message, "does not rewrite its own results"));
  const NearMiss late = subject.one("early", "too_late");
  CHECK(late.why.code == "N11");
  CHECK(late.since == "greedy { made }");
  const HistorySubject exponent("in x: f32[n, 8]  a = cos(x)  c = exp(a)  out c");
  const NearMiss skipped = exponent.one("late", "left_out");
  CHECK(skipped.why.code == "N11");
  CHECK(has(skipped.why.message, "`when` is not true"));
}

TEST_CASE("explain: a node is found by the name it had", "[rewriter]") {
  const HistorySubject subject(
      "in x: f32[n, 8], z: f32[n, 8]  a = neg(x)  b = relu(a)  c = exp(b)  p = neg(z)  q = relu(p) "
      " "
      "r = exp(q)  out c, r");
  ExplainOptions at;
  at.at = "q";
  const NearMiss miss = subject.one("late", "starved", at);
  check_taken(miss, "early", "first", 2, "p");
  const Explanation applied = subject.about("early", "starved", at);
  REQUIRE(applied.applied.size() == 1);
  CHECK(applied.applied.front().count == 1);
  CHECK(applied.applied.front().first.step == 2);
  CHECK(applied.applied.front().nodes == std::vector<std::string>{"p", "q"});
  at.at = "no_such";
  CHECK_FALSE(subject.about("late", "starved", at).at_found);
  const Explanation both = subject.about("late", "starved");
  REQUIRE(both.groups.size() == 1);
  CHECK(both.groups.front().others == std::vector<std::string>{"p"});
  CHECK(both.groups.front().other_steps == std::vector<std::size_t>{2});
}

TEST_CASE("explain: the number of tokens selects the range", "[rewriter]") {
  const World world(
      "rule few { y = relu(neg(x: T[n, d])) where n <= 16 => y = abs(x) }\n"
      "rule any { y = exp(relu(neg(x))) => y = sin(x) }\n"
      "rule four { y = sqrt(x: T[n, d]) assume n % 4 == 0 => y = cos(x) }\n"
      "pass one = greedy { few }\npass two = greedy { any }\n"
      "pipeline ranged { for tokens in ranges(16) { one two } }\n"
      "pipeline assumed { greedy { four } }");
  const Graph graph = world.graph(std::string("symbol n in 1..64 tokens  ") + kChain);
  const auto ask = [&](const Graph& g, const char* rule, const char* pipeline,
                       std::optional<std::int64_t> tokens) {
    ExplainOptions options;
    options.pipeline = pipeline;
    options.tokens = tokens;
    return explain_rules(g, world.rules, rule, world.params, options);
  };
  const auto small = ask(graph, "any", "ranged", 16);
  REQUIRE(small);
  CHECK(small->range == TokenRange{1, 16});
  REQUIRE(small->groups.size() == 1);
  CHECK(small->groups.front().first.taken_by->name == "few");
  const auto large = ask(graph, "any", "ranged", 17);
  REQUIRE(large);
  CHECK(large->range == TokenRange{17, 64});
  CHECK(large->matches == 1);
  CHECK(large->groups.empty());
  for (const auto& wrong : {ask(graph, "any", "ranged", {}), ask(graph, "any", "ranged", 65)}) {
    REQUIRE_FALSE(wrong);
    CHECK(wrong.error().front().code == "PW1109");
    CHECK_FALSE(wrong.error().front().help.empty());
  }
  const Graph root = world.graph("symbol n in 1..64 tokens  in x: f32[n, 8]  y = sqrt(x)  out y");
  CHECK(ask(root, "four", "assumed", 8)->matches == 1);
  const auto odd = ask(root, "four", "assumed", 7);
  CHECK(odd->otherwise);
  CHECK(odd->matches == 0);
  REQUIRE(odd->groups.size() == 1);
  CHECK(odd->groups.front().first.why.code == "N06");
}

TEST_CASE("explain: names of passes that are not there", "[rewriter]") {
  const HistorySubject subject(kChain);
  for (const auto& [pipeline, before] :
       {std::pair("no_such", ""), std::pair("starved", "no_such")}) {
    ExplainOptions options;
    options.pipeline = pipeline;
    options.before = before;
    const auto found =
        explain_rules(subject.graph, subject.world.rules, "late", subject.world.params, options);
    REQUIRE_FALSE(found);
    CHECK(found.error().front().code == "PW1101");
  }
}

TEST_CASE("explain: watching a run changes nothing", "[rewriter]") {
  const HistorySubject subject(kChain);
  for (const char* pipeline : {"starved", "fed", "nested", "rounds", "unsaturated", "saturated",
                               "undone_then_taken", "inner_choice", "too_late"}) {
    INFO(pipeline);
    Graph copy = subject.graph;
    const RewriteReport report = subject.world.run(copy, pipeline);
    for (const char* rule : {"early", "late", "made", "double", "third"}) {
      INFO(rule);
      CHECK(subject.about(rule, pipeline).matches ==
            report.journal.count(subject.world.rules, rule));
    }
  }
}
