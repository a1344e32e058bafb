#include "pipeline/report/dispatch_table.hpp"

#include <fmt/format.h>

#include "base/parse_number.hpp"
#include "base/try.hpp"
#include "pipeline/load.hpp"

namespace pw {
namespace {

constexpr std::int64_t kMostSequences = 1 << 20;

/// Parses `64x1,5`: 64 sequences of one new token and one of five; empty for any other text.
std::vector<std::int64_t> sequences(const std::string& text) {
  std::vector<std::int64_t> out;
  const auto number = [](std::string_view word) {
    const std::int64_t value = parse_number<std::int64_t>(word).value_or(0);
    return value >= 1 && value <= kLargestSize ? value : 0;
  };
  std::string_view rest = text;
  while (true) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    const std::size_t times = item.find('x');
    const bool many = times != std::string_view::npos;
    const std::int64_t count = many ? number(item.substr(0, times)) : 1;
    const std::int64_t tokens = number(many ? item.substr(times + 1) : item);
    if (count == 0 || tokens == 0 || static_cast<std::int64_t>(out.size()) + count > kMostSequences)
      return {};
    out.insert(out.end(), static_cast<std::size_t>(count), tokens);
    if (comma == std::string_view::npos) return out;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace

Result<Table> dispatch_table(const Plan& plan, const std::vector<std::string>& steps,
                             std::int64_t loras) {
  PW_TRY(check_number("the number of adapters", loras, 0, 65536));
  const Dispatcher dispatcher(plan);
  Table table({"step", "tokens", "runs as", "mode", "key", "padding", "compiled for", "why"});
  for (const std::string& text : steps) {
    const std::vector<std::int64_t> tokens = sequences(text);
    if (tokens.empty())
      return fail(error_in("step", "PW1402", "`" + text + "` is not a step",
                           "write the new tokens of its sequences: 300, or 1,1,5, or 64x1,5"));
    const StepShape step = shape_of(tokens, loras);
    const Dispatch found = dispatcher.dispatch(step);
    const Range range = compiled_for(plan, found.key.tokens);
    const std::string compiled = plan.tokens.empty() ? "static"
                                 : range.begin == range.end
                                     ? fmt::format("exactly {}", range.begin)
                                     : fmt::format("{}..{}", range.begin, range.end);
    table.add({text, step.tokens, step.tokens + found.padding, std::string(name(found.mode)),
               found.mode == DispatchMode::none ? "" : print(found.key), found.padding, compiled,
               dispatcher.explain(step, found)});
  }
  return table;
}

}  // namespace pw
