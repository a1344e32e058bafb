#include "viz/label.hpp"

#include <algorithm>

#include "base/printable.hpp"
#include "viz/union.hpp"

namespace pw::viz {
namespace {

constexpr std::size_t kMostUsers = 12;
constexpr std::size_t kMostTooltipBytes = 6000;

std::size_t byte_of(std::string_view text, std::size_t character) {
  std::size_t at = 0;
  for (; at < text.size(); ++at)
    if (!continues_character(text[at]) && character-- == 0) return at;
  return at;
}

bool is_weight_or_literal(const Graph& graph, ValueId v) {
  if (!v.valid()) return false;
  return graph.is_input(v) ? graph.input_kind(v) != InputKind::input
                           : is_inlined(graph, graph.producer(v));
}

std::string typed(const Graph& graph, ValueId v) {
  return std::string(graph.value_name(v)) + ": " + graph.context().types.print(graph.type(v));
}

void append_lines(std::string& out, std::string_view title, const std::vector<std::string>& items) {
  if (items.empty()) return;
  out += "\n" + std::string(title);
  for (std::size_t i = 0; i < items.size() && i < kMostUsers; ++i)
    out += (i == 0 ? " " : ", ") + items[i];
  if (items.size() > kMostUsers)
    out += " and " + std::to_string(items.size() - kMostUsers) + " more";
}

}  // namespace

std::string clean(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character c = first_character(text);
    const std::string_view bytes = text.substr(0, std::max<std::size_t>(c.length, 1));
    if (harmless(c) || bytes == "\n")
      out += bytes;
    else
      out += c.length == 1 && c.code < 0x20 ? ' ' : '?';
    text.remove_prefix(bytes.size());
  }
  return out;
}

std::string shorten(std::string_view text, std::size_t width) {
  const std::size_t length = count_characters(text);
  if (length <= width) return std::string(text);
  const std::size_t head = width * 2 / 3, tail = width - head - 1;
  return std::string(text.substr(0, byte_of(text, head))) + "…" +
         std::string(text.substr(byte_of(text, length - tail)));
}

std::string operand_text(const Graph& graph, ValueId v) {
  if (!v.valid()) return "none";
  if (graph.is_input(v) || !is_inlined(graph, graph.producer(v)))
    return std::string(graph.value_name(v));
  const Attribute* value = graph.attribute(graph.producer(v), "value");
  return value == nullptr ? std::string(graph.value_name(v))
                          : graph.context().attributes.print(*value);
}

std::vector<std::string> node_lines(const Graph& graph, NodeId n) {
  const Context& context = graph.context();
  std::vector<std::string> lines;
  lines.push_back(shorten(clean(graph.op_of(n).name)));
  const std::string attributes = context.attributes.print(graph.attributes(n));
  if (!attributes.empty()) lines.push_back(shorten(clean(attributes)));
  for (std::size_t r = 0; r < graph.result_count(n); ++r)
    lines.push_back(shorten(clean(typed(graph, graph.result(n, r)))));
  for (const ValueId v : graph.operands(n)) {
    if (!is_weight_or_literal(graph, v)) continue;
    const std::string text = graph.is_input(v) ? typed(graph, v) : operand_text(graph, v);
    lines.push_back("· " + shorten(clean(text), kLineWidth - 2));
  }
  return lines;
}

std::string node_tooltip(const Graph& graph, NodeId n) {
  const Context& context = graph.context();
  std::string out;
  for (std::size_t r = 0; r < graph.result_count(n); ++r)
    out += (r == 0 ? "" : ", ") + typed(graph, graph.result(n, r));
  out += (graph.result_count(n) == 0 ? "" : " = ") + graph.op_of(n).name + "(";
  for (std::size_t i = 0; i < graph.operand_count(n); ++i)
    out += (i == 0 ? "" : ", ") + operand_text(graph, graph.operand(n, i));
  out += ")" + context.attributes.print(graph.attributes(n));
  std::vector<std::string> users;
  bool returned = false;
  for (std::size_t r = 0; r < graph.result_count(n); ++r) {
    returned = returned || graph.output_count(graph.result(n, r)) > 0;
    for (const NodeId user : graph.users(graph.result(n, r)))
      users.emplace_back(graph.node_name(user));
  }
  append_lines(out, "used by", users);
  if (returned) out += "\nreturned";
  if (!graph.group(n).empty()) out += "\ngroup " + std::string(graph.group(n));
  if (!graph.source(n).empty()) out += "\nsource " + std::string(graph.source(n));
  out = clean(out);
  if (out.size() > kMostTooltipBytes)
    out = clean(out.substr(0, kMostTooltipBytes)) + "… (" +
          std::to_string(out.size() - kMostTooltipBytes) + " more bytes)";
  return out;
}

}  // namespace pw::viz
