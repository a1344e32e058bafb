// Rows of rules and their verdicts, printed as they are done, so that a long list can be watched.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/io/standard_output.hpp"
#include "base/printable.hpp"
#include "dsl/ruleset.hpp"
#include "pipeline/judge/judge.hpp"

namespace pw::cli {

class VerdictRows {
 public:
  /// `columns`: the first line of CSV.
  VerdictRows(std::string format, std::string_view columns) : format_(std::move(format)) {
    if (format_ == "csv") print_out(std::string(columns) + "\n");
  }
  /// Prints a row; evaluates only the function of the selected format.
  template <class Json, class Csv, class Text>
  void add(RuleVerdict verdict, const Json& json, const Csv& csv, const Text& text) {
    ++counts_[verdict];
    if (format_ == "json")
      print_out((first_ ? "[\n" : ",\n") + printable_json(json()));
    else
      print_out(format_ == "csv" ? csv() : text());
    push_standard_output();
    first_ = false;
  }
  void end() const {
    if (format_ == "json") print_out(first_ ? "[]\n" : "\n]\n");
  }
  [[nodiscard]] const std::map<RuleVerdict, std::size_t>& counts() const { return counts_; }
  /// Returns "12 same_bits, 3 rounds".
  [[nodiscard]] std::string summary() const {
    std::string out;
    for (const auto& [verdict, count] : counts_)
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, name(verdict));
    return out;
  }

 private:
  std::string format_;
  bool first_ = true;
  std::map<RuleVerdict, std::size_t> counts_;
};

/// Returns "proof" or "samples", or nothing for an unknown verdict.
inline std::string_view known_by(const RuleJudgement& judgement) {
  return judgement.verdict == RuleVerdict::unknown ? "" : name(judgement.known);
}

/// Returns the rule's name and its verdict, the same for every command: "r  same bits, known by
/// proof".
inline std::string verdict_line(const RuleJudgement& judgement, std::size_t width) {
  std::string text = fmt::format("{:<{}}  {}", judgement.rule, width, judgement.print());
  if (judgement.verdict <= RuleVerdict::rounds)
    text += fmt::format(", known by {}", known_by(judgement));
  return text;
}

/// Returns the length of the longest name.
inline std::size_t name_width(const RuleSet& rules, const std::vector<RuleId>& ids) {
  std::size_t width = 0;
  for (RuleId id : ids) width = std::max(width, rules.rules[id].name.size());
  return width;
}

}  // namespace pw::cli
