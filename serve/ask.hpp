// Requests and answers of the page, as plain data; JSON conversion is in ask_json.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/share.hpp"

namespace pw::cli {

/// One request. `share` is the page's content; the graph's text follows the JSON separately.
struct Ask {
  enum class Kind : std::uint8_t {
    run,    ///< check the rules, and draw their effect on the graph
    open,   ///< identify and read a dropped file
    share,  ///< write a share file
  } kind = Kind::run;
  Share share;
  std::string picture;  ///< for run: the picture that the page shows, as PageAnswer::picture
  std::string file;     ///< for open: its name
};
/// Fails with PW1603 if the JSON is not a valid request.
Result<Ask> ask_from_json(std::string_view json);

/// A diagnostic for the page. Lines and columns count from 0, columns in UTF-16 units.
struct PageProblem {
  std::string severity, code, message, help;
  std::string where;  ///< "rules", with a place; else "graph" or "run"
  std::string place;  ///< for graph and run: "model.txt:12:3"; may be empty
  std::uint32_t line = 0, column = 0, end_line = 0, end_column = 0;
  std::vector<std::string> related;  ///< "rules:4:3: it is bound here"
};

struct PageAnswer {
  std::vector<PageProblem> problems;
  struct Strategy {
    std::string name, kind;  ///< "pipeline", "pass", "rule"
  };
  std::vector<Strategy> strategies;  ///< items that can be run
  std::string ran;                   ///< the one that was run; empty: none
  std::vector<std::string> log;      ///< messages of the import and the run
  std::string picture;               ///< identifies the picture; empty: none was drawn
  std::string opened;                ///< for open: "share", "rules", "graph"; empty: rejected
  std::optional<Share> share;        ///< for open
  std::string document;              ///< for share: the file
};
[[nodiscard]] std::string answer_to_json(const PageAnswer& answer);
/// Returns an answer that consists of an error only.
[[nodiscard]] std::string problem_to_json(std::string_view code, const std::string& message,
                                          const std::string& help);
/// Returns settings for the page's script: regular expressions of the language's words, and limits.
/// Safe inside a <script> element.
[[nodiscard]] std::string page_settings_json();

}  // namespace pw::cli
