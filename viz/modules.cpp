#include "viz/modules.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "base/characters.hpp"

namespace pw::viz {

bool is_number(std::string_view step) { return are_digits(step.substr(0, step.find('@'))); }

namespace {

/// Returns the end of the next step of a path: a name with the number after it ("experts.5").
std::size_t step_end(std::string_view path, std::size_t begin) {
  const std::size_t end = std::min(path.find('.', begin), path.size());
  if (end == path.size() || is_number(path.substr(begin, end - begin))) return end;
  const std::size_t next = std::min(path.find('.', end + 1), path.size());
  return is_number(path.substr(end + 1, next - end - 1)) ? next : end;
}

/// Returns `prefix` extended by the next step of `path`; empty if there is no further step.
std::string_view beyond(std::string_view path, std::string_view prefix) {
  std::size_t begin = 0;
  if (!prefix.empty()) {
    if (path.size() <= prefix.size() + 1 || !path.starts_with(prefix) || path[prefix.size()] != '.')
      return {};
    begin = prefix.size() + 1;
  }
  return path.empty() ? path : path.substr(0, step_end(path, begin));
}

class Nester {
 public:
  Nester(const UnionGraph& graph, Arranger& arranger, Folding& out)
      : graph_(graph), arranger_(arranger), out_(out), inside_(graph.nodes.size(), kNobody) {
    out_.inner_of = out_.group_of;
  }

  void run() {
    struct Level {
      std::uint32_t group;
      std::string prefix;
      std::size_t depth;
    };
    std::vector<Level> levels;
    for (std::uint32_t i = 0; i < out_.groups.size(); ++i) levels.push_back({i, {}, 0});
    for (std::size_t l = 0; l < levels.size(); ++l) {
      const Level level = levels[l];
      const std::size_t before = out_.groups.size();
      std::map<std::uint32_t, std::string> prefixes;
      if (level.depth < kDeepest) prefixes = split(level.group, level.prefix);
      finish(level.group);
      // Parts of a group have its path.
      for (std::size_t i = before; i < out_.groups.size(); ++i) {
        const auto child = static_cast<std::uint32_t>(i);
        if (out_.groups[i].nodes.empty()) continue;
        const auto known = prefixes.find(child);
        levels.push_back(
            {child, known != prefixes.end() ? known->second : level.prefix, level.depth + 1});
      }
    }
  }

 private:
  [[nodiscard]] std::string_view path(std::uint32_t at) const {
    const UnionNode& node = graph_.nodes[at];
    return graph_.graph_of(node).group(node.id);
  }

  /// Creates the inner groups of a group; returns their paths, by number.
  std::map<std::uint32_t, std::string> split(std::uint32_t group, std::string prefix) {
    const std::vector<std::uint32_t> nodes = out_.groups[group].nodes;
    const GroupKind kind = out_.groups[group].kind;
    const bool is_path = kind == GroupKind::layer || kind == GroupKind::module;
    std::map<std::string_view, std::size_t> counts;
    while (true) {
      counts.clear();
      for (const std::uint32_t at : nodes)
        if (!(is_path && path(at).empty())) ++counts[beyond(path(at), prefix)];
      const bool all_alike = counts.size() == 1 && !counts.begin()->first.empty();
      if (!all_alike) break;
      std::string& name = out_.groups[group].name;
      const bool renamed = kind == GroupKind::module && name == prefix;
      prefix = counts.begin()->first;
      if (renamed) name = prefix;
    }
    std::map<std::string_view, std::uint32_t> made;
    std::map<std::uint32_t, std::string> prefixes;
    for (const std::uint32_t at : nodes) {
      const std::string_view key = beyond(path(at), prefix);
      if (key.empty() || counts[key] < 2) continue;
      const auto [known, fresh] =
          made.try_emplace(key, static_cast<std::uint32_t>(out_.groups.size()));
      if (fresh) {
        out_.groups.push_back({std::string(key), GroupKind::module, {}, group});
        prefixes.emplace(known->second, key);
      }
      inside_[at] = known->second;
    }
    fill(nodes);
    for (const std::uint32_t at : nodes)
      if (inside_[at] != kNobody) out_.groups[inside_[at]].nodes.push_back(at);
    return prefixes;
  }

  /// A node without a path between two of one module belongs to it.
  void fill(const std::vector<std::uint32_t>& nodes) {
    for (std::size_t i = 1; i < nodes.size(); ++i) {
      if (inside_[nodes[i]] != kNobody || !path(nodes[i]).empty()) continue;
      std::size_t end = i;
      while (end < nodes.size() && inside_[nodes[end]] == kNobody && path(nodes[end]).empty())
        ++end;
      const std::uint32_t before = inside_[nodes[i - 1]];
      if (end < nodes.size() && inside_[nodes[end]] == before)
        for (std::size_t k = i; k < end; ++k) inside_[nodes[k]] = before;
      i = end;
    }
  }

  /// Orders the items of a group. A remainder of a cut group with a single node is not grouped.
  void finish(std::uint32_t group) {
    const std::vector<std::uint32_t> nodes = out_.groups[group].nodes;
    if (std::all_of(nodes.begin(), nodes.end(),
                    [&](std::uint32_t at) { return inside_[at] == kNobody; })) {
      for (const std::uint32_t at : nodes) out_.groups[group].sequence.push_back({false, at});
      return;
    }
    std::vector<Unit> sequence = arranger_.run(nodes, inside_);
    for (Unit& unit : sequence) {
      if (!unit.group || out_.groups[unit.index].nodes.size() > 1) continue;
      const std::uint32_t alone = out_.groups[unit.index].nodes.front();
      out_.groups[unit.index].nodes.clear();
      inside_[alone] = kNobody;
      unit = {false, alone};
    }
    out_.groups[group].sequence = std::move(sequence);
    for (const std::uint32_t at : nodes) {
      if (inside_[at] != kNobody) out_.inner_of[at] = inside_[at];
      inside_[at] = kNobody;
    }
  }

  const UnionGraph& graph_;
  Arranger& arranger_;
  Folding& out_;
  std::vector<std::uint32_t> inside_;  // by union position: in the group that is split
};

}  // namespace

void nest_modules(const UnionGraph& graph, Arranger& arranger, Folding& folding) {
  Nester(graph, arranger, folding).run();
}

}  // namespace pw::viz
