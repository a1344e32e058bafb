// Small questions about patterns and ops.
#include "proof/sketch/sketch_part.hpp"

#include <algorithm>
#include <cctype>

namespace pw::proof {

std::string plain_name(std::string_view name) {
  std::string out;
  for (char c : name) out += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ? c : '_';
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) != 0) out = "v" + out;
  return out;
}

/// Recognizes a result of type [broadcast(…)].
bool broadcasts(const Op& op) {
  if (op.results.empty() || !op.results[0].type) return false;
  const std::vector<Expr>& dims = op.results[0].type->dims;
  return dims.size() == 1 && dims[0].kind == Expr::Kind::call && dims[0].text == "broadcast";
}

/// Negative axes count from the end. Nothing if the axis is outside the rank.
std::optional<std::size_t> axis_of(const Attribute* value, std::size_t rank) {
  const auto* axis = value == nullptr ? nullptr : std::get_if<std::int64_t>(value);
  if (axis == nullptr) return std::nullopt;
  const auto r = static_cast<std::int64_t>(rank);
  const std::int64_t at = *axis < 0 ? *axis + r : *axis;
  if (at < 0 || at >= r) return std::nullopt;
  return static_cast<std::size_t>(at);
}

/// A restart repeats the same construction with one size eliminated, so its choices must not
/// change.
std::size_t SketchPart::ask(const std::string& key, std::size_t count) {
  const auto answered = state_.answers.find(key);
  if (answered != state_.answers.end()) return answered->second;
  return state_.answers.emplace(key, state_.choices.choose(count)).first->second;
}

DimId SketchPart::symbol(std::string_view name) {
  const std::string plain = plain_name(name);
  const auto found = state_.solved.find(plain);
  return found != state_.solved.end() ? found->second : context_.dims.symbol(plain);
}

std::optional<DimId> SketchPart::dim_of(const Expr& expr, const Env& env) {
  return dim_value(context_, &graph_, expr, env);
}

}  // namespace pw::proof
