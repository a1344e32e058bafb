// One graph file and one pass in a fresh process: times, counts and memory as a line of JSON. What
// is compared with other rewriters, and what bytes a node are read from.
#pragma once

#include <string>

namespace pw::bench {

struct OneGraph {
  std::string graph, rules, pass = "all";
  bool verify = false;  ///< check the graph's invariants afterwards
};
/// {"ops": …, "rewrites": …, "rules": {…}, "load_s": …, "rewrite_s": …, "bytes_per_node": …}
std::string run_one_graph(const OneGraph& job);

}  // namespace pw::bench
