#include <algorithm>

#include "exec/named_tensors.hpp"
#include "graph/text/scan_json.hpp"

namespace pw {
namespace {

/// Returns the names in braces; nothing if a brace is not closed or has no name.
std::optional<std::vector<std::string>> names_in(std::string_view pattern) {
  std::vector<std::string> out;
  while (true) {
    const std::size_t open = pattern.find_first_of("{}");
    if (open == std::string_view::npos) return out;
    const std::size_t end = pattern.find('}', open);
    if (pattern[open] == '}' || end == std::string_view::npos || end == open + 1)
      return std::nullopt;
    out.emplace_back(pattern.substr(open + 1, end - open - 1));
    if (out.back().find('{') != std::string::npos) return std::nullopt;
    pattern.remove_prefix(end + 1);
  }
}

}  // namespace

Result<TensorMap> TensorMap::parse(std::string_view text, const std::string& file) {
  TensorMap out;
  Diagnostics errors;
  json::Sink sink;
  sink.member = [&](std::string_view key, const json::Tree& value) {
    if (!errors.empty()) return;
    if (value.kind != json::Tree::Kind::string)
      errors.push_back(error_in(file + " at " + json::step(key), "PW1273",
                                "the name of a tensor must be a string",
                                R"({"input": "tensor", "l{i}_w": "layers.{i}.weight"})"));
    else if (auto done = out.add(std::string(key), std::string(value.text), file); !done)
      errors = std::move(done.error());
  };
  if (auto scanned = json::scan(text, file, sink); !scanned) {
    for (Diagnostic& problem : scanned.error())
      problem.help = R"(a map is {"input": "tensor", "l{i}_w": "layers.{i}.weight"})";
    return forward(scanned);
  }
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  return out;
}

Status TensorMap::add(const std::string& key, const std::string& value, const std::string& file) {
  const auto refuse = [&](const std::string& why) {
    return fail(error_in(file + " at " + json::step(key), "PW1273", why,
                         "`{i}` matches digits in the input's name"));
  };
  const auto in_key = names_in(key), in_value = names_in(value);
  if (!in_key || !in_value) return refuse("a brace is not closed, or has no name");
  for (const std::string& name : *in_value)
    if (std::find(in_key->begin(), in_key->end(), name) == in_key->end())
      return refuse("the tensor's name has {" + name + "}, but the input's does not");
  if (in_key->empty())
    exact_.emplace(key, value);
  else
    patterns_.emplace_back(key, value);
  return {};
}

}  // namespace pw
