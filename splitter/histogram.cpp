#include "splitter/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/parse_number.hpp"
#include "base/trim.hpp"
#include "base/try.hpp"
#include "graph/text/scan_json.hpp"
#include "splitter/sizes.hpp"

namespace pw {
namespace {

constexpr double kMostSteps = static_cast<double>(std::int64_t{1} << 40);  // of one token count
constexpr double kMostSeconds = 1e6;
constexpr std::string_view kTokensColumn = "Unpadded Tokens", kCountColumn = "Count";

std::vector<std::string_view> cut(std::string_view text, std::string_view at) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find_first_of(at);
    parts.push_back(trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// Pairs of a token count and a number, added up or, for times, each once.
class Pairs {
 public:
  Pairs(std::string file, bool times) : file_(std::move(file)), times_(times) {}

  void add(double tokens, double value, const std::string& place) {
    if (!(tokens >= 1 && tokens <= static_cast<double>(kLargestSize)) ||
        tokens != std::floor(tokens))
      return fail_at(place, "the number of tokens is not an integer from 1 to 2^24");
    if (times_ && !(value >= 0 && value <= kMostSeconds))
      return fail_at(place, "the time is not between 0 and a million seconds");
    if (!times_ && (!(value >= 0 && value <= kMostSteps) || value != std::floor(value)))
      return fail_at(place, "the count is not an integer from 0 to 2^40");
    const auto [at, fresh] = found_.try_emplace(static_cast<std::int64_t>(tokens), value);
    if (fresh) return;
    if (times_) return fail_at(place, fmt::format("duplicate time for {} tokens", tokens));
    at->second = std::min(at->second + value, kMostSteps);
  }
  void fail_at(const std::string& place, std::string message) {
    if (errors_.size() < 20)
      errors_.push_back(error_in(file_ + place, "PW0731", std::move(message), help()));
  }
  Result<std::map<std::int64_t, double>> done() {
    if (!times_) std::erase_if(found_, [](const auto& pair) { return pair.second == 0; });
    if (errors_.empty() && found_.empty())
      fail_at("", times_ ? "it has no times" : "it has no steps");
    if (!errors_.empty()) return tl::unexpected(std::move(errors_));
    return std::move(found_);
  }
  [[nodiscard]] std::string help() const {
    return times_ ? "write a token count and seconds on each line: `16 0.0021`"
                  : "write a token count and a number of steps on each line: `16 120`";
  }

 private:
  std::string file_;
  bool times_;
  std::map<std::int64_t, double> found_;
  Diagnostics errors_;
};

std::string at_line(std::size_t line) { return fmt::format(":{}", line); }

void read_lines(std::string_view text, Pairs& pairs, bool count_may_lack) {
  std::size_t number_of_line = 0;
  bool first = true;
  for (std::string_view line : cut(text, "\n")) {
    ++number_of_line;
    if (line.empty() || line.front() == '#') continue;
    std::vector<std::string_view> cells = cut(line, ",; \t");
    std::erase_if(cells, [](std::string_view cell) { return cell.empty(); });
    const bool heading = std::exchange(first, false) &&
                         std::none_of(cells.begin(), cells.end(), [](std::string_view cell) {
                           return parse_number<double>(cell);
                         });
    if (heading) continue;
    const auto tokens = cells.empty() ? std::nullopt : parse_number<double>(cells[0]);
    const auto value = cells.size() > 1                      ? parse_number<double>(cells[1])
                       : count_may_lack && cells.size() == 1 ? std::optional(1.0)
                                                             : std::nullopt;
    if (!tokens || !value || cells.size() > 2)
      pairs.fail_at(at_line(number_of_line), "the line does not consist of two numbers");
    else
      pairs.add(*tokens, *value, at_line(number_of_line));
  }
}

/// Rows between bars, wherever a log's prefix ends.
void read_table(std::string_view text, Pairs& pairs) {
  std::size_t number_of_line = 0, tokens_at = 0, count_at = 0, columns = 0;
  for (std::string_view line : cut(text, "\n")) {
    ++number_of_line;
    const std::size_t bar = line.find('|');
    if (bar == std::string_view::npos) continue;
    line.remove_prefix(bar);
    const std::vector<std::string_view> cells = cut(line, "|");
    if (line.find(kTokensColumn) != std::string_view::npos) {
      columns = cells.size();
      const auto column = [&](std::string_view heading) {
        return static_cast<std::size_t>(std::find(cells.begin(), cells.end(), heading) -
                                        cells.begin());
      };
      tokens_at = column(kTokensColumn);
      count_at = column(kCountColumn);
      if (tokens_at == columns || count_at == columns) {
        columns = 0;
        pairs.fail_at(at_line(number_of_line),
                      fmt::format("the table has no column `{}`",
                                  tokens_at == cells.size() ? kTokensColumn : kCountColumn));
      }
      continue;
    }
    if (columns == 0 || line.find_first_not_of("|-+: \t\r") == std::string_view::npos) continue;
    const auto tokens =
        cells.size() == columns ? parse_number<double>(cells[tokens_at]) : std::nullopt;
    const auto count =
        cells.size() == columns ? parse_number<double>(cells[count_at]) : std::nullopt;
    if (!tokens || !count)
      pairs.fail_at(at_line(number_of_line), "the row does not match the table's columns");
    else
      pairs.add(*tokens, *count, at_line(number_of_line));
  }
}

std::optional<double> number_of(const json::Tree& tree) {
  if (tree.kind == json::Tree::Kind::integer) return static_cast<double>(tree.integer);
  if (tree.kind == json::Tree::Kind::real) return tree.real;
  return std::nullopt;
}

Status read_json(std::string_view text, const std::string& file, Pairs& pairs) {
  const auto not_two = [&](const std::string& place) {
    pairs.fail_at(place, "expected two numbers");
  };
  json::Sink sink;
  sink.streamed = {"steps"};
  sink.element = [&](std::string_view, std::size_t i, const json::Tree& tree) {
    const std::string place = fmt::format(" at /steps/{}", i);
    const bool two = tree.kind == json::Tree::Kind::array && tree.items.size() == 2;
    const auto tokens = two ? number_of(tree.items[0]) : std::nullopt;
    const auto value = two ? number_of(tree.items[1]) : std::nullopt;
    if (tokens && value)
      pairs.add(*tokens, *value, place);
    else
      not_two(place);
  };
  sink.member = [&](std::string_view key, const json::Tree& tree) {
    const std::string place = " at " + json::step(key);
    const auto tokens = parse_number<double>(key), value = number_of(tree);
    if (tokens && value)
      pairs.add(*tokens, *value, place);
    else
      not_two(place);
  };
  return json::scan(text, file, sink);
}

Result<std::map<std::int64_t, double>> read_pairs(std::string_view text, const std::string& file,
                                                  bool times) {
  Pairs pairs(file, times);
  const std::string_view body = trimmed(text);
  if (!body.empty() && body.front() == '{') {
    PW_TRY(read_json(text, file, pairs));
  } else if (!times && text.find(kTokensColumn) != std::string_view::npos) {
    read_table(text, pairs);
  } else {
    read_lines(text, pairs, !times);
  }
  return pairs.done();
}

double bell(double x, double middle, double deviation) {
  const double z = (x - middle) / deviation;
  return std::exp(-z * z / 2) / deviation;
}

}  // namespace

double Histogram::total() const {
  double sum = 0;
  for (const auto& [tokens, count] : steps) sum += static_cast<double>(count);
  return sum;
}

Result<Histogram> read_histogram(std::string_view text, const std::string& file) {
  auto pairs = PW_TRY(read_pairs(text, file, false));
  Histogram out;
  for (const auto& [tokens, count] : pairs)
    out.steps.emplace_back(tokens, static_cast<std::int64_t>(count));
  return out;
}

Result<std::vector<std::pair<std::int64_t, double>>> read_step_times(std::string_view text,
                                                                     const std::string& file) {
  auto pairs = PW_TRY(read_pairs(text, file, true));
  return std::vector<std::pair<std::int64_t, double>>(pairs.begin(), pairs.end());
}

std::optional<Histogram> histogram_named(std::string_view name) {
  constexpr int kMost = 512;
  constexpr double kSteps = 1e6;
  std::vector<double> density;
  for (int t = 1; t <= kMost; ++t) {
    if (name == "lognormal")
      density.push_back(bell(std::log(t), std::log(64.0), 1.0) / t);
    else if (name == "bimodal")
      density.push_back(0.8 * bell(t, 24, 10) + 0.2 * bell(t, 384, 48));
    else if (name == "uniform")
      density.push_back(1);
    else
      return std::nullopt;
  }
  double sum = 0;
  for (const double d : density) sum += d;
  Histogram out;
  for (int t = 1; t <= kMost; ++t)
    if (const auto n = std::llround(kSteps * density[static_cast<std::size_t>(t - 1)] / sum); n > 0)
      out.steps.emplace_back(t, n);
  return out;
}

}  // namespace pw
