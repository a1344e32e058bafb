#include <nlohmann/json.hpp>

#include "verify/baseline.hpp"

namespace pw {
namespace {

using Json = nlohmann::ordered_json;

/// Reads one baseline and keeps the first error.
class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  Baseline read(const Json& root) {
    Baseline out;
    if (!check(root.is_object(), "", "is not an object")) return out;
    for (const auto& [key, value] : root.items())
      if (key != "generate" && key != "rules" && key != "params" && key != "pipelines")
        check(false, "/" + key, "is not a known key");
    out.generate = text(root, "", "generate");
    const Json rules = list(root, "rules"), params = object(root, "", "params"),
               pipelines = object(root, "", "pipelines");
    for (const Json& rule : rules)
      if (check(rule.is_string(), "/rules", "has an element that is not a string"))
        out.rules.push_back(rule.get<std::string>());
    for (const auto& [name, value] : params.items())
      if (check(value.is_string(), "/params/" + name, "is not a string"))
        out.params.emplace_back(name, value.get<std::string>());
    for (const auto& [name, value] : pipelines.items())
      out.pipelines[name] = counts(value, "/pipelines/" + name);
    check(!out.pipelines.empty(), "/pipelines", "names no pipeline");
    return out;
  }

  Diagnostics errors;

 private:
  bool check(bool holds, const std::string& where, const std::string& what) {
    if (!holds && errors.empty())
      errors.push_back(
          error_in(file_ + (where.empty() ? "" : " at " + where), "PW1302",
                   (where.empty() ? "the file" : "`" + where + "`") + " " + what,
                   "write generate, rules and pipelines; `pwr test --update` fills in the counts"));
    return holds;
  }

  std::string text(const Json& parent, const std::string& where, const std::string& key) {
    const auto found = parent.find(key);
    const bool good = found != parent.end() && found->is_string();
    return check(good, where + "/" + key, "is not a string") ? found->get<std::string>() : "";
  }

  Json list(const Json& parent, const std::string& key) {
    const auto found = parent.find(key);
    const bool good = found != parent.end() && found->is_array();
    return check(good, "/" + key, "is not a list") ? *found : Json::array();
  }

  /// An absent one is empty.
  Json object(const Json& parent, const std::string& where, const std::string& key) {
    const auto found = parent.find(key);
    if (found == parent.end()) return Json::object();
    return check(found->is_object(), where + "/" + key, "is not an object") ? *found
                                                                            : Json::object();
  }

  std::size_t number(const Json& value, const std::string& where) {
    const bool good = value.is_number_unsigned();
    return check(good, where, "is not a count") ? value.get<std::size_t>() : 0;
  }

  PipelineCounts counts(const Json& value, const std::string& where) {
    PipelineCounts out;
    if (!check(value.is_object(), where, "is not an object")) return out;
    if (value.contains("nodes")) out.nodes = number(value["nodes"], where + "/nodes");
    const Json rewrites = object(value, where, "rewrites");
    for (const auto& [rule, count] : rewrites.items())
      out.rewrites[rule] = number(count, where + "/rewrites/" + rule);
    return out;
  }

  std::string file_;
};

}  // namespace

Result<Baseline> baseline_from_json(const std::string& text, const std::string& file) {
  const Json root = Json::parse(text, nullptr, false);
  if (root.is_discarded())
    return fail(error_in(file, "PW1301", "the file is not valid JSON",
                         "correct its syntax, or restore the file"));
  Reader reader(file);
  Baseline out = reader.read(root);
  if (!reader.errors.empty()) return tl::unexpected<Diagnostics>(std::move(reader.errors));
  return out;
}

std::string baseline_to_json(const Baseline& baseline) {
  Json root;
  root["generate"] = baseline.generate;
  root["rules"] = baseline.rules;
  if (!baseline.params.empty())
    for (const auto& [name, value] : baseline.params) root["params"][name] = value;
  for (const auto& [name, counts] : baseline.pipelines) {
    Json& pipeline = root["pipelines"][name];
    pipeline["nodes"] = counts.nodes;
    pipeline["rewrites"] = Json::object();
    for (const auto& [rule, count] : counts.rewrites) pipeline["rewrites"][rule] = count;
  }
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace pw
