// What the page asks, and what it is answered: plain data. JSON of both is in ask_json.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/share.hpp"

namespace pw::cli {

/// One question. `share` holds what stands in the page; the graph's text travels behind the JSON.
struct Ask {
  enum class Kind : std::uint8_t {
    run,    ///< check the rules, and draw what they do to the graph
    open,   ///< say what a dropped file is, and what is in it
    share,  ///< write a share file
  } kind = Kind::run;
  Share share;
  std::string picture;  ///< of run: the one that the page shows, by PageAnswer::picture
  std::string file;     ///< of open: its name
};
/// PW1603 for what no page of ours sends.
Result<Ask> ask_from_json(std::string_view json);

/// A diagnostic where the page shows it. Lines and columns from 0, columns in units of UTF-16.
struct PageProblem {
  std::string severity, code, message, help;
  std::string where;  ///< "rules", with a place; else "graph" or "run"
  std::string place;  ///< of those: "model.txt:12:3"; may be empty
  std::uint32_t line = 0, column = 0, end_line = 0, end_column = 0;
  std::vector<std::string> related;  ///< "rules:4:3: it is bound here"
};

struct PageAnswer {
  std::vector<PageProblem> problems;
  struct Strategy {
    std::string name, kind;  ///< "pipeline", "pass", "rule"
  };
  std::vector<Strategy> strategies;  ///< what can be run
  std::string ran;                   ///< of these; empty: none
  std::vector<std::string> log;      ///< what the import and the run said
  std::string picture;               ///< what tells pictures apart; empty: none was drawn
  std::string opened;                ///< of open: "share", "rules", "graph"; empty: it was refused
  std::optional<Share> share;        ///< of open
  std::string document;              ///< of share: the file
};
[[nodiscard]] std::string answer_to_json(const PageAnswer& answer);
/// The answer where there is none but a mistake.
[[nodiscard]] std::string problem_to_json(std::string_view code, const std::string& message,
                                          const std::string& help);
/// What the page's script is told: patterns of the language's words, and limits. It may stand in a
/// <script> element.
[[nodiscard]] std::string page_settings_json();

}  // namespace pw::cli
