#include "pipeline/run/static_rows.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pw {
namespace {

constexpr std::int64_t kManyRows = 4096;  // more than a step of a served model usually has

/// Returns true if an input has one integer for each token, in rows of several, such as token ids
/// i64[2, 12] of a batch.
bool has_number_a_token(const Graph& graph, std::int64_t tokens) {
  return std::any_of(graph.inputs().begin(), graph.inputs().end(), [&](ValueId input) {
    if (!rows_of_input(graph, input)) return false;
    const Type& type = graph.context().types[graph.type(input)];
    std::int64_t count = 1;
    for (const DimId dim : type.shape) count *= graph.context().dims.value(dim).value_or(0);
    return is_integer(type.dtype) && count == tokens;
  });
}

}  // namespace

Status check_static_rows(const Graph& graph, std::int64_t tokens) {
  const std::vector<std::int64_t> rows = static_rows(graph);
  if (rows.empty() || std::find(rows.begin(), rows.end(), tokens) != rows.end() ||
      has_number_a_token(graph, tokens))
    return {};
  return fail(error_in(
      "graph " + graph.name, "PW1404",
      fmt::format("a step has {} tokens, but the graph is static with {} rows", tokens,
                  fmt::join(rows, " or ")),
      fmt::format("use --tokens {}, or {}", rows.front(), symbol_hint(graph, rows.front()))));
}

std::string symbol_hint(const Graph& graph, std::int64_t rows) {
  constexpr std::size_t kNamed = 4;
  std::vector<std::string> dims;
  for (ValueId input : graph.inputs())
    if (rows_of_input(graph, input) == rows && dims.size() < kNamed)
      dims.push_back(fmt::format("{}.0", graph.value_name(input)));
  return fmt::format(
      "make the rows symbolic: `--symbol n={}` for a dump, `symbol n in 1..{} tokens` in a "
      ".pwg",
      dims.empty() ? "INPUT.AXIS" : fmt::format("{}", fmt::join(dims, ",")),
      std::max<std::int64_t>(rows, 1));
}

std::string many_rows_note(const Graph& graph) {
  const std::vector<std::int64_t> rows = static_rows(graph);
  const auto many =
      std::find_if(rows.begin(), rows.end(), [](std::int64_t count) { return count > kManyRows; });
  if (many == rows.end()) return "";
  return fmt::format(
      "note: the graph is static: it has only one size, {} rows, and no capture sizes; {}", *many,
      symbol_hint(graph, *many));
}

}  // namespace pw
