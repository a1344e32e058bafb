#include <cmath>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/try.hpp"
#include "rewriter/extract/egraph_file.hpp"

namespace pw::extract {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostNodes = 4'000'000;
constexpr const char* kForm =
    "nodes are {\"op\": …, \"children\": [names of nodes], \"eclass\": …, \"cost\": 1}";

class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  Result<NamedProblem> run(std::string_view text) {
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded()) return bad("", "this is not JSON");
    if (!json.is_object()) return bad("", "an e-graph is an object");
    const auto nodes = json.find("nodes");
    if (nodes == json.end() || !nodes->is_object())
      return bad("/nodes", "`nodes` is an object by the names of the nodes");
    if (nodes->size() > kMostNodes)
      return bad("/nodes", fmt::format("there are more than {} nodes", kMostNodes));
    for (const auto& [name, node] : nodes->items()) PW_TRY(declare(name, node));
    for (const auto& [name, node] : nodes->items()) PW_TRY(define(name, node));
    PW_TRY(roots(json));
    return std::move(out_);
  }

 private:
  [[nodiscard]] tl::unexpected<Diagnostics> bad(const std::string& at, const std::string& what,
                                                const std::string& hint = kForm) const {
    return fail(error_in(file_ + (at.empty() ? "" : " at " + at), "PW1435", what, hint));
  }
  static std::string at(const std::string& name, const char* member) {
    std::string step;
    for (char c : name) step += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    return fmt::format("/nodes/{}/{}", step, member);
  }

  Status declare(const std::string& name, const Json& node) {
    const auto owner = node.is_object() ? node.find("eclass") : node.end();
    if (!node.is_object() || owner == node.end() || !owner->is_string())
      return bad(at(name, "eclass"), "`eclass` is the name of the node's class");
    const auto [known, fresh] = classes_.try_emplace(owner->get<std::string>(), 0);
    if (fresh) {
      known->second = out_.problem.add_class();
      out_.classes.push_back(known->first);
    }
    class_of_.emplace(name, known->second);
    return {};
  }

  Status define(const std::string& name, const Json& node) {
    double cost = 1;
    if (const auto given = node.find("cost"); given != node.end()) {
      if (!given->is_number() || given->get<double>() < 0 || !std::isfinite(given->get<double>()))
        return bad(at(name, "cost"), "`cost` must be a non-negative number");
      cost = given->get<double>();
    }
    std::vector<ClassIndex> children;
    if (const auto given = node.find("children"); given != node.end()) {
      if (!given->is_array()) return bad(at(name, "children"), "`children` is a list");
      for (const Json& child : *given) {
        const auto found =
            child.is_string() ? class_of_.find(child.get<std::string>()) : class_of_.end();
        if (found == class_of_.end())
          return bad(at(name, "children"),
                     fmt::format("{} is not a node of this e-graph", short_text(child)));
        children.push_back(found->second);
      }
    }
    out_.problem.add_node(class_of_.at(name), cost, std::move(children));
    out_.nodes.push_back(name);
    const auto op = node.find("op");
    out_.ops.push_back(op != node.end() && op->is_string() ? op->get<std::string>() : "");
    return {};
  }

  Status roots(const Json& json) {
    const auto given = json.find("root_eclasses");
    const std::string hint = "\"root_eclasses\": [\"a class\"] names the classes to extract";
    if (given == json.end() || !given->is_array() || given->empty())
      return bad("/root_eclasses", "no root is given", hint);
    for (const Json& root : *given) {
      const auto found = root.is_string() ? classes_.find(root.get<std::string>()) : classes_.end();
      if (found == classes_.end())
        return bad("/root_eclasses",
                   fmt::format("{} is not a class of this e-graph", short_text(root)), hint);
      out_.problem.roots.push_back(found->second);
    }
    return {};
  }

  static std::string short_text(const Json& json) {
    constexpr std::size_t kMost = 60;
    std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
    return text.size() > kMost ? text.substr(0, kMost) + "…" : text;
  }

  std::string file_;
  NamedProblem out_;
  std::map<std::string, ClassIndex, std::less<>> classes_, class_of_;
};

}  // namespace

Result<NamedProblem> read_egraph(std::string_view text, const std::string& file) {
  return Reader(file).run(text);
}

std::string write_egraph(const NamedProblem& egraph) {
  const Problem& problem = egraph.problem;
  Json nodes = Json::object();
  for (const std::vector<NodeIndex>& own : problem.classes)
    for (NodeIndex n : own) {
      Json children = Json::array();
      for (ClassIndex child : problem.nodes[n].children)
        children.push_back(egraph.nodes[problem.classes[child].front()]);
      nodes[egraph.nodes[n]] = {{"op", egraph.ops[n]},
                                {"children", std::move(children)},
                                {"eclass", egraph.classes[problem.nodes[n].owner]},
                                {"cost", problem.nodes[n].cost}};
    }
  Json roots = Json::array();
  for (ClassIndex root : problem.roots) roots.push_back(egraph.classes[root]);
  const Json out = {{"nodes", std::move(nodes)}, {"root_eclasses", std::move(roots)}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string write_choices(const NamedProblem& egraph, const std::vector<ClassIndex>& needed,
                          const Choice& choice) {
  Json choices = Json::object();
  for (ClassIndex c : needed) choices[egraph.classes[c]] = egraph.nodes[choice[c]];
  const Json out = {{"choices", std::move(choices)}};
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace pw::extract
