#include "models/next_token.hpp"

#include <cmath>

#include <fmt/format.h>

#include "base/parse_number.hpp"

namespace pw {
namespace {

tl::unexpected<Diagnostics> refuse(const std::string& message) {
  return fail(error_in("option --lm-head", "PW0801", message,
                       "use none, logits, greedy, or temperature=0.8,top_k=50,top_p=0.9"));
}

/// Reads `name=value` into the choice. Returns false for another name or a value out of range.
bool read_part(std::string_view part, NextToken& choice) {
  const std::size_t equals = part.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view name = part.substr(0, equals), text = part.substr(equals + 1);
  if (name == "top_k") {
    const auto k = parse_number<std::int64_t>(text);
    choice.top_k = k.value_or(0);
    return choice.top_k >= 1;
  }
  const auto value = parse_number<double>(text);
  if (!value || !std::isfinite(*value)) return false;
  if (name == "temperature") choice.temperature = *value;
  if (name == "top_p") choice.top_p = *value;
  return (name == "temperature" && *value >= 0) || (name == "top_p" && *value > 0 && *value <= 1);
}

/// Returns the token, an i64 for each row.
ValueId chosen(NodeMaker& nodes, const NextToken& choice, const StepEnd& end) {
  if (choice.temperature == 0)
    return nodes.call("argmax", {end.logits}, {{"dim", std::int64_t{-1}}}, {"token"});
  const TypeId type = nodes.graph.type(end.positions);
  const ValueId seeds = nodes.graph.add_input("seeds", type, InputKind::input);
  if (!end.group.empty()) nodes.graph.declare_replicated(seeds, end.group);
  ValueId logits = end.logits;
  if (choice.top_k > 0)
    logits = nodes.call("top_k_logits", {logits}, {{"k", choice.top_k}}, {"top_k"});
  if (choice.top_p < 1)
    logits = nodes.call("top_p_logits", {logits},
                        {{"p", choice.top_p}, {"temperature", choice.temperature}}, {"top_p"});
  return nodes.call("sample_token", {logits, seeds, end.positions},
                    {{"temperature", choice.temperature}}, {"token"});
}

}  // namespace

Result<NextToken> parse_next_token(std::string_view text) {
  NextToken out;
  if (text == "none") return out;
  out.logits = true;
  if (text == "logits") return out;
  out.chosen = true;
  if (text == "greedy") return out;
  out.temperature = 1;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    if (!read_part(part, out))
      return refuse(fmt::format("`{}` is not a way to choose a token", part));
    begin = end + 1;
  }
  return out;
}

void add_next_token(NodeMaker& nodes, const NextToken& choice, const StepEnd& end) {
  if (!choice.chosen) return nodes.graph.add_output(end.logits);
  const ValueId token = chosen(nodes, choice, end);
  const Context& context = nodes.graph.context();
  if (nodes.failed()) return;
  const DType dtype = context.types[nodes.graph.type(end.ids)].dtype;
  const ValueId id =
      dtype == DType::i64 ? token : nodes.call("cast", {token}, {{"dtype", dtype}}, {"next_id"});
  const ValueId one =
      nodes.call("constant", {}, {{"value", 1.0}, {"dtype", DType::i64}}, {"next_one"});
  const ValueId next = nodes.call("add", {end.positions, one}, {}, {"next_position"});
  nodes.graph.add_output(token);
  nodes.graph.add_write(end.ids, id);
  nodes.graph.add_write(end.positions, next);
}

}  // namespace pw
