#include "graph/captured/captured_graph.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <span>
#include <tuple>

#include <fmt/format.h>

#include "base/characters.hpp"
#include "base/hash.hpp"
#include "base/try.hpp"

namespace pw {
namespace {

constexpr std::string_view kKindNames[kLaunchKinds] = {
    "kernel",     "memcpy",       "memset",           "host",           "graph",    "empty",
    "wait_event", "record_event", "signal_semaphore", "wait_semaphore", "allocate", "free",
    "batch",      "conditional"};

constexpr std::string_view kConditionNames[kConditionKinds] = {"if", "while", "switch"};

/// Returns for each node whether it is in a body of a conditional node, at any depth.
std::vector<bool> in_bodies(const CapturedLaunches& graph) {
  std::vector<bool> out(graph.nodes.size());
  for (std::size_t n = out.size(); n-- > 0;)  // what holds a node follows it
    if (const auto inside = graph.nodes[n].inside)
      out[n] = graph.nodes[*inside].kind == LaunchKind::conditional || out[*inside];
  return out;
}

/// Returns true if the node occupies the device or the host; others only order the rest.
bool does_work(LaunchKind kind) {
  return kind == LaunchKind::kernel || kind == LaunchKind::memcpy || kind == LaunchKind::memset ||
         kind == LaunchKind::host || kind == LaunchKind::conditional || kind == LaunchKind::batch;
}

/// Edges by the node that they end at, or begin at, as offsets into a list.
class Adjacency {
 public:
  Adjacency(const CapturedLaunches& graph, std::uint32_t CapturedEdge::* at)
      : first_(graph.nodes.size() + 1), edges_(graph.edges.size()) {
    for (const CapturedEdge& e : graph.edges) ++first_[e.*at + 1];
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    for (std::uint32_t i = 0; i < graph.edges.size(); ++i) edges_[next[graph.edges[i].*at]++] = i;
  }
  [[nodiscard]] std::span<const std::uint32_t> of(std::size_t node) const {
    return std::span(edges_).subspan(first_[node], first_[node + 1] - first_[node]);
  }

 private:
  std::vector<std::uint32_t> first_, edges_;
};

template <class Weight>
CriticalPath longest_path(const CapturedLaunches& graph, const Adjacency& before, Weight weight) {
  constexpr std::uint32_t kNone = ~0u;
  std::vector<std::uint64_t> length(graph.nodes.size());
  std::vector<std::uint32_t> previous(graph.nodes.size(), kNone);
  std::uint32_t end = kNone;
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    for (const std::uint32_t e : before.of(n)) {
      const std::uint32_t from = graph.edges[e].from;
      if (previous[n] != kNone && length[from] <= length[previous[n]]) continue;
      previous[n] = from;
    }
    length[n] = weight(graph.nodes[n]) + (previous[n] == kNone ? 0 : length[previous[n]]);
    if (end == kNone || length[n] > length[end]) end = n;
  }
  CriticalPath out;
  if (end == kNone || length[end] == 0) return out;
  out.weight = length[end];
  for (; end != kNone; end = previous[end])
    if (weight(graph.nodes[end]) > 0) out.nodes.push_back(end);
  std::reverse(out.nodes.begin(), out.nodes.end());
  return out;
}

std::uint64_t edge_hash(const CapturedEdge& e) {
  return (std::uint64_t{e.programmatic} << 16) | (std::uint64_t{e.from_port} << 8) | e.to_port;
}

/// Hashes each node alone: its kind, kernel, and condition, and the kinds of graphs that it is in.
std::vector<std::uint64_t> node_hashes(const CapturedLaunches& graph) {
  std::vector<std::uint64_t> own(graph.nodes.size());
  for (std::size_t n = own.size(); n-- > 0;) {
    const CapturedNode& node = graph.nodes[n];
    own[n] = combine(static_cast<std::uint64_t>(node.kind), hash_text(node.name));
    if (node.condition)
      own[n] = combine(combine(own[n], static_cast<std::uint64_t>(node.condition->kind)),
                       node.condition->bodies);
    if (node.inside) own[n] = combine(combine(own[n], own[*node.inside]), node.body);
  }
  return own;
}

/// Hashes each node with all that it depends on and all that depends on it. The hashes of nodes and
/// edges, sorted, are the graph's.
std::string topology_of(const CapturedLaunches& graph, const Adjacency& before,
                        const Adjacency& after) {
  const std::size_t count = graph.nodes.size();
  const std::vector<std::uint64_t> own = node_hashes(graph);
  std::vector<std::uint64_t> down(count), up(count), around;
  const auto hash_with = [&](std::uint64_t seed) {
    std::sort(around.begin(), around.end());
    for (const std::uint64_t h : around) seed = combine(seed, h);
    around.clear();
    return seed;
  };
  for (std::size_t n = 0; n < count; ++n) {
    for (const std::uint32_t e : before.of(n))
      around.push_back(combine(down[graph.edges[e].from], edge_hash(graph.edges[e])));
    down[n] = hash_with(own[n]);
  }
  // Includes `down`, so that nodes which differ only in what they depend on differ for all users.
  for (std::size_t n = count; n-- > 0;) {
    for (const std::uint32_t e : after.of(n))
      around.push_back(combine(up[graph.edges[e].to], edge_hash(graph.edges[e])));
    up[n] = hash_with(down[n]);
  }
  for (const CapturedEdge& e : graph.edges)
    around.push_back(combine(combine(up[e.from], up[e.to]), edge_hash(e)));
  around.insert(around.end(), up.begin(), up.end());
  return fmt::format("{:016x}", hash_with(count));
}

std::vector<KernelCount> kernels_of(const CapturedLaunches& graph,
                                    const std::vector<bool>& in_body) {
  std::map<std::string_view, KernelCount> counts;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const CapturedNode& n = graph.nodes[i];
    if (n.kind != LaunchKind::kernel) continue;
    KernelCount& count = counts[n.name];
    if (in_body[i]) {
      ++count.in_bodies;
      continue;
    }
    ++count.launches;
    std::uint64_t threads = 1;
    for (const auto& extents : {n.grid, n.block})
      for (const std::uint32_t extent : extents) threads *= extent;
    count.threads += threads;
  }
  std::vector<KernelCount> out;
  for (auto& [name, count] : counts) {
    count.name = name;
    out.push_back(std::move(count));
  }
  std::stable_sort(out.begin(), out.end(), [](const KernelCount& a, const KernelCount& b) {
    return a.launches + a.in_bodies > b.launches + b.in_bodies;
  });
  return out;
}

/// Makes opaque ops and attributes for nodes.
class Builder {
 public:
  Builder(const ContextPtr& context, const CapturedLaunches& captured)
      : context_(*context),
        captured_(captured),
        before_(captured, &CapturedEdge::to),
        graph_(context, captured.name.empty() ? "captured" : captured.name) {}

  Result<Graph> build() {
    for (std::uint32_t n = 0; n < captured_.nodes.size(); ++n) PW_TRY(add(n));
    for (const ValueId v : values_)
      if (graph_.unused(v)) graph_.add_output(v);
    return std::move(graph_);
  }

 private:
  Status add(std::uint32_t n) {
    const CapturedNode& node = captured_.nodes[n];
    const std::string base = node.kind == LaunchKind::kernel ? short_kernel_name(node.name)
                                                             : std::string(name(node.kind));
    NodeSpec spec;
    spec.op = PW_TRY(op("cuda." + base));
    std::vector<DimId> programmatic;
    for (const std::uint32_t e : before_.of(n)) {
      const CapturedEdge& edge = captured_.edges[e];
      if (edge.programmatic)
        programmatic.push_back(
            context_.dims.constant(static_cast<std::int64_t>(spec.operands.size())));
      spec.operands.push_back(values_[edge.from]);
    }
    spec.attributes = attributes(node, base, std::move(programmatic));
    spec.results = {{Types::unknown(), graph_.fresh_name(base)}};
    spec.group = group_of(node);
    spec.source = node.label;
    values_.push_back(graph_.result(graph_.add_node(spec)));
    return {};
  }

  Result<OpId> op(const std::string& name) {
    if (const OpId known = context_.ops.find(name); known.valid()) {
      if (context_.ops[known].imported) return known;
      return fail(error_in(captured_.name, "PW0514", "`" + name + "` is declared differently"));
    }
    Op declared;
    declared.name = name;
    declared.imported = true;
    declared.traits.effect = true;
    return context_.ops.declare(declared);
  }

  AttributesId attributes(const CapturedNode& node, const std::string& base,
                          std::vector<DimId> programmatic) {
    AttributeList list;
    const auto put = [&](std::string_view name, Attribute value) {
      list.emplace_back(context_.strings.intern(name), std::move(value));
    };
    const auto extents = [&](const std::array<std::uint32_t, 3>& from) {
      std::vector<DimId> out;
      for (const std::uint32_t extent : from) out.push_back(context_.dims.constant(extent));
      return out;
    };
    const bool kernel = node.kind == LaunchKind::kernel;
    if (kernel) put("block", extents(node.block));
    if (node.condition) put("bodies", std::int64_t{node.condition->bodies});
    if (node.bytes) put("bytes", static_cast<std::int64_t>(*node.bytes));
    if (node.condition) put("condition", std::string(name(node.condition->kind)));
    if (kernel) put("grid", extents(node.grid));
    if (kernel && node.name != base) put("kernel", node.name);
    if (!programmatic.empty()) put("programmatic", std::move(programmatic));
    if (node.shared_bytes != 0) put("shared_bytes", std::int64_t{node.shared_bytes});
    return context_.attributes.intern(std::move(list));
  }

  /// Returns the graphs that a node is in, outermost first: "while.7.graph.3". Pictures draw a
  /// group for a name with a number.
  [[nodiscard]] std::string group_of(const CapturedNode& node) const {
    std::string out;
    for (const CapturedNode* at = &node; at->inside; at = &captured_.nodes[*at->inside])
      out = fmt::format("{}.{}{}{}", graph_name(*at), *at->inside, out.empty() ? "" : ".", out);
    return out;
  }

  /// Returns what the graph is that a node is directly in.
  [[nodiscard]] std::string graph_name(const CapturedNode& node) const {
    const auto& condition = captured_.nodes[*node.inside].condition;
    if (!condition) return std::string(name(LaunchKind::graph));
    if (condition->kind == ConditionKind::choice) return fmt::format("case_{}", node.body);
    const bool otherwise = condition->kind == ConditionKind::if_else && node.body == 1;
    return otherwise ? "else" : std::string(name(condition->kind));
  }

  Context& context_;
  const CapturedLaunches& captured_;
  Adjacency before_;
  Graph graph_;
  std::vector<ValueId> values_;
};

}  // namespace

std::string_view name(LaunchKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }
std::string_view name(ConditionKind kind) {
  return kConditionNames[static_cast<std::size_t>(kind)];
}

bool sort_topologically(CapturedLaunches& graph) {
  const std::size_t count = graph.nodes.size();
  std::vector<std::uint32_t> waits(count), place(count);
  for (const CapturedEdge& e : graph.edges) ++waits[e.to];
  const Adjacency after(graph, &CapturedEdge::from);
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t n = 0; n < count; ++n)
    if (waits[n] == 0) ready.push(n);
  std::vector<CapturedNode> sorted;
  while (!ready.empty()) {
    const std::uint32_t n = ready.top();
    ready.pop();
    place[n] = static_cast<std::uint32_t>(sorted.size());
    sorted.push_back(std::move(graph.nodes[n]));
    for (const std::uint32_t e : after.of(n))
      if (--waits[graph.edges[e].to] == 0) ready.push(graph.edges[e].to);
  }
  if (sorted.size() != count) return false;
  for (CapturedNode& n : sorted)
    if (n.inside) n.inside = place[*n.inside];
  for (CapturedEdge& e : graph.edges) {
    e.from = place[e.from];
    e.to = place[e.to];
  }
  graph.nodes = std::move(sorted);
  std::sort(graph.edges.begin(), graph.edges.end(),
            [](const CapturedEdge& a, const CapturedEdge& b) {
              return std::tie(a.to, a.from, a.from_port) < std::tie(b.to, b.from, b.from_port);
            });
  return true;
}

CapturedSummary summary_of(const CapturedLaunches& graph) {
  const Adjacency before(graph, &CapturedEdge::to), after(graph, &CapturedEdge::from);
  CapturedSummary out;
  for (const CapturedNode& n : graph.nodes) {
    ++out.kinds[static_cast<std::size_t>(n.kind)];
    out.known_bytes += n.bytes.value_or(0);
    out.unknown_bodies += n.kind == LaunchKind::conditional && !n.condition ? 1 : 0;
  }
  out.kernels = kernels_of(graph, in_bodies(graph));
  for (const KernelCount& k : out.kernels) out.kernels_in_bodies += k.in_bodies;
  out.longest = longest_path(graph, before,
                             [](const CapturedNode& n) { return does_work(n.kind) ? 1u : 0u; });
  out.heaviest =
      longest_path(graph, before, [](const CapturedNode& n) { return n.bytes.value_or(0); });
  const auto may = [&](const CapturedNode& from, const CapturedNode& to) {
    return from.kind == LaunchKind::kernel && to.kind == LaunchKind::kernel &&
           from.inside == to.inside && from.body == to.body;
  };
  for (std::uint32_t e = 0; e < graph.edges.size(); ++e) {
    const CapturedEdge& edge = graph.edges[e];
    out.programmatic_edges += edge.programmatic ? 1 : 0;
    if (!edge.programmatic && may(graph.nodes[edge.from], graph.nodes[edge.to]) &&
        before.of(edge.to).size() == 1)
      out.candidates.push_back(e);
  }
  out.topology = topology_of(graph, before, after);
  return out;
}

std::string short_kernel_name(std::string_view demangled) {
  constexpr std::string_view kUnnamed = "(anonymous namespace)";
  std::string_view head = demangled;
  std::size_t begin = 0;  // of the last part of the path
  int depth = 0;          // in template arguments of a namespace or class
  for (std::size_t at = 0; at < head.size(); ++at) {
    const char c = head[at];
    if (head.substr(at).starts_with(kUnnamed)) {
      at += kUnnamed.size() - 1;
    } else if (c == '<') {
      ++depth;
    } else if (c == '>') {
      depth -= depth > 0 ? 1 : 0;
    } else if (depth == 0 && c == '(') {
      head = head.substr(0, at);
    } else if (depth == 0 && (c == ':' || c == ' ' || c == '*' || c == '&')) {
      begin = at + 1;
    }
  }
  std::string_view last = head.substr(std::min(begin, head.size()));
  last = last.substr(0, last.find('<')).substr(0, 80);
  std::string out = as_name(last);
  if (out.find_first_not_of('_') == std::string::npos) return "kernel";
  return is_digit(out[0]) ? "_" + out : out;
}

Result<Graph> graph_of(const ContextPtr& context, const CapturedLaunches& captured) {
  return Builder(context, captured).build();
}

}  // namespace pw
