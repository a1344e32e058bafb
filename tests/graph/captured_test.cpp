// Captured graphs: classes, critical paths, and their file format.
#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/hash.hpp"
#include "graph/captured/captured_graph.hpp"
#include "tests/catch.hpp"

using namespace pw;

namespace {

/// Makes some nodes conditional, around nodes before them.
void add_bodies(CapturedLaunches& graph, Random& random) {
  for (std::uint32_t n = 1; n < graph.nodes.size(); ++n) {
    if (random.below(4) != 0) continue;
    graph.nodes[n] = {};
    graph.nodes[n].kind = LaunchKind::conditional;
    if (random.below(5) == 0) continue;  // its bodies are unknown
    graph.nodes[n].condition = CapturedCondition{ConditionKind::choice, 2};
    for (std::uint32_t m = n; m-- > 0 && random.below(4) != 0;) {
      if (graph.nodes[m].inside) continue;
      graph.nodes[m].inside = n;
      graph.nodes[m].body = static_cast<std::uint32_t>(random.below(2));
      const auto has = [&](const CapturedEdge& e) { return e.from == m && e.to == n; };
      if (std::none_of(graph.edges.begin(), graph.edges.end(), has)) graph.edges.push_back({m, n});
    }
  }
  std::sort(graph.edges.begin(), graph.edges.end(), [](const auto& a, const auto& b) {
    return std::tie(a.to, a.from) < std::tie(b.to, b.from);
  });
}

bool in_body(const CapturedLaunches& graph, const CapturedNode& node) {
  if (!node.inside) return false;
  const CapturedNode& around = graph.nodes[*node.inside];
  return around.kind == LaunchKind::conditional || in_body(graph, around);
}

/// A random graph whose nodes are in topological order.
CapturedLaunches random_graph(std::uint64_t seed) {
  Random random(seed);
  CapturedLaunches out;
  out.name = "g";
  const auto count = static_cast<std::uint32_t>(1 + random.below(12));
  for (std::uint32_t n = 0; n < count; ++n) {
    CapturedNode& node = out.nodes.emplace_back();
    node.kind = random.below(4) == 0 ? LaunchKind::memcpy : LaunchKind::kernel;
    if (node.kind == LaunchKind::memcpy)
      node.bytes = 1 + random.below(100);
    else
      node.name = random.below(2) == 0 ? "a" : "b";
    for (std::uint32_t from = 0; from < n; ++from)
      if (random.below(3) == 0) out.edges.push_back({from, n, random.below(5) == 0, 0, 0});
  }
  add_bodies(out, random);
  return out;
}

CapturedLaunches shuffled(const CapturedLaunches& graph, Random& random) {
  std::vector<std::uint32_t> place(graph.nodes.size());
  std::iota(place.begin(), place.end(), 0u);
  for (std::size_t i = place.size(); i > 1; --i) std::swap(place[i - 1], place[random.below(i)]);
  CapturedLaunches out;
  out.name = graph.name;
  out.nodes.resize(place.size());
  for (std::size_t n = 0; n < place.size(); ++n) {
    CapturedNode& node = out.nodes[place[n]] = graph.nodes[n];
    if (node.inside) node.inside = place[*node.inside];
  }
  for (CapturedEdge e : graph.edges) {
    e.from = place[e.from];
    e.to = place[e.to];
    out.edges.push_back(e);
  }
  REQUIRE(sort_topologically(out));
  return out;
}

std::uint64_t longest_to(const CapturedLaunches& graph, std::uint32_t node, bool bytes) {
  std::uint64_t longest = 0;
  for (const CapturedEdge& e : graph.edges)
    if (e.to == node) longest = std::max(longest, longest_to(graph, e.from, bytes));
  return longest + (bytes ? graph.nodes[node].bytes.value_or(0) : 1);
}

std::string refusal(const std::string& text) {
  const auto read = captured_from_json(text, "g.json");
  if (read) return "";
  const Diagnostic& d = read.error().front();
  return d.code + " " + d.place + ": " + d.message;
}

}  // namespace

TEST_CASE("captured graphs: a class does not depend on the order of nodes", "[graph][lens]") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    const CapturedLaunches graph = random_graph(seed);
    Random random(seed);
    const CapturedSummary one = summary_of(graph), two = summary_of(shuffled(graph, random));
    CHECK(one.topology == two.topology);
    CHECK(one.kinds == two.kinds);
    CHECK(one.kernels_in_bodies == two.kernels_in_bodies);
    CHECK(one.unknown_bodies == two.unknown_bodies);
    CHECK(one.candidates.size() == two.candidates.size());
    CHECK(one.longest.weight == two.longest.weight);
    CHECK(one.heaviest.weight == two.heaviest.weight);
  }
}

TEST_CASE("captured graphs: a changed edge or kernel makes another class", "[graph][lens]") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    const CapturedLaunches graph = random_graph(seed);
    const std::string topology = summary_of(graph).topology;
    CapturedLaunches renamed = graph;
    renamed.nodes.back().name += "x";
    CHECK(summary_of(renamed).topology != topology);
    CapturedLaunches resized = graph;
    resized.nodes.back().grid = {7, 7, 7};
    resized.nodes.front().bytes = 12345;
    CHECK(summary_of(resized).topology == topology);
    CapturedLaunches other = graph;
    for (CapturedNode& node : other.nodes) {
      if (node.condition) node.condition->kind = ConditionKind::if_else;
      if (node.inside) node.body ^= 1;
    }
    CHECK((summary_of(other).topology != topology) == (other != graph));
    if (graph.edges.empty()) continue;
    other = graph;
    other.edges[seed % graph.edges.size()].programmatic ^= true;
    CHECK(summary_of(other).topology != topology);
    other = graph;
    other.edges.erase(other.edges.begin() + static_cast<std::ptrdiff_t>(seed % graph.edges.size()));
    CHECK(summary_of(other).topology != topology);
  }
}

TEST_CASE("captured graphs: critical paths and candidates are those of the definition",
          "[graph][lens]") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    const CapturedLaunches graph = random_graph(seed);
    const CapturedSummary summary = summary_of(graph);
    std::uint64_t longest = 0, heaviest = 0;
    for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
      longest = std::max(longest, longest_to(graph, n, false));
      heaviest = std::max(heaviest, longest_to(graph, n, true));
    }
    CHECK(summary.longest.weight == longest);
    CHECK(summary.longest.nodes.size() == longest);
    CHECK(summary.heaviest.weight == heaviest);
    std::vector<std::uint32_t> candidates;
    for (std::uint32_t e = 0; e < graph.edges.size(); ++e) {
      const CapturedEdge& edge = graph.edges[e];
      const auto into = std::count_if(graph.edges.begin(), graph.edges.end(),
                                      [&](const CapturedEdge& o) { return o.to == edge.to; });
      const CapturedNode &from = graph.nodes[edge.from], &to = graph.nodes[edge.to];
      if (!edge.programmatic && into == 1 && from.kind == LaunchKind::kernel &&
          to.kind == LaunchKind::kernel && from.inside == to.inside && from.body == to.body)
        candidates.push_back(e);
    }
    CHECK(summary.candidates == candidates);
    std::uint64_t outside = 0, inside = 0, launches = 0, in_bodies = 0, unknown = 0;
    for (const CapturedNode& node : graph.nodes) {
      if (node.kind == LaunchKind::kernel) ++(in_body(graph, node) ? inside : outside);
      unknown += node.kind == LaunchKind::conditional && !node.condition ? 1 : 0;
    }
    for (const KernelCount& kernel : summary.kernels) {
      launches += kernel.launches;
      in_bodies += kernel.in_bodies;
    }
    CHECK(launches == outside);
    CHECK(in_bodies == inside);
    CHECK(summary.kernels_in_bodies == inside);
    CHECK(summary.unknown_bodies == unknown);
  }
}

TEST_CASE("captured graphs: files read back to the same graph and bytes", "[graph][lens]") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const CapturedLaunches graph = random_graph(seed);
    const std::string text = captured_to_json(graph);
    const auto read = captured_from_json(text, "g.json");
    REQUIRE(read.has_value());
    CHECK(*read == graph);
    CHECK(captured_to_json(*read) == text);
  }
  CHECK(looks_like_captured(captured_to_json({})));
  CHECK(captured_from_json(captured_to_json({}), "g.json").value() == CapturedLaunches{});
}

TEST_CASE("captured graphs: nodes of a graph inside the graph form a group", "[graph][lens]") {
  CapturedLaunches graph;
  graph.name = "g";
  graph.nodes.resize(8);
  for (const std::uint32_t n : {0, 1, 2, 4, 6}) {
    graph.nodes[n].kind = LaunchKind::kernel;
    graph.nodes[n].name = "k";
  }
  const auto conditional = [&](std::uint32_t n, ConditionKind kind, std::uint32_t bodies) {
    graph.nodes[n].kind = LaunchKind::conditional;
    graph.nodes[n].condition = CapturedCondition{kind, bodies};
  };
  conditional(3, ConditionKind::if_else, 2);
  conditional(5, ConditionKind::loop, 1);
  conditional(7, ConditionKind::choice, 3);
  graph.nodes[0].inside = graph.nodes[1].inside = 3;
  graph.nodes[1].body = 1;
  graph.nodes[2].inside = graph.nodes[3].inside = graph.nodes[4].inside = 5;
  graph.nodes[6].inside = 7;
  graph.nodes[6].body = 2;
  graph.edges = {{0, 3}, {1, 3}, {2, 4}, {3, 5}, {4, 5}, {6, 7}};
  const auto built = graph_of(std::make_shared<Context>(), graph);
  REQUIRE(built.has_value());
  std::vector<std::string> groups;
  for (const NodeId n : built->order()) groups.emplace_back(built->group(n));
  CHECK(groups == std::vector<std::string>{"while.5.if.3", "while.5.else.3", "while.5", "while.5",
                                           "while.5", "", "case_2.7", ""});
  CHECK(captured_from_json(captured_to_json(graph), "g.json").value() == graph);
}

TEST_CASE("captured graphs: a cycle is not sorted", "[graph][lens]") {
  CapturedLaunches graph;
  graph.nodes.resize(3);
  graph.edges = {{0, 1}, {1, 2}, {2, 1}};
  CHECK_FALSE(sort_topologically(graph));
}

TEST_CASE("captured graphs: malformed files are refused with a place", "[graph][lens]") {
  const std::string head = R"({"format": "piecewise.captured/1", )";
  const auto starts = [](const std::string& text, const std::string& with) {
    INFO(text);
    CHECK(text.substr(0, with.size()) == with);
  };
  starts(refusal("{}"), "PW0540 g.json at /: the member `format` is missing");
  starts(refusal(head + R"("nodes": 3})"), "PW0540 g.json at /nodes: ");
  starts(refusal(head + R"("nodes": [{"kind": "karnel"}]})"),
         "PW0540 g.json at /nodes/0/kind: unknown kind of node");
  starts(refusal(head + R"("nodes": [{"kind": "kernel", "grid": [1, 2]}]})"),
         "PW0540 g.json at /nodes/0/grid: three numbers");
  starts(refusal(head + R"("nodes": [{"kind": "memcpy", "bytes": -1}]})"),
         "PW0540 g.json at /nodes/0/bytes: the number must be in");
  starts(refusal(head + R"("nodes": [{"kind": "empty", "colour": 1}]})"),
         "PW0541 g.json at /nodes/0/colour");
  starts(refusal(head + R"("nodes": [{"kind": "empty"}], "edges": [[0, 0]]})"),
         "PW0540 g.json at /edges/0: the edge from 0 to 0");
  starts(refusal(head + R"("nodes": [{"kind": "empty"}], "edges": [[0]]})"),
         "PW0540 g.json at /edges/0: an edge has 2 or 5");
  starts(refusal(head + R"("nodes": [{"kind": "empty", "inside": 0}]})"),
         "PW0540 g.json at /nodes/0/inside: node 0 is not a later node");
  const auto conditional = [&](const std::string& members, const std::string& before = "") {
    return refusal(head + R"("nodes": [)" + before + R"({"kind": "conditional")" + members + "}]}");
  };
  starts(conditional(R"(, "condition": "for")"),
         "PW0540 g.json at /nodes/0/condition: a condition");
  starts(conditional(R"(, "condition": "while", "bodies": 2)"),
         "PW0540 g.json at /nodes/0/bodies: the number of bodies of `while` must be in 1 … 1");
  starts(conditional(R"(, "bodies": 2)"), "PW0540 g.json at /nodes/0/bodies: bodies without");
  starts(conditional("", R"({"kind": "empty", "inside": 1}, )"),
         "PW0540 g.json at /nodes/0/inside: node 1 is not a later node that holds graphs");
  starts(conditional(R"(, "condition": "if")", R"({"kind": "empty", "inside": 1, "body": 1}, )"),
         "PW0540 g.json at /nodes/0/body: the node that holds it has no body 1");
  starts(refusal(head + R"("nodes": [{"kind": "empty", "condition": "if"}]})"),
         "PW0540 g.json at /nodes/0/condition: only a conditional node");
}

TEST_CASE("captured graphs: short names of kernels", "[graph][lens]") {
  CHECK(short_kernel_name("void at::native::elementwise_kernel<4, F<float> >(int, F<float>)") ==
        "elementwise_kernel");
  CHECK(short_kernel_name("void (anonymous namespace)::copy<int>(int*)") == "copy");
  CHECK(short_kernel_name("void a::B<c::D>::run(e::F)") == "run");
  CHECK(short_kernel_name("ampere_sgemm_128x64_nn") == "ampere_sgemm_128x64_nn");
  CHECK(short_kernel_name("4x4") == "_4x4");
  CHECK(short_kernel_name("") == "kernel");
  CHECK(short_kernel_name("\x1b[31m") == "__31m");
}
