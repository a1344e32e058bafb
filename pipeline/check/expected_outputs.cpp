#include "pipeline/check/expected_outputs.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "verify/numeric.hpp"

namespace pw {
namespace {

constexpr const char* kNoTensorCode = "PW1272";  // see docs/codes.md

/// Returns the names that an output may have in the file of another system.
std::vector<std::string> names_of(const Graph& graph, std::size_t output) {
  const ValueId value = graph.outputs()[output];
  std::vector<std::string> out{output_name(graph, output), std::string(graph.value_name(value))};
  for (std::size_t i = graph.returned_count(); i < graph.outputs().size(); ++i)
    if (graph.outputs()[i] == value) out.push_back(output_name(graph, i));
  return out;
}

const StoredTensor* named(const Graph& graph, const Safetensors& file, std::size_t output,
                          std::size_t step, std::size_t steps) {
  for (const std::string& name : names_of(graph, output)) {
    if (const StoredTensor* found = file.find(stored_output(name, step, steps))) return found;
    if (steps > 1) continue;
    if (const StoredTensor* found = file.find(stored_output(name, 0, 2))) return found;
  }
  return nullptr;
}

/// Returns the name without its step; nothing if it belongs to another step.
std::optional<std::string> of_step(const std::string& name, std::size_t step, std::size_t steps) {
  const std::string end = fmt::format("@{}", step);
  if (name.ends_with(end)) return name.substr(0, name.size() - end.size());
  return steps == 1 ? std::optional(name) : std::nullopt;
}

/// Returns a sort key by which `output_10` follows `output_9`: the text before a trailing number,
/// and the number.
std::pair<std::string, std::optional<std::uint64_t>> split_number(const std::string& name) {
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  if (digits == name.size() || name.size() - digits > 18) return {name, std::nullopt};
  return {name.substr(0, digits), std::stoull(name.substr(digits))};
}

std::vector<const StoredTensor*> in_order(const Safetensors& file, std::size_t step,
                                          std::size_t steps) {
  std::vector<std::pair<std::string, const StoredTensor*>> some;
  for (const StoredTensor& tensor : file.tensors())
    if (auto name = of_step(tensor.name, step, steps)) some.emplace_back(std::move(*name), &tensor);
  const bool numbered = std::all_of(some.begin(), some.end(), [&](const auto& entry) {
    const auto one = split_number(entry.first);
    return one.second && one.first == split_number(some.front().first).first;
  });
  std::stable_sort(some.begin(), some.end(), [&](const auto& a, const auto& b) {
    if (numbered) return split_number(a.first).second < split_number(b.first).second;
    return a.second->begin < b.second->begin;
  });
  std::vector<const StoredTensor*> out;
  for (const auto& [name, tensor] : some) out.push_back(tensor);
  return out;
}

tl::unexpected<Diagnostics> missing(const Graph& graph, const Safetensors& file, std::size_t output,
                                    std::size_t step, std::size_t steps) {
  constexpr std::size_t kListed = 20;
  const std::string name = stored_output(output_name(graph, output), step, steps);
  std::vector<std::string> names;
  for (const StoredTensor& tensor : file.tensors()) names.push_back(tensor.name);
  const std::string near = nearest(name, names);
  Diagnostic out =
      error_in("output " + name, kNoTensorCode, file.path() + " has no tensor with this name",
               near.empty() ? "`pwr run --save` writes a file with all outputs"
                            : "did you mean `" + near + "`?");
  const std::size_t more = names.size() - std::min(names.size(), kListed);
  names.resize(names.size() - more);
  out.notes.push_back(names.empty()
                          ? "it has no tensors"
                          : fmt::format("it has {}{}", fmt::join(names, ", "),
                                        more > 0 ? fmt::format(" and {} more", more) : ""));
  return fail(std::move(out));
}

}  // namespace

std::string stored_output(std::string_view output, std::size_t step, std::size_t steps) {
  return steps == 1 ? std::string(output) : fmt::format("{}@{}", output, step);
}

Result<ExpectedTensors> find_expected(const Graph& graph, const Safetensors& file, std::size_t step,
                                      std::size_t steps) {
  ExpectedTensors out;
  std::optional<std::size_t> without;
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    out.of_output.push_back(named(graph, file, i, step, steps));
    if (out.of_output.back() == nullptr && !without) without = i;
  }
  if (!without) return out;
  const bool none = std::all_of(out.of_output.begin(), out.of_output.end(),
                                [](const StoredTensor* tensor) { return tensor == nullptr; });
  out.of_output = none ? in_order(file, step, steps) : std::vector<const StoredTensor*>();
  if (out.of_output.size() != graph.outputs().size())
    return missing(graph, file, *without, step, steps);
  out.by_place = true;
  return out;
}

}  // namespace pw
