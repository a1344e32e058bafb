#include <algorithm>
#include <array>
#include <optional>

#include "base/characters.hpp"
#include "base/try.hpp"
#include "import/fx/module_path.hpp"
#include "import/fx/text/ast.hpp"

namespace pw::fx {
namespace {

Span at(SourceId source, std::size_t begin, std::size_t end) {
  return {source, static_cast<std::uint32_t>(begin),
          static_cast<std::uint32_t>(std::max(begin + 1, end))};
}

// "# File: model.py:88 in forward, code: …" → "model.py:88"; another comment of FX's own ends it;
// others are ignored.
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

/// Returns true for an ordinary character of a line: neither blank, bracket, quote, comment nor
/// line end.
bool is_ordinary(char c) {
  static constexpr std::array<bool, 256> kOrdinary = [] {
    std::array<bool, 256> out{};
    out.fill(true);
    for (const char other : {' ', '\t', '\n', '\r', '#', '"', '\'', '(', ')', '[', ']', '{', '}'})
      out[static_cast<unsigned char>(other)] = false;
    return out;
  }();
  return kOrdinary[static_cast<unsigned char>(c)];
}

class Cutter {
 public:
  Cutter(std::string_view text, SourceId source) : text_(text), source_(source) {}

  Result<std::vector<Line>> cut() {
    while (at_ < text_.size()) {
      PW_TRY(next());
    }
    if (!open_.empty())
      return fail(at(source_, open_.back(), 0), "PW0502",
                  std::string("`") + text_[open_.back()] + "` is not closed");
    finish(text_.size());
    return std::move(lines_);
  }

 private:
  Status next() {
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
    } else if (c == ' ' || c == '\t') {
      ++at_;
    } else {
      start();
      do ++at_;
      while (at_ < text_.size() && is_ordinary(text_[at_]));
    }
    return {};
  }

  void start() {
    if (!begin_) begin_ = at_;
  }
  void finish(std::size_t end) {
    if (!begin_) return;
    while (end > *begin_ &&
           (text_[end - 1] == ' ' || text_[end - 1] == '\t' || text_[end - 1] == '\r'))
      --end;
    std::size_t line = text_.rfind('\n', *begin_);
    line = line == std::string_view::npos ? 0 : line + 1;
    lines_.push_back({static_cast<std::uint32_t>(*begin_), static_cast<std::uint32_t>(end),
                      static_cast<std::uint32_t>(*begin_ - line), place_, group_});
    begin_.reset();
  }
  void comment() {
    std::size_t end = std::min(text_.find('\n', at_), text_.size());
    std::string_view text = text_.substr(at_, end - at_);
    constexpr std::string_view kStack = "nn_module_stack: {", kNext = "} # ";
    std::string group;
    const std::size_t stack = text.find(kStack), close = text.find(kNext);
    if (stack != std::string_view::npos && close != std::string_view::npos && stack < close) {
      group = group_of_printed_stack(text.substr(stack + kStack.size(), close - stack));
      text.remove_prefix(close + 1);
    }
    std::optional<std::string> place = source_of(text);
    if (open_.empty()) finish(at_);
    if (place) {
      place_ = std::move(*place);
      group_ = std::move(group);
    }
    at_ = end;
  }
  Status string(char quote) {
    std::size_t begin = at_++;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\n') break;
      at_ += text_[at_] == '\\' ? 2 : 1;
    }
    if (at_ >= text_.size() || text_[at_] != quote)
      return fail(at(source_, begin, 0), "PW0502", "this string is not closed");
    ++at_;
    return {};
  }
  Status close(char c) {
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
    return {};
  }

  std::string_view text_;
  SourceId source_;
  std::size_t at_ = 0;
  std::optional<std::size_t> begin_;
  std::vector<std::size_t> open_;
  std::string place_, group_;
  std::vector<Line> lines_;
};

std::string_view first_word(std::string_view line) {
  std::size_t n = 0;
  while (n < line.size() && is_in_name(line[n])) ++n;
  return line.substr(0, n);
}

// A class with its `forward`. Nested classes are submodules; so are classes next to the first, so
// that a call may find them.
class Reader {
 public:
  Reader(std::string_view text, SourceId source, bool by_grammar)
      : text_(text), source_(source), by_grammar_(by_grammar) {}

  Result<Module> read(std::vector<Line> lines) {
    for (Line& line : lines) {
      if (errors_.size() >= kMaxDiagnostics) break;
      take(line);
    }
    if (!errors_.empty()) return tl::unexpected<Diagnostics>(std::move(errors_));
    while (open_.size() > 1) leave();
    if (open_.empty() || !open_[0].read)
      return fail(at(source_, 0, 0), "PW0501", "there is no `def forward(…)`",
                  "FX dumps are written by print_readable()");
    return std::move(open_[0].module);
  }

 private:
  struct Open {
    Module module;
    std::uint32_t indent = 0;
    bool read = false, returned = false;  // its `forward`; and the `return` of it
  };

  void take(Line& line) {
    std::string_view text = text_.substr(line.begin, line.end - line.begin);
    std::string_view word = first_word(text);
    if (word == "def") return header(line);
    if (word == "class") return enter(line, text);
    if (skipped_ || text.starts_with("@")) return;
    if (!open_.empty() && open_.back().read) return body(line);
    if (word == "import" || word == "from") return;
    error(line, "PW0501", "expected `class …:` or `def forward(…):`");
  }
  void enter(const Line& line, std::string_view text) {
    while (open_.size() > 1 && line.indent <= open_.back().indent) leave();
    if (open_.size() == kMaxNesting)
      return error(line, "PW0503", "classes are nested deeper than " + std::to_string(kMaxNesting));
    text.remove_prefix(std::min(text.find_first_not_of(' ', 5), text.size()));
    Open next;
    next.module.name = std::string(text.substr(0, text.find_first_of("(: ")));
    next.indent = line.indent;
    open_.push_back(std::move(next));
    skipped_ = false;
  }
  // Closes the innermost class except the first, which receives the classes next to it.
  void leave() {
    Open last = std::move(open_.back());
    open_.pop_back();
    if (last.read) open_.back().module.children.push_back(std::move(last.module));
  }
  void header(const Line& line) {
    // Skips `__init__` and other functions of a written-out module.
    std::string_view name = text_.substr(line.begin + 3, line.end - line.begin - 3);
    name.remove_prefix(std::min(name.find_first_not_of(" \t"), name.size()));
    skipped_ = !open_.empty() && first_word(name) != "forward";
    if (skipped_) return;
    while (open_.size() > 1 && line.indent <= open_.back().indent && open_.back().read) leave();
    if (open_.empty()) open_.emplace_back();
    if (open_.back().read)
      return error(line, "PW0504", "duplicate `forward` in one module",
                   "pass the text of one graph");
    open_.back().read = true;
    open_.back().module.forward.span = at(source_, line.begin, line.end);
    auto parameters = parse_header(text_, source_, line);
    if (parameters) {
      open_.back().module.forward.parameters = std::move(*parameters);
    } else {
      add(std::move(parameters.error()));
    }
  }
  void body(Line& line) {
    Statement plain;
    if (!by_grammar_ && parse_plain_line(text_, source_, line, plain)) {
      plain.source = std::move(line.source);
      plain.group = std::move(line.group);
      body(line, std::move(plain));
      return;
    }
    auto statements = parse_line(text_, source_, line);
    if (!statements) return add(std::move(statements.error()));
    for (Statement& s : *statements) {
      s.source = line.source;
      s.group = line.group;
      if (!body(line, std::move(s))) return;
    }
  }
  bool body(const Line& line, Statement s) {
    if (open_.back().returned) return error(line, "PW0504", "a statement after `return`"), false;
    open_.back().returned = s.kind == Statement::Kind::return_;
    open_.back().module.forward.statements.push_back(std::move(s));
    return true;
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
  bool by_grammar_;
  std::vector<Open> open_;
  Diagnostics errors_;
  bool skipped_ = false;  // inside a function that is not `forward`
};

}  // namespace

bool is_word(std::string_view text) { return is_name(text); }

Result<std::vector<Line>> cut_lines(std::string_view text, SourceId source) {
  if (text.size() > kMaxText)
    return fail(at(source, 0, 0), "PW0503", "the dump is larger than 64 MiB");
  return Cutter(text, source).cut();
}

Result<Module> parse(std::string_view text, SourceId source, bool by_grammar) {
  std::vector<Line> lines = PW_TRY(cut_lines(text, source));
  return Reader(text, source, by_grammar).read(std::move(lines));
}

}  // namespace pw::fx
