#include <algorithm>
#include <limits>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/io/file_kind.hpp"
#include "graph/captured/captured_graph.hpp"
#include "graph/text/json_checks.hpp"

namespace pw {
namespace {

using json::kTop;
using json::Pointer;
using json::Tree;
using Kind = Tree::Kind;

constexpr std::string_view kFormat = "piecewise.captured/1", kForm = "PW0540";
constexpr std::size_t kMostNodes = std::size_t{1} << 20;

// ---- writing

std::string print(const std::array<std::uint32_t, 3>& extents) {
  return fmt::format("[{}]", fmt::join(extents, ", "));
}

std::string print(const CapturedNode& n) {
  std::string out = fmt::format(R"({{"kind": "{}")", name(n.kind));
  if (!n.name.empty()) out += ", \"name\": " + json::quoted(n.name);
  if (n.kind == LaunchKind::kernel)
    out += fmt::format(R"(, "grid": {}, "block": {})", print(n.grid), print(n.block));
  if (n.shared_bytes != 0) out += fmt::format(R"(, "shared_bytes": {})", n.shared_bytes);
  if (n.bytes) out += fmt::format(R"(, "bytes": {})", *n.bytes);
  if (!n.label.empty()) out += ", \"label\": " + json::quoted(n.label);
  if (n.condition)
    out += fmt::format(R"(, "condition": "{}", "bodies": {})", name(n.condition->kind),
                       n.condition->bodies);
  if (n.inside) out += fmt::format(R"(, "inside": {})", *n.inside);
  if (n.body != 0) out += fmt::format(R"(, "body": {})", n.body);
  return out + "}";
}

std::string print(const CapturedEdge& e) {
  if (!e.programmatic && e.from_port == 0 && e.to_port == 0)
    return fmt::format("[{}, {}]", e.from, e.to);
  return fmt::format("[{}, {}, \"{}\", {}, {}]", e.from, e.to,
                     e.programmatic ? "programmatic" : "default", e.from_port, e.to_port);
}

std::string print(const CriticalPath& path) {
  return fmt::format(R"({{"length": {}, "nodes": [{}]}})", path.weight,
                     fmt::join(path.nodes, ", "));
}

/// Writes a list, an element a line.
template <class T, class Print>
void put_lines(std::string& out, std::string_view key, const std::vector<T>& list, Print print) {
  out += fmt::format(",\n\"{}\": [", key);
  for (std::size_t i = 0; i < list.size(); ++i) out += (i == 0 ? "\n" : ",\n") + print(list[i]);
  out += list.empty() ? "]" : "\n]";
}

std::string print(const CapturedLaunches& graph, const CapturedSummary& summary) {
  std::vector<std::string> kinds, kernels;
  for (std::size_t k = 0; k < kLaunchKinds; ++k)
    if (summary.kinds[k] != 0)
      kinds.push_back(
          fmt::format("\"{}\": {}", name(static_cast<LaunchKind>(k)), summary.kinds[k]));
  for (const KernelCount& k : summary.kernels)
    kernels.push_back(
        fmt::format(R"({{"name": {}, "launches": {}, "threads": {}, "in_bodies": {}}})",
                    json::quoted(k.name), k.launches, k.threads, k.in_bodies));
  return fmt::format(
      "{{\"nodes\": {}, \"edges\": {}, \"programmatic_edges\": {}, \"known_bytes\": {}, "
      "\"kernels_in_bodies\": {}, \"unknown_bodies\": {}, "
      "\"topology\": \"{}\",\n \"kinds\": {{{}}},\n \"kernels\": [{}],\n"
      " \"critical_path\": {},\n \"critical_path_bytes\": {},\n"
      " \"could_be_programmatic\": [{}]}}",
      graph.nodes.size(), graph.edges.size(), summary.programmatic_edges, summary.known_bytes,
      summary.kernels_in_bodies, summary.unknown_bodies, summary.topology, fmt::join(kinds, ", "),
      fmt::join(kernels, ",\n  "), print(summary.longest), print(summary.heaviest),
      fmt::join(summary.candidates, ", "));
}

// ---- reading

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file), check_(file, {kForm, "PW0541"}) {}

  Result<CapturedLaunches> read(std::string_view text) {
    json::Sink sink;
    sink.streamed = {"nodes", "edges"};
    sink.element = [&](std::string_view key, std::size_t i, const Tree& tree) {
      const Pointer list = kTop / key, place = list / i;
      if (key == "nodes")
        node(tree, place);
      else
        edge(tree, place);
    };
    sink.member = [&](std::string_view key, const Tree& tree) { member(key, tree); };
    if (auto scanned = json::scan(text, file_, sink); !scanned)
      check_.add(std::move(scanned.error()));
    else if (!has_format_)
      check_.error(kTop, kForm, "the member `format` is missing",
                   fmt::format("write \"format\": \"{}\"", kFormat));
    if (check_.passed()) check_references();
    if (!check_.passed()) return tl::unexpected<Diagnostics>(check_.take());
    std::sort(graph_.edges.begin(), graph_.edges.end(), [](const auto& a, const auto& b) {
      return std::tie(a.to, a.from, a.from_port) < std::tie(b.to, b.from, b.from_port);
    });
    return std::move(graph_);
  }

 private:
  void member(std::string_view key, const Tree& tree) {
    const Pointer place = kTop / key;
    if (key == "format") {
      has_format_ = true;
      if (check_.expect(tree, Kind::string, place) && tree.text != kFormat)
        check_.error(place, kForm, fmt::format("the format must be {}", kFormat));
    } else if (key == "name") {
      if (check_.expect(tree, Kind::string, place)) graph_.name = tree.text;
    } else if (key == "nodes" || key == "edges") {
      check_.expect(tree, Kind::array, place);  // a list is streamed
    } else if (key != "summary") {
      check_.unknown_key(key, {"format", "name", "nodes", "edges", "summary"}, place);
    }
  }

  bool number(const Tree& tree, std::int64_t most, const Pointer& place) {
    if (!check_.expect(tree, Kind::integer, place)) return false;
    if (tree.integer >= 0 && tree.integer <= most) return true;
    return check_.error(place, kForm,
                        fmt::format("the number must be in 0 … {}, but is {}", most, tree.integer));
  }

  template <class T>
  void take(const Tree& object, std::string_view key, const Pointer& place, T& into) {
    const Tree* value = object.find(key);
    const Pointer at = place / key;
    if (value == nullptr) return;
    if constexpr (std::is_same_v<T, std::string>) {
      if (check_.expect(*value, Kind::string, at)) into = value->text;
    } else if constexpr (std::is_same_v<T, std::array<std::uint32_t, 3>>) {
      if (!check_.expect(*value, Kind::array, at)) return;
      if (value->items.size() != 3) {
        check_.error(at, kForm, "three numbers are expected: x, y and z");
        return;
      }
      for (std::size_t i = 0; i < 3; ++i)
        if (number(value->items[i], std::numeric_limits<std::uint32_t>::max(), at / i))
          into[i] = static_cast<std::uint32_t>(value->items[i].integer);
    } else if constexpr (std::is_same_v<T, std::optional<std::uint64_t>>) {
      if (number(*value, std::numeric_limits<std::int64_t>::max(), at))
        into = static_cast<std::uint64_t>(value->integer);
    } else {
      if (number(*value, std::numeric_limits<std::uint32_t>::max(), at))
        into = static_cast<std::uint32_t>(value->integer);
    }
  }

  void node(const Tree& tree, const Pointer& place) {
    if (graph_.nodes.size() >= kMostNodes) {
      if (graph_.nodes.size() == kMostNodes && !check_.full())
        check_.error(place, kForm, fmt::format("more than {} nodes", kMostNodes));
      return;
    }
    CapturedNode& n = graph_.nodes.emplace_back();
    if (!check_.expect(tree, Kind::object, place)) return;
    check_.known_keys(tree,
                      {"kind", "name", "grid", "block", "shared_bytes", "bytes", "label",
                       "condition", "bodies", "inside", "body"},
                      place);
    kind(tree, place, n);
    take(tree, "name", place, n.name);
    take(tree, "grid", place, n.grid);
    take(tree, "block", place, n.block);
    take(tree, "shared_bytes", place, n.shared_bytes);
    take(tree, "bytes", place, n.bytes);
    take(tree, "label", place, n.label);
    condition(tree, place, n);
    take(tree, "inside", place, n.inside);
    take(tree, "body", place, n.body);
  }

  void condition(const Tree& tree, const Pointer& place, CapturedNode& n) {
    const Tree* given = tree.find("condition");
    if (given == nullptr) {
      if (tree.find("bodies") != nullptr)
        check_.error(place / "bodies", kForm, "bodies without a condition");
      return;
    }
    std::string text;
    take(tree, "condition", place, text);
    CapturedCondition read;
    take(tree, "bodies", place, read.bodies);
    std::size_t kind = 0;
    while (kind < kConditionKinds && text != name(static_cast<ConditionKind>(kind))) ++kind;
    if (kind == kConditionKinds) {
      if (given->kind == Kind::string)
        check_.error(place / "condition", kForm, "a condition is if, while or switch");
      return;
    }
    read.kind = static_cast<ConditionKind>(kind);
    constexpr std::uint32_t kMost[kConditionKinds] = {2, 1, kMostNodes};
    const std::uint32_t most = kMost[kind];
    if (read.bodies < 1 || read.bodies > most)
      check_.error(place / "bodies", kForm,
                   fmt::format("the number of bodies of `{}` must be in 1 … {}", text, most));
    if (n.kind != LaunchKind::conditional)
      check_.error(place / "condition", kForm, "only a conditional node has a condition");
    n.condition = read;
  }

  void kind(const Tree& tree, const Pointer& place, CapturedNode& n) {
    std::string text;
    take(tree, "kind", place, text);
    for (std::size_t k = 0; k < kLaunchKinds; ++k) {
      n.kind = static_cast<LaunchKind>(k);
      if (text == name(n.kind)) return;
    }
    if (const Tree* given = tree.find("kind"); given != nullptr && given->kind != Kind::string)
      return;  // reported
    check_.error(place / "kind", kForm,
                 text.empty() ? "the kind of a node is missing" : "unknown kind of node",
                 "a kind is kernel, memcpy, memset, host, graph, empty, …: see docs/formats.md");
  }

  void edge(const Tree& tree, const Pointer& place) {
    CapturedEdge& e = graph_.edges.emplace_back();
    if (!check_.expect(tree, Kind::array, place)) return;
    const auto& items = tree.items;
    if (items.size() != 2 && items.size() != 5) {
      check_.error(place, kForm, "an edge has 2 or 5 elements",
                   "write [FROM, TO] or [FROM, TO, \"programmatic\", FROM_PORT, TO_PORT]");
      return;
    }
    constexpr auto kMost = static_cast<std::int64_t>(kMostNodes);
    if (number(items[0], kMost, place / 0)) e.from = static_cast<std::uint32_t>(items[0].integer);
    if (number(items[1], kMost, place / 1)) e.to = static_cast<std::uint32_t>(items[1].integer);
    if (items.size() == 2) return;
    const Pointer at = place / 2;
    if (check_.expect(items[2], Kind::string, at)) {
      e.programmatic = items[2].text == "programmatic";
      if (!e.programmatic && items[2].text != "default")
        check_.error(at, kForm, "the kind of an edge is default or programmatic");
    }
    if (number(items[3], 255, place / 3)) e.from_port = static_cast<std::uint8_t>(items[3].integer);
    if (number(items[4], 255, place / 4)) e.to_port = static_cast<std::uint8_t>(items[4].integer);
  }

  void check_references() {
    const std::size_t count = graph_.nodes.size();
    const Pointer nodes = kTop / "nodes", edges = kTop / "edges";
    for (std::size_t i = 0; i < count; ++i) {
      const auto inside = graph_.nodes[i].inside;
      const bool later = inside && *inside > i && *inside < count;
      const auto* const condition =
          later && graph_.nodes[*inside].condition ? &*graph_.nodes[*inside].condition : nullptr;
      if (inside && condition == nullptr &&
          !(later && graph_.nodes[*inside].kind == LaunchKind::graph))
        check_.error(nodes / i / "inside", kForm,
                     fmt::format("node {} is not a later node that holds graphs", *inside));
      else if (graph_.nodes[i].body >= (condition != nullptr ? condition->bodies : 1))
        check_.error(nodes / i / "body", kForm,
                     fmt::format("the node that holds it has no body {}", graph_.nodes[i].body));
    }
    for (std::size_t i = 0; i < graph_.edges.size(); ++i) {
      const CapturedEdge& e = graph_.edges[i];
      if (e.to >= count || e.from >= e.to)
        check_.error(edges / i, kForm,
                     fmt::format("the edge from {} to {} does not lead to a later one of {} nodes",
                                 e.from, e.to, count),
                     "nodes are listed in topological order and counted from 0");
    }
  }

  const std::string& file_;
  json::Checks check_;
  CapturedLaunches graph_;
  bool has_format_ = false;
};

}  // namespace

std::string captured_to_json(const CapturedLaunches& graph) {
  std::string out =
      fmt::format("{{\"format\": \"{}\",\n\"name\": {}", kFormat, json::quoted(graph.name));
  put_lines(out, "nodes", graph.nodes, [](const CapturedNode& n) { return print(n); });
  put_lines(out, "edges", graph.edges, [](const CapturedEdge& e) { return print(e); });
  return out + ",\n\"summary\": " + print(graph, summary_of(graph)) + "}\n";
}

Result<CapturedLaunches> captured_from_json(std::string_view text, const std::string& file) {
  return Reader(file).read(text);
}

bool looks_like_captured(std::string_view text) {
  return stated_format(text).starts_with("piecewise.captured/");
}

}  // namespace pw
