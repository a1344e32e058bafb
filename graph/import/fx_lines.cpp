// Exports cut_lines and parse: the layer of FX text above single statements.
#include <algorithm>
#include <optional>
#include <variant>

#include "graph/import/fx_ast.hpp"

namespace pw::fx {
namespace {

Span at(SourceId source, std::size_t begin, std::size_t end) {
  return {source, static_cast<std::uint32_t>(begin),
          static_cast<std::uint32_t>(std::max(begin + 1, end))};
}

// "# File: model.py:88 in forward, code: …" → "model.py:88"; another comment of FX's own ends it;
// others say nothing.
std::optional<std::string> source_of(std::string_view comment) {
  comment.remove_prefix(std::min(comment.find_first_not_of("# \t"), comment.size()));
  if (comment.starts_with("No stacktrace")) return std::string();
  constexpr std::string_view kFile = "File: ";
  if (!comment.starts_with(kFile)) return std::nullopt;
  comment.remove_prefix(kFile.size());
  std::size_t end = std::min(comment.find(" in "), comment.find(", code:"));
  std::string_view place = comment.substr(0, end);
  while (!place.empty() && (place.back() == ' ' || place.back() == '\r')) place.remove_suffix(1);
  return std::string(place.substr(0, 1024));
}

class Cutter {
 public:
  Cutter(std::string_view text, SourceId source) : text_(text), source_(source) {}

  Result<std::vector<Line>> cut() {
    while (at_ < text_.size()) {
      if (auto step = next(); !step) return forward(step);
    }
    if (!open_.empty())
      return fail(at(source_, open_.back(), 0), "PW0502",
                  std::string("`") + text_[open_.back()] + "` is never closed");
    finish(text_.size());
    return std::move(lines_);
  }

 private:
  Result<std::monostate> next() {
    char c = text_[at_];
    if (c == '\n' || c == '\r') {
      if (open_.empty()) finish(at_);
      ++at_;
    } else if (c == '#') {
      comment();
    } else if (c == '"' || c == '\'') {
      start();
      return string(c);
    } else if (c == '(' || c == '[' || c == '{') {
      start();
      if (open_.size() == kMaxNesting)
        return fail(at(source_, at_, 0), "PW0503",
                    "brackets are nested deeper than " + std::to_string(kMaxNesting));
      open_.push_back(at_++);
    } else if (c == ')' || c == ']' || c == '}') {
      return close(c);
    } else {
      if (c != ' ' && c != '\t') start();
      ++at_;
    }
    return std::monostate();
  }

  void start() {
    if (!begin_) begin_ = at_;
  }
  void finish(std::size_t end) {
    if (!begin_) return;
    while (end > *begin_ &&
           (text_[end - 1] == ' ' || text_[end - 1] == '\t' || text_[end - 1] == '\r'))
      --end;
    lines_.push_back(
        {static_cast<std::uint32_t>(*begin_), static_cast<std::uint32_t>(end), place_});
    begin_.reset();
  }
  void comment() {
    std::size_t end = std::min(text_.find('\n', at_), text_.size());
    std::optional<std::string> place = source_of(text_.substr(at_, end - at_));
    if (open_.empty()) finish(at_);
    if (place) place_ = std::move(*place);
    at_ = end;
  }
  Result<std::monostate> string(char quote) {
    std::size_t begin = at_++;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\n') break;
      at_ += text_[at_] == '\\' ? 2 : 1;
    }
    if (at_ >= text_.size() || text_[at_] != quote)
      return fail(at(source_, begin, 0), "PW0502", "this string is never closed");
    ++at_;
    return std::monostate();
  }
  Result<std::monostate> close(char c) {
    char opening = c == ')' ? '(' : c == ']' ? '[' : '{';
    if (open_.empty())
      return fail(at(source_, at_, 0), "PW0502", std::string("`") + c + "` closes nothing");
    if (text_[open_.back()] != opening) {
      Diagnostic d =
          error_at(at(source_, at_, 0), "PW0502",
                   std::string("`") + c + "` does not close `" + text_[open_.back()] + "`");
      d.secondary.push_back({at(source_, open_.back(), 0), "opened here"});
      return fail(std::move(d));
    }
    open_.pop_back();
    ++at_;
    return std::monostate();
  }

  std::string_view text_;
  SourceId source_;
  std::size_t at_ = 0;
  std::optional<std::size_t> begin_;
  std::vector<std::size_t> open_;
  std::string place_;
  std::vector<Line> lines_;
};

bool word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string_view first_word(std::string_view line) {
  std::size_t n = 0;
  while (n < line.size() && word_char(line[n])) ++n;
  return line.substr(0, n);
}

// What may stand above the class: imports, decorators, and `bf16: type`.
bool is_preamble(std::string_view line) {
  std::string_view word = first_word(line);
  if (word == "import" || word == "from" || line.starts_with("@")) return true;
  std::string_view rest = line.substr(word.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  if (word.empty() || !rest.starts_with(":")) return false;
  return std::all_of(rest.begin() + 1, rest.end(),
                     [](char c) { return word_char(c) || c == ' ' || c == '.'; });
}

class Reader {
 public:
  Reader(std::string_view text, SourceId source) : text_(text), source_(source) {}

  Result<Function> read(const std::vector<Line>& lines) {
    for (const Line& line : lines) {
      if (errors_.size() >= kMaxDiagnostics || finished_) break;
      take(line);
    }
    if (!errors_.empty()) return tl::unexpected<Diagnostics>(std::move(errors_));
    if (!inside_)
      return fail(at(source_, 0, 0), "PW0501", "there is no `def forward(…)`",
                  "an FX dump is what print_readable() writes");
    return std::move(function_);
  }

 private:
  void take(const Line& line) {
    std::string_view text = text_.substr(line.begin, line.end - line.begin);
    std::string_view word = first_word(text);
    if (word == "def") return header(line);
    if (word == "class") {
      if (inside_)
        error(line, "PW0504", "a second class: a dump of several modules is not read",
              "give the text of one module");
      finished_ = inside_;
      return;
    }
    if (inside_) return body(line);
    if (is_preamble(text)) return;
    bool tabular = text.starts_with("graph():") || text.starts_with("%");
    error(line, "PW0501", "expected `class …:` or `def forward(…):`",
          tabular ? "this looks like str(graph); write the dump with print_readable()" : "");
    finished_ = true;
  }
  void header(const Line& line) {
    if (inside_) {
      error(line, "PW0504", "a second function: a dump of several modules is not read",
            "give the text of one module");
      finished_ = true;
      return;
    }
    inside_ = true;
    function_.span = at(source_, line.begin, line.end);
    auto parameters = parse_header(text_, source_, line);
    if (parameters) {
      function_.parameters = std::move(*parameters);
    } else {
      add(std::move(parameters.error()));
    }
  }
  void body(const Line& line) {
    auto statements = parse_line(text_, source_, line);
    if (!statements) return add(std::move(statements.error()));
    for (Statement& s : *statements) {
      if (returned_) return error(line, "PW0504", "a statement after `return`");
      returned_ = s.kind == Statement::Kind::return_;
      s.source = line.source;
      function_.statements.push_back(std::move(s));
    }
  }
  void add(Diagnostics diagnostics) {
    std::move(diagnostics.begin(), diagnostics.end(), std::back_inserter(errors_));
  }
  void error(const Line& line, std::string_view code, std::string message, std::string help = {}) {
    errors_.push_back(
        error_at(at(source_, line.begin, line.end), code, std::move(message), std::move(help)));
  }

  std::string_view text_;
  SourceId source_;
  Function function_;
  Diagnostics errors_;
  bool inside_ = false, returned_ = false, finished_ = false;
};

}  // namespace

bool is_word(std::string_view text) {
  return !text.empty() && !(text[0] >= '0' && text[0] <= '9') &&
         std::all_of(text.begin(), text.end(), word_char);
}

Result<std::vector<Line>> cut_lines(std::string_view text, SourceId source) {
  if (text.size() > kMaxText)
    return fail(at(source, 0, 0), "PW0503", "the dump is larger than 64 MiB");
  return Cutter(text, source).cut();
}

Result<Function> parse(std::string_view text, SourceId source) {
  Result<std::vector<Line>> lines = cut_lines(text, source);
  if (!lines) return forward(lines);
  return Reader(text, source).read(*lines);
}

}  // namespace pw::fx
