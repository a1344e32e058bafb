#include "lsp/actions.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "dsl/syntax/suggest.hpp"

namespace pw::cli {
namespace {

class Offering {
 public:
  Offering(const DocumentView& view, std::vector<OfferedAction>& out)
      : view_(view), text_(*view.text), out_(out) {}

  /// Returns the word that the message reports, within the range of the diagnostic.
  void other_name(const FoundDiagnostic& d) {
    const std::string name = suggested_name(d.help);
    if (name.empty()) return;
    const std::vector<std::string> wrong = ticked(d.message);
    for (const Token& t : text_.mentions.tokens) {
      if (t.begin < d.begin || t.end() > d.end || t.kind == Tok::end) continue;
      const bool quoted = t.kind == Tok::string || t.kind == Tok::quoted;
      const std::string spelt = quoted ? unescape(text_.text_of(t.begin, t.end()))
                                       : std::string(text_.text_of(t.begin, t.end()));
      if (std::find(wrong.begin(), wrong.end(), spelt) == wrong.end()) continue;
      const std::string written = t.kind == Tok::string ? "\"" + name + "\"" : name;
      offer(fmt::format("Replace by `{}`", name), d, t.begin, t.end(), written);
      return;
    }
    std::uint32_t end = d.end;
    for (const std::string& word : wrong)  // a path is several tokens, and the place a whole call
      if (text_.text_of(d.begin, d.end).starts_with(word))
        end = d.begin + static_cast<std::uint32_t>(word.size());
    offer(fmt::format("Replace by `{}`", name), d, d.begin, end, name);
  }

  /// Adds `rule a over b` for each alternative in the help.
  void precedence(const FoundDiagnostic& d) {
    for (const std::string& code : ticked(d.help)) {
      if (!code.starts_with("rule ")) continue;
      const std::size_t over = code.find(" over ");
      if (over == std::string::npos) continue;
      const std::string winner = code.substr(5, over - 5), loser = code.substr(over + 6);
      if (const auto at = end_of_rule_head(winner))
        offer(fmt::format("Write `{}`", code), d, at->first, at->first,
              (at->second ? ", " : " over ") + loser);
    }
  }

  /// Adds `where T == f32` before the arrow of the rule.
  void guard(const FoundDiagnostic& d) {
    const std::int32_t number = text_.item_at(d.begin);
    if (number < 0) return;
    const OutlineItem& item = text_.mentions.items[static_cast<std::size_t>(number)];
    for (const std::string& code : ticked(d.help)) {
      if (!code.starts_with("where ")) continue;
      for (const Token& t : text_.mentions.tokens) {
        if (t.begin < item.begin || t.begin > item.end || t.kind != Tok::implies) continue;
        const TextPlace place = text_.lines.place(t.begin, ColumnUnit::utf8);
        const std::string gap =
            t.first_on_line ? "\n" + std::string(place.column, ' ') : std::string(" ");
        offer(fmt::format("Add the guard `{}`", code), d, t.begin, t.begin, code + gap);
        break;
      }
    }
  }

  /// Adds `{eps}` for an attribute that must be written.
  void attribute(const FoundDiagnostic& d) {
    if (!d.help.starts_with("write `{")) return;
    for (const std::string& code : ticked(d.help)) {
      if (!code.starts_with('{') || code.find('=') != std::string::npos) continue;
      const bool braces = d.end > d.begin && text_.text[d.end - 1] == '}';
      const bool empty = braces && text_.text_of(d.begin, d.end).ends_with("{}");
      const std::string inside = code.substr(1, code.size() - 2);
      if (braces)
        offer(fmt::format("Write `{}`", code), d, d.end - 1, d.end - 1,
              (empty ? "" : ", ") + inside);
      else
        offer(fmt::format("Write `{}`", code), d, d.end, d.end, code);
    }
  }

  /// Quotes a reserved word that is used as a name.
  void backquotes(const FoundDiagnostic& d) {
    if (!d.help.ends_with("in backquotes")) return;
    const std::string word(text_.text_of(d.begin, d.end));
    offer(fmt::format("Write `{}` in backquotes", word), d, d.begin, d.end, "`" + word + "`");
  }

  /// Applies help such as "compare it, as in `d > 0`".
  void comparison(const FoundDiagnostic& d) {
    const std::vector<std::string> code = ticked(d.help);
    if (d.help.starts_with("compare it, as in `") && code.size() == 1)
      offer(fmt::format("Write `{}`", code.front()), d, d.begin, d.end, code.front());
  }

 private:
  void offer(std::string title, const FoundDiagnostic& d, std::uint32_t begin, std::uint32_t end,
             std::string text) {
    FileEdits edits{view_.workspace.uri_of(text_),
                    {{view_.workspace.range(text_, begin, end), std::move(text)}}};
    out_.push_back({std::move(title), std::move(edits), d.code});
  }

  /// The position of `over` in a rule of this text, and whether the rule already has one.
  [[nodiscard]] std::optional<std::pair<std::uint32_t, bool>> end_of_rule_head(
      const std::string& name) const {
    const std::vector<Token>& tokens = text_.mentions.tokens;
    for (const OutlineItem& item : text_.mentions.items) {
      if (item.kind != Tok::rule || item.name != name) continue;
      bool over = false;
      std::uint32_t end = item.name_end;
      for (const Token& t : tokens) {
        if (t.begin < item.name_end || t.begin >= item.end) continue;
        if (t.kind == Tok::lbrace) return std::pair(end, over);
        over = over || t.kind == Tok::over;
        end = t.end();
      }
    }
    return {};
  }

  const DocumentView& view_;
  const SourceText& text_;
  std::vector<OfferedAction>& out_;
};

constexpr void (Offering::* kFixes[])(const FoundDiagnostic&) = {
    &Offering::other_name, &Offering::precedence, &Offering::guard,
    &Offering::attribute,  &Offering::backquotes, &Offering::comparison,
};

}  // namespace

std::vector<OfferedAction> offered_actions(const DocumentView& view,
                                           const std::vector<FoundDiagnostic>& found,
                                           std::uint32_t begin, std::uint32_t end) {
  std::vector<OfferedAction> out;
  Offering offering(view, out);
  for (const FoundDiagnostic& d : found) {
    if (d.begin > end || d.end < begin) continue;
    for (const auto fix : kFixes) (offering.*fix)(d);
  }
  return out;
}

}  // namespace pw::cli
