// Two graphs in one picture, whose nodes may have the same names or different ones.
#include "viz/union.hpp"

#include "models/generate.hpp"
#include "tests/catch.hpp"
#include "tests/graph/library.hpp"
#include "viz/links.hpp"

using namespace pw;
using namespace pw::test;

namespace {

/// The same graph with every name replaced and its nodes in another order.
Graph renamed(const ContextPtr& context, const LlamaOptions& options, std::uint64_t seed) {
  Graph graph = shuffled(*generate_llama(context, options), seed);
  std::size_t number = 0;
  for (const ValueId v : graph.inputs()) graph.rename(v, "in" + std::to_string(number++));
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n))
    for (std::size_t r = 0; r < graph.result_count(n); ++r)
      graph.rename(graph.result(n, r), "v" + std::to_string(number++));
  return graph;
}

}  // namespace

TEST_CASE("union: graphs that are called otherwise are drawn as one", "[viz]") {
  const ContextPtr context = library();
  LlamaOptions options;
  options.layers = 3;
  const Version a{"a", *generate_llama(context, options)}, b{"b", renamed(context, options, 3)};
  const viz::UnionGraph graph = viz::unite({&a, &b}, false);
  CHECK(graph.nodes.size() == a.graph.node_count());
  for (const viz::UnionNode& node : graph.nodes) {
    CHECK(node.first == 0);
    CHECK(node.last == 1);
    CHECK(node.changed.empty());
  }
  const viz::Links links = viz::link(graph, false);
  CHECK(links.inputs.size() == a.graph.inputs().size());
  for (const viz::Link& link : links.all) {
    CHECK(link.first == 0);
    CHECK(link.last == 1);
  }
}

TEST_CASE("union: one more layer is what is added", "[viz]") {
  const ContextPtr context = library();
  LlamaOptions options;
  options.layers = 3;
  const Version a{"a", *generate_llama(context, options)};
  options.layers = 4;
  const Version b{"b", *generate_llama(context, options)};
  const viz::UnionGraph graph = viz::unite({&a, &b}, false);
  CHECK(graph.nodes.size() == b.graph.node_count());
  std::size_t added = 0;
  for (const viz::UnionNode& node : graph.nodes) {
    CHECK(node.last == 1);
    added += node.first == 1 ? 1 : 0;
  }
  CHECK(added == b.graph.node_count() - a.graph.node_count());
}
