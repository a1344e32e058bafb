#include "graph/text/json_definitions.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace pw {
namespace {

using json::kTop;
using json::Pointer;

}  // namespace

void Definitions::define_results() {
  const Pointer nodes = kTop / "nodes";
  for (std::size_t n = 0; n < records_.nodes.size() && !check_.full(); ++n) {
    const Pointer node = nodes / n, results = node / "results";
    for (std::size_t r = 0; r < records_.nodes[n].result_count; ++r) {
      const Pointer result = results / r;
      define(records_.results_of(records_.nodes[n])[r].name, static_cast<std::int64_t>(n),
             result / "name");
    }
  }
}

void Definitions::define(NameId name, std::int64_t node, const Pointer& pointer) {
  Definition& definition = definitions_[name];
  if (!definition.there()) {
    definition.node = node;
    return;
  }
  const std::string first = definition.node == Definition::kInput
                                ? "an input"
                                : fmt::format("/nodes/{}", definition.node);
  check_.error(pointer, "PW1009",
               fmt::format("the name `{}` is already taken by {}", records_.text(name), first),
               "names of inputs and results must be unique");
}

void Definitions::unknown_value(NameId name, const Pointer& pointer, std::string_view code,
                                const std::string& prefix) const {
  std::vector<std::string> known;
  constexpr std::size_t kEnough = 10000;  // a hint does not justify a long search
  for (const InputRecord& input : records_.inputs)
    if (known.size() < kEnough) known.emplace_back(records_.text(input.name));
  for (const ResultRecord& result : records_.results)
    if (known.size() < kEnough) known.emplace_back(records_.text(result.name));
  std::string near = nearest(records_.text(name), known);
  check_.error(pointer, code,
               prefix + "there is no value `" + records_.text(name).substr(0, 80) + "`",
               near.empty() ? "" : "did you mean `" + near + "`?");
}

void Definitions::check_order() const {
  std::vector<std::pair<std::size_t, std::size_t>> early;  // node, operand
  const auto pointer = [](std::size_t n, std::size_t k) {
    return fmt::format("/nodes/{}/operands/{}", n, k);
  };
  for (std::size_t n = 0; n < records_.nodes.size() && !check_.full(); ++n) {
    const std::span<const NameId> names = records_.operands_of(records_.nodes[n]);
    for (std::size_t k = 0; k < names.size(); ++k) {
      if (!names[k].valid()) continue;
      const Definition& definition = definitions_[names[k]];
      if (!definition.there()) {
        const Pointer list = kTop / "nodes", node = list / n, operands = node / "operands";
        unknown_value(names[k], operands / k, "PW1010", "");
      } else if (definition.node >= static_cast<std::int64_t>(n)) {
        early.emplace_back(n, k);
      }
    }
  }
  if (early.empty() || report_cycle()) return;
  for (const auto& [n, k] : early) {
    const NameId name = records_.operands_of(records_.nodes[n])[k];
    if (!check_.full())
      check_.error_at(pointer(n, k), "PW1011",
                      fmt::format("`{}` is used before its definition at /nodes/{}",
                                  records_.text(name), definitions_[name].node),
                      "list the nodes in topological order");
  }
}
// Depth-first search over operands, without recursion; reports the first cycle found.
bool Definitions::report_cycle() const {
  enum class Mark : std::uint8_t { fresh, open, done };
  std::vector<Mark> marks(records_.nodes.size(), Mark::fresh);
  std::vector<std::pair<std::size_t, std::size_t>> stack;  // node, next operand
  for (std::size_t root = 0; root < records_.nodes.size(); ++root) {
    if (marks[root] != Mark::fresh) continue;
    marks[root] = Mark::open;
    stack.emplace_back(root, 0);
    while (!stack.empty()) {
      auto& [n, k] = stack.back();
      if (k == records_.nodes[n].operand_count) {
        marks[n] = Mark::done;
        stack.pop_back();
        continue;
      }
      const NameId name = records_.operands_of(records_.nodes[n])[k++];
      if (!name.valid() || definitions_[name].node < 0) continue;
      const auto next = static_cast<std::size_t>(definitions_[name].node);
      if (marks[next] == Mark::open) return name_cycle(stack, next);
      if (marks[next] == Mark::fresh) {
        marks[next] = Mark::open;
        stack.emplace_back(next, 0);
      }
    }
  }
  return false;
}
bool Definitions::name_cycle(const std::vector<std::pair<std::size_t, std::size_t>>& stack,
                             std::size_t start) const {
  auto from = std::find_if(stack.begin(), stack.end(),
                           [&](const auto& entry) { return entry.first == start; });
  std::string path = records_.text(records_.nodes[start].name);
  constexpr std::ptrdiff_t kShown = 12;
  if (stack.end() - from > kShown) path += " ← …";
  for (auto it = std::max(from + 1, stack.end() - kShown); it < stack.end(); ++it)
    path += " ← " + records_.text(records_.nodes[it->first].name);
  if (from + 1 <= stack.end()) path += " ← " + records_.text(records_.nodes[start].name);
  check_.error_at(fmt::format("/nodes/{}", start), "PW1012", "a cycle: " + path,
                  "each node reads the one after the arrow");
  return true;
}

void Definitions::check_ends() const {
  const Pointer outputs = kTop / "outputs", writes = kTop / "writes";
  for (std::size_t i = 0; i < records_.outputs.size() && !check_.full(); ++i)
    if (!definitions_[records_.outputs[i]].there())
      unknown_value(records_.outputs[i], outputs / i, "PW1013", "dangling output: ");
  for (const auto& [input, value] : records_.writes) {
    const std::string name = records_.text(input);
    const Pointer at = writes / name;
    if (!definitions_[input].there() || definitions_[input].node != Definition::kInput)
      check_.error(at, "PW1013", fmt::format("there is no input `{}`", name.substr(0, 80)),
                   "a write is the name of an input and of the value that it holds afterwards");
    else if (!definitions_[value].there())
      unknown_value(value, at, "PW1013", "dangling output: ");
  }
}

}  // namespace pw
