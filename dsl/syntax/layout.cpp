#include "dsl/syntax/layout.hpp"

#include <algorithm>

#include "base/utf8.hpp"

namespace pw {
namespace {

std::string spaced(std::string text) {
  std::replace(text.begin(), text.end(), kBreak, ' ');
  return text;
}

/// Cuts after each `kBreak`, or else after each ", " and " ; " outside quotes.
std::vector<std::string> cut(const std::string& text, bool at_marks) {
  std::vector<std::string> out(1);
  char quote = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (at_marks && c == kBreak) {
      out.emplace_back();
      continue;
    }
    out.back() += c;
    if (quote != '\0') {
      if (c == '\\' && i + 1 < text.size())
        out.back() += text[++i];
      else if (c == quote)
        quote = '\0';
      continue;
    }
    if (c == '"' || c == '`') quote = c;
    if (!at_marks && (c == ',' || c == ';') && i + 1 < text.size() && text[i + 1] == ' ') {
      out.emplace_back();
      ++i;
    }
  }
  return out;
}

std::vector<std::string> fill(const std::vector<std::string>& pieces, std::size_t indent) {
  std::vector<std::string> lines;
  for (const std::string& piece : pieces) {
    const std::size_t used = indent + (lines.size() > 1 ? 2 : 0);
    if (!lines.empty() &&
        used + count_characters(lines.back()) + 1 + count_characters(piece) <= kLineWidth)
      lines.back() += " " + piece;
    else
      lines.push_back(piece);
  }
  return lines;
}

/// Returns the lines of one long line; all but the first are to be indented further.
std::vector<std::string> wrap(const std::string& text, std::size_t indent) {
  if (indent + count_characters(text) <= kLineWidth) return {spaced(text)};
  std::vector<std::string> out;
  for (const std::string& line : fill(cut(text, true), indent)) {
    const bool fits = indent + 2 + count_characters(line) <= kLineWidth;
    for (std::string& part : fits ? std::vector<std::string>{line} : fill(cut(line, false), indent))
      out.push_back(std::move(part));
  }
  return out;
}

class Writer {
 public:
  Writer(const std::vector<ast::Comment>& comments, std::string_view source)
      : comments_(comments), source_(source) {}

  std::string run(const std::vector<Layout>& items) && {
    for (const Layout& item : items) write(item, 0);
    comments_before(source_.size() + 1, 0);
    return std::move(out_);
  }

 private:
  void write(const Layout& item, std::size_t indent) {
    if (item.span.valid()) comments_before(item.span.begin, indent);
    blank_before(item.span);
    if (const std::string flat = one_line(item);
        !flat.empty() && indent + count_characters(flat) <= kLineWidth) {
      line(item.prefix + flat, indent, false);
    } else if (!item.block) {
      line(item.prefix + item.text, indent, true);
    } else {
      const std::size_t inner = indent + item.prefix.size();
      line(item.prefix + item.text, indent, true);
      if (item.span.valid()) last_end_ = std::max<std::size_t>(last_end_, item.span.begin);
      opened_ = true;
      for (const Layout& part : item.parts) write(part, inner + 2);
      if (item.span.valid()) comments_before(item.span.end, inner + 2);
      opened_ = false;
      line(item.close, inner, true);
    }
    if (item.span.valid()) last_end_ = std::max<std::size_t>(last_end_, item.span.end);
  }

  /// Returns a block that was on one line without comments in it, or an empty block; else nothing.
  std::string one_line(const Layout& item) const {
    if (!item.block || has_comments(item.span)) return "";
    const bool was = !item.span.valid() ||
                     source_.substr(item.span.begin, item.span.end - item.span.begin).find('\n') ==
                         std::string_view::npos;
    return was || item.parts.empty() ? flat(item) : "";
  }
  static std::string flat(const Layout& item) {
    std::string out = spaced(item.text);
    if (!item.block) return out;
    for (std::size_t i = 0; i < item.parts.size(); ++i) {
      const Layout& part = item.parts[i];
      const std::size_t begin = part.prefix.find_first_not_of(' ');
      out += (i > 0 ? item.separator : " ") +
             (begin == std::string::npos ? "" : part.prefix.substr(begin)) + flat(part);
    }
    return out + (item.close.empty() ? "" : " " + item.close);
  }
  [[nodiscard]] bool has_comments(Span span) const {
    if (!span.valid()) return false;
    const auto first =
        std::lower_bound(comments_.begin(), comments_.end(), span.begin,
                         [](const ast::Comment& c, std::uint32_t at) { return c.span.begin < at; });
    return first != comments_.end() && first->span.begin < span.end;
  }

  void line(const std::string& text, std::size_t indent, bool wrapped) {
    const std::vector<std::string> lines =
        wrapped ? wrap(text, indent) : std::vector<std::string>{spaced(text)};
    for (std::size_t i = 0; i < lines.size(); ++i)
      out_ += std::string(indent + (i > 0 ? 2 : 0), ' ') + lines[i] + "\n";
    opened_ = false;
    commented_ = false;
  }

  void comments_before(std::size_t offset, std::size_t indent) {
    for (; next_ < comments_.size() && comments_[next_].span.begin < offset; ++next_)
      comment(comments_[next_], indent);
  }
  void comment(const ast::Comment& c, std::size_t indent) {
    if (!c.own_line && !out_.empty() && !commented_) {
      out_.pop_back();
      out_ += "  //" + c.text + "\n";
    } else {
      blank_before(c.span);
      out_ += std::string(indent, ' ') + "//" + c.text + "\n";
    }
    commented_ = true;
    last_end_ = std::max<std::size_t>(last_end_, c.span.end);
  }

  /// Adds one blank line if the source had one or more, but none at the start of a block.
  void blank_before(Span span) {
    if (!span.valid() || out_.empty() || opened_ || span.begin <= last_end_) return;
    const std::string_view between = source_.substr(last_end_, span.begin - last_end_);
    const std::size_t first = between.find('\n');
    if (first == std::string_view::npos) return;
    const std::size_t second = between.find_first_not_of(" \t\r", first + 1);
    if (second != std::string_view::npos && between[second] == '\n') out_ += '\n';
  }

  const std::vector<ast::Comment>& comments_;
  std::string_view source_;
  std::string out_;
  std::size_t next_ = 0;      ///< the first comment not written yet
  std::size_t last_end_ = 0;  ///< of the last written part, in the source
  bool opened_ = false;       ///< the last line opened a block
  bool commented_ = false;    ///< the last line ends with a comment
};

}  // namespace

std::string lay_out(const std::vector<Layout>& items, const std::vector<ast::Comment>& comments,
                    std::string_view source) {
  return Writer(comments, source).run(items);
}

}  // namespace pw
