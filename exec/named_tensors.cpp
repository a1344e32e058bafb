#include "exec/named_tensors.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/program.hpp"
#include "base/characters.hpp"
#include "base/try.hpp"

namespace pw {
namespace {

using Digits = std::map<std::string, std::string, std::less<>>;

/// Returns true if the text matches the pattern with digits for placeholders, and the digits.
bool fits(std::string_view pattern, std::string_view text, Digits& digits) {
  while (!pattern.empty()) {
    if (pattern.front() != '{') {
      if (text.empty() || text.front() != pattern.front()) return false;
      pattern.remove_prefix(1);
      text.remove_prefix(1);
      continue;
    }
    const std::size_t end = pattern.find('}');
    const std::string name(pattern.substr(1, end - 1));
    const auto stop = std::find_if_not(text.begin(), text.end(), is_digit);
    const std::string found(text.begin(), stop);
    if (found.empty() || digits.emplace(name, found).first->second != found) return false;
    pattern.remove_prefix(end + 1);
    text.remove_prefix(found.size());
  }
  return text.empty();
}

std::string filled(std::string_view pattern, const Digits& digits) {
  std::string out;
  while (!pattern.empty()) {
    const std::size_t open = std::min(pattern.find('{'), pattern.size());
    out += pattern.substr(0, open);
    pattern.remove_prefix(open);
    if (pattern.empty()) break;
    const std::size_t end = pattern.find('}');
    out += digits.find(pattern.substr(1, end - 1))->second;
    pattern.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace

std::optional<std::string> TensorMap::tensor_of(std::string_view input) const {
  if (const auto found = exact_.find(input); found != exact_.end()) return found->second;
  for (const auto& [key, value] : patterns_) {
    Digits digits;
    if (fits(key, input, digits)) return filled(value, digits);
  }
  return std::nullopt;
}

std::vector<std::string> TensorMap::unused(const std::vector<std::string>& inputs) const {
  std::vector<std::string> out;
  for (const auto& [key, value] : exact_)
    if (std::find(inputs.begin(), inputs.end(), key) == inputs.end()) out.push_back(key);
  for (const auto& [key, value] : patterns_) {
    const auto fits_key = [&pattern = key](const std::string& input) {
      Digits digits;
      return fits(pattern, input, digits);
    };
    if (std::none_of(inputs.begin(), inputs.end(), fits_key)) out.push_back(key);
  }
  return out;
}

namespace {

/// Returns true if the tensor may have this shape. Symbolic dims are compared once a step has
/// values for them.
bool has_shape(const Context& context, const StoredTensor& tensor, const Shape& shape) {
  if (shape.size() != tensor.extents.size()) return false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const auto extent = context.dims.value(shape[i]);
    if (extent && *extent != tensor.extents[i]) return false;
  }
  return true;
}

}  // namespace

Result<GivenTensors> give_tensors(const Graph& graph, const Safetensors& file, const TensorMap& map,
                                  Weights& weights) {
  Diagnostics errors;
  const auto error = [&](const std::string& at, const char* code, std::string why,
                         std::string help = {}) {
    constexpr std::size_t kMost = 20;
    if (errors.size() < kMost)
      errors.push_back(error_in(at, code, std::move(why), std::move(help)));
  };
  const auto near = [](std::string_view word, const std::vector<std::string>& names) {
    const std::string found = nearest(word, names);
    return found.empty() ? std::string() : "did you mean `" + found + "`?";
  };
  std::vector<std::string> inputs, stored;  // tensors of the file that no input uses
  for (ValueId v : graph.inputs()) inputs.emplace_back(graph.value_name(v));
  std::set<std::string, std::less<>> wanted_names;
  for (const std::string& name : inputs) wanted_names.insert(map.tensor_of(name).value_or(name));
  for (const StoredTensor& tensor : file.tensors())
    if (!wanted_names.contains(tensor.name)) stored.push_back(tensor.name);
  for (const std::string& key : map.unused(inputs))
    error("the map at " + key, "PW1273", "no input of the graph has this name", near(key, inputs));

  GivenTensors out;
  for (ValueId v : graph.inputs()) {
    const std::string name(graph.value_name(v)), place = "input " + name;
    const auto mapped = map.tensor_of(name);
    const std::string wanted = mapped.value_or(name);
    const StoredTensor* tensor = file.find(wanted);
    if (tensor == nullptr) {
      if (!mapped && graph.input_kind(v) != InputKind::weight) {
        ++out.of_seed;
        continue;
      }
      error(place, "PW1272", fmt::format("{} has no tensor `{}`", file.path(), wanted),
            near(wanted, stored));
      continue;
    }
    const TypeId id = graph.type(v);
    const Type* type = id == Types::unknown() ? nullptr : &graph.context().types[id];
    if (type != nullptr && dtype_stored_as(tensor->dtype) != type->dtype) {
      error(place, "PW1272",
            fmt::format("it is {}, but the tensor {} is {}", graph.context().types.print(id),
                        wanted, tensor->dtype));
      continue;
    }
    if (type != nullptr && !has_shape(graph.context(), *tensor, type->shape)) {
      error(place, "PW1272",
            fmt::format("it is {}, but the tensor {} is [{}]", graph.context().types.print(id),
                        wanted, fmt::join(tensor->extents, ", ")));
      continue;
    }
    auto made = PW_TRY(file.tensor(*tensor));
    weights.give(name, std::move(made));
    ++out.inputs;
  }
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  weights.use(file.file());
  out.unused = std::move(stored);
  return out;
}

}  // namespace pw
