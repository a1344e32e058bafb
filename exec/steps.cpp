#include "exec/steps.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/try.hpp"

namespace pw {
namespace {

constexpr std::int64_t kMostTokens = 1 << 24, kMostSequences = 1 << 20;

class StepsReader {
 public:
  StepsReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Result<std::vector<PlannedStep>> run() {
    while (!text_.empty()) {
      const std::size_t end = text_.find('\n');
      line_ = text_.substr(0, end);
      text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
      ++number_;
      PW_TRY(line());
    }
    if (steps_.empty())
      return fail(
          error_in(file_, "PW1211", "the file has no steps",
                   "write a step per line: `0:5 1:3` gives 5 tokens to sequence 0 and 3 to 1"));
    return std::move(steps_);
  }

 private:
  tl::unexpected<Diagnostics> refuse(std::size_t column, const std::string& why) const {
    return fail(error_in(
        fmt::format("{}:{}:{}", file_, number_, column + 1), "PW1211", why,
        "write a step per line: `0:5 1:3 2.` gives 5 tokens to sequence 0 and 3 to 1, and ends 2"));
  }

  Status line() {
    std::string_view rest = line_.substr(0, line_.find('#'));
    PlannedStep planned;
    std::set<std::int64_t> seen;
    constexpr std::string_view kSpace = " \t\r";
    for (std::size_t at = 0; (at = rest.find_first_not_of(kSpace, at)) != std::string_view::npos;) {
      const std::size_t end = std::min(rest.find_first_of(kSpace, at), rest.size());
      if (auto done = word(at, rest.substr(at, end - at), planned, seen); !done) return done;
      at = end;
    }
    if (planned.step.sequences.empty() && planned.ended.empty()) return {};
    if (planned.step.sequences.empty()) return refuse(0, "a step needs at least one sequence");
    for (const Sequence& s : planned.step.sequences) past_[s.id] += s.new_tokens;
    for (std::int64_t id : planned.ended) past_.erase(id);
    steps_.push_back(std::move(planned));
    return {};
  }

  Status word(std::size_t column, std::string_view word, PlannedStep& planned,
              std::set<std::int64_t>& seen) {
    const auto number = [](std::string_view& from, std::int64_t& out) {
      const auto [end, error] = std::from_chars(from.data(), from.data() + from.size(), out);
      if (error != std::errc() || out < 0) return false;
      from.remove_prefix(static_cast<std::size_t>(end - from.data()));
      return true;
    };
    const std::string whole(word.substr(0, 40));
    Sequence s;
    if (!number(word, s.id) || s.id >= kMostSequences)
      return refuse(column, fmt::format("`{}` does not begin with the number of a sequence below "
                                        "{}",
                                        whole, kMostSequences));
    if (word == ".") {
      planned.ended.push_back(s.id);
      return {};
    }
    const bool colon = !word.empty() && word.front() == ':';
    if (colon) word.remove_prefix(1);
    if (!colon || !number(word, s.new_tokens) || !word.empty() || s.new_tokens < 1)
      return refuse(column, fmt::format("`{}` is neither ID:NEW nor ID.", whole));
    if (!seen.insert(s.id).second)
      return refuse(column, fmt::format("sequence {} occurs twice in this step", s.id));
    const auto past = past_.find(s.id);
    s.past = past == past_.end() ? 0 : past->second;
    if (s.new_tokens > kMostTokens - s.past)
      return refuse(column, fmt::format("sequence {} has more than {} tokens", s.id, kMostTokens));
    planned.step.sequences.push_back(s);
    return {};
  }

  std::string_view text_;
  const std::string& file_;
  std::string_view line_;
  std::size_t number_ = 0;
  std::map<std::int64_t, std::int64_t> past_;
  std::vector<PlannedStep> steps_;
};

}  // namespace

Result<std::vector<PlannedStep>> parse_steps(std::string_view text, const std::string& file) {
  return StepsReader(text, file).run();
}

std::optional<std::int64_t> rows_of_input(const Graph& graph, ValueId input) {
  if (graph.input_kind(input) != InputKind::input || graph.type(input) == Types::unknown())
    return std::nullopt;
  const Shape& shape = graph.context().types[graph.type(input)].shape;
  return shape.empty() ? std::nullopt : graph.context().dims.value(shape.front());
}

std::vector<std::int64_t> static_rows(const Graph& graph) {
  std::vector<std::int64_t> out;
  if (!graph.facts.tokens().empty()) return out;
  std::map<std::int64_t, std::size_t> times;
  for (ValueId input : graph.inputs())
    if (const auto rows = rows_of_input(graph, input); rows && *rows > 0 && ++times[*rows] == 1)
      out.push_back(*rows);
  std::stable_sort(out.begin(), out.end(),
                   [&](std::int64_t a, std::int64_t b) { return times[a] > times[b]; });
  return out;
}

std::int64_t tokens_of_step(const Graph& graph, const Symbols& symbols) {
  if (const auto count = symbols.find(graph.facts.tokens()); count != symbols.end())
    return count->second;
  const std::vector<std::int64_t> rows = static_rows(graph);
  return rows.empty() ? 1 : rows.front();
}

}  // namespace pw
