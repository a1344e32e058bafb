// Runs one pass over one graph file in a fresh process, and prints times, counts and memory as a
// line of JSON. It provides the comparison with other rewriters and the bytes for each node.
#pragma once

#include <string>

namespace pw::bench {

struct OneGraph {
  std::string graph, rules, pass = "all";
  bool verify = false;  ///< check the graph's invariants afterwards
};
/// Returns {"ops": …, "rewrites": …, "rules": {…}, "load_s": …, "rewrite_s": …, "bytes_per_node":
/// …}.
std::string run_one_graph(const OneGraph& job);

}  // namespace pw::bench
