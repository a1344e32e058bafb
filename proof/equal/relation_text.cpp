// A hand-written parser of relation files, one line at a time. Errors name the line and column, and
// the first one ends parsing.
#include "proof/equal/relation_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "base/characters.hpp"

namespace pw {
namespace {

using proof::name;
using proof::Part;
using proof::Relation;
using proof::RelationLine;

constexpr std::array kParts = {Part::replicated, Part::gathered, Part::blocks, Part::partial,
                               Part::cat};

/// Reads one line from left to right. `//` and `#` begin a comment.
class LineReader {
 public:
  explicit LineReader(std::string_view text) : text_(text) {}

  /// Reads a name as in graphs; others must be quoted.
  std::string word() {
    blank();
    if (take('`')) {
      const std::size_t end = std::min(text_.find('`', at_), text_.size());
      std::string word(text_.substr(at_, end - at_));
      at_ = std::min(end + 1, text_.size());
      return word;
    }
    const std::size_t begin = at_;
    while (at_ < text_.size() && in_word(text_[at_])) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }
  std::optional<double> number() {
    blank();
    double value = 0;
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) return std::nullopt;
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }
  std::optional<std::int64_t> integer() {
    blank();
    std::int64_t value = 0;
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) return std::nullopt;
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }
  bool take(char c) {
    blank();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool done() {
    blank();
    return at_ >= text_.size() || text_.substr(at_, 2) == "//" || text_[at_] == '#';
  }
  [[nodiscard]] std::size_t column() const { return at_ + 1; }

 private:
  static bool in_word(char c) { return is_in_name(c) || c == '.' || c == ':' || c == '*'; }
  void blank() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  std::string_view text_;
  std::size_t at_ = 0;
};

/// The error in a line; empty if there is none.
using Problem = std::string;

/// Reads `{dim = 0, sizes = [8, 2]}`. Each kind of part requires its own settings and no others.
Problem read_settings(LineReader& in, RelationLine& out) {
  bool has_dim = false;
  if (in.take('{')) {
    while (!in.take('}')) {
      const std::string key = in.word();
      if (!in.take('=')) return "expected `=` after an attribute's name";
      if (key == "dim") {
        const auto dim = in.integer();
        if (!dim) return "`dim` must be an integer";
        out.dim = *dim;
        has_dim = true;
      } else if (key == "sizes" && in.take('[')) {
        while (!in.take(']')) {
          const auto size = in.integer();
          if (!size || *size <= 0) return "`sizes` must be positive integers";
          out.sizes.push_back(*size);
          in.take(',');
        }
      } else {
        return fmt::format("`{}` is neither `dim` nor `sizes`", key);
      }
      in.take(',');
      if (in.done()) return "expected `}`";
    }
  }
  const bool needs_dim =
      out.part == Part::gathered || out.part == Part::blocks || out.part == Part::cat;
  if (needs_dim != has_dim)
    return fmt::format("`{}` {} a `dim`", name(out.part), needs_dim ? "needs" : "has no");
  if ((out.part == Part::blocks) == out.sizes.empty())
    return fmt::format("`{}` {} `sizes`", name(out.part),
                       out.part == Part::blocks ? "needs" : "has no");
  return {};
}

/// Reads `gathered(w){dim = 0}`.
Problem read_part(LineReader& in, RelationLine& out) {
  const std::string kind = in.word();
  std::size_t at = 0;
  while (at < kParts.size() && name(kParts[at]) != kind) ++at;
  if (at == kParts.size())
    return fmt::format("`{}` is not one of replicated, gathered, blocks, partial, cat", kind);
  out.part = kParts[at];
  if (!in.take('(')) return "expected `(`";
  while (!in.take(')')) {
    out.right.push_back(in.word());
    if (out.right.back().empty()) return "expected the name of an input";
    in.take(',');
  }
  if (out.right.empty() || (out.right.size() > 1 && out.part != Part::cat))
    return fmt::format("`{}` takes one name", kind);
  return read_settings(in, out);
}

/// Reads `granted OP along AXIS, …` after its first word.
Problem read_granted(LineReader& in, Relation& out) {
  const std::string op = in.word();
  if (op.empty() || in.word() != "along") return "expected `granted OP along AXIS, …`";
  do {
    const auto axis = in.integer();
    if (!axis || *axis < 0) return "an axis must be an integer, 0 or greater";
    out.granted[op].insert(*axis);
  } while (in.take(','));
  return {};
}

/// A line is a constant input, an input's layout, a claim, or a grant.
Problem read_line(LineReader& in, int line, Relation& out) {
  std::string first = in.word();
  if (first == "granted") return read_granted(in, out);
  RelationLine entry;
  entry.line = line;
  const bool claim = first == "claim";
  entry.left = claim ? in.word() : first;
  if (entry.left.empty()) return "expected a name";
  if (!in.take('=')) return fmt::format("expected `=` after `{}`", entry.left);
  if (const auto number = claim ? std::nullopt : in.number()) {
    out.numbers[entry.left] = *number;
    return {};
  }
  if (Problem problem = read_part(in, entry); !problem.empty()) return problem;
  if (claim && entry.part != Part::replicated && entry.part != Part::gathered &&
      entry.part != Part::partial)
    return "a claim about an output must be replicated, gathered or partial";
  (claim ? out.claims : out.inputs).push_back(std::move(entry));
  return {};
}

}  // namespace

Result<proof::Relation> parse_relation(std::string_view text, const std::string& place) {
  Relation out;
  int line = 0;
  for (std::size_t at = 0; at < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    LineReader in(text.substr(at, end - at));
    at = end + 1;
    if (in.done()) continue;
    Problem problem = read_line(in, line + 1, out);
    if (problem.empty() && !in.done()) problem = "expected the end of the line";
    if (!problem.empty())
      return fail(error_in(fmt::format("{}:{}:{}", place, line + 1, in.column()), "PW1419",
                           std::move(problem),
                           "write a line like `input = gathered(input){dim = 0}`"));
  }
  return out;
}

}  // namespace pw
