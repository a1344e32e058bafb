#include "base/diagnostic.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/utf8.hpp"

namespace pw {
namespace {

constexpr std::size_t kLineWidth = 160;  // longer source lines are cut around the span

struct Paint {
  bool on;
  [[nodiscard]] std::string operator()(std::string_view code, std::string_view text) const {
    return on ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
  }
};

std::string_view word(Severity severity) {
  switch (severity) {
    case Severity::error: return "error";
    case Severity::warning: return "warning";
    case Severity::note: return "note";
  }
  return "error";
}

/// Indents the further lines of a note, which may be several lines of text.
std::string lines(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += printable(text.substr(0, end));
    if (end == text.size()) return out;
    out += "\n  ";
    text.remove_prefix(end + 1);
  }
}

void snippet(std::string& out, const SourceMap& sources, Span span, std::string_view label,
             char mark, const Paint& paint, std::string_view color) {
  LineColumn at = sources.position(span.source, span.begin);
  std::string_view line = sources.line(span.source, span.begin);
  std::size_t begin = at.column - 1;
  std::size_t length = std::max<std::size_t>(
      1, std::min<std::size_t>(span.end > span.begin ? span.end - span.begin : 1,
                               line.size() > begin ? line.size() - begin : 1));
  if (line.size() > kLineWidth) {
    std::size_t from = begin > kLineWidth / 2 ? begin - kLineWidth / 2 : 0;
    line = line.substr(from, kLineWidth);
    begin -= from;
    length = std::min(length, line.size() > begin ? line.size() - begin : 1);
  }
  std::string number = std::to_string(at.line);
  std::string pad(count_characters(printable(line.substr(0, begin))), ' ');
  std::string marks(
      std::max<std::size_t>(1, count_characters(printable(line.substr(begin, length)))), mark);
  std::string blank(number.size(), ' ');
  out += fmt::format("{} {} {}\n", paint("34", number), paint("34", "|"), printable(line));
  out += fmt::format("{} {} {}{}{}{}\n", blank, paint("34", "|"), pad, paint(color, marks),
                     label.empty() ? "" : " ", paint(color, printable(label)));
}

void render_one(std::string& out, const Diagnostic& d, const SourceMap& sources,
                const Paint& paint) {
  std::string_view color = d.severity == Severity::error     ? "1;31"
                           : d.severity == Severity::warning ? "1;33"
                                                             : "1;36";
  std::string head = std::string(word(d.severity)) + (d.code.empty() ? "" : "[" + d.code + "]");
  out += fmt::format("{}{}\n", paint(color, head), paint("1", ": " + printable(d.message)));
  if (!d.place.empty()) out += fmt::format("  {} {}\n", paint("34", "-->"), printable(d.place));
  if (d.span.valid()) {
    out += fmt::format("  {} {}\n", paint("34", "-->"), printable(sources.describe(d.span)));
    snippet(out, sources, d.span, d.label, '^', paint, color);
  }
  for (const Label& label : d.secondary) {
    if (!label.span.valid()) continue;
    out += fmt::format("  {} {}\n", paint("34", ":::"), printable(sources.describe(label.span)));
    snippet(out, sources, label.span, label.text, '-', paint, "34");
  }
  for (const std::string& note : d.notes)
    out += fmt::format("{}: {}\n", paint("1", "note"), lines(note));
  if (!d.help.empty()) out += fmt::format("{}: {}\n", paint("1;32", "help"), printable(d.help));
}

/// Returns the optimal string alignment distance: characters added, removed, replaced or swapped
/// with their neighbour. Takes time proportional to the product of the lengths.
std::size_t edits(std::string_view from, std::string_view to) {
  std::vector<std::size_t> before, above(to.size() + 1), row(to.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 1; i <= from.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t change = above[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, change});
      const bool exchanged = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (exchanged) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = std::exchange(above, row);
  }
  return above.back();
}

}  // namespace

Diagnostic error_at(Span span, std::string_view code, std::string message, std::string help) {
  Diagnostic d;
  d.code = code;
  d.message = std::move(message);
  d.span = span;
  d.help = std::move(help);
  return d;
}

Diagnostic warning_at(Span span, std::string_view code, std::string message, std::string help) {
  Diagnostic d = error_at(span, code, std::move(message), std::move(help));
  d.severity = Severity::warning;
  return d;
}

Diagnostic error_in(std::string place, std::string_view code, std::string message,
                    std::string help) {
  Diagnostic d = error_at({}, code, std::move(message), std::move(help));
  d.place = std::move(place);
  return d;
}

tl::unexpected<Diagnostics> fail(Diagnostic diagnostic) {
  Diagnostics list;
  list.push_back(std::move(diagnostic));
  return tl::unexpected<Diagnostics>(std::move(list));
}

tl::unexpected<Diagnostics> fail(Span span, std::string_view code, std::string message,
                                 std::string help) {
  return fail(error_at(span, code, std::move(message), std::move(help)));
}

bool has_errors(const Diagnostics& diagnostics) {
  return std::any_of(diagnostics.begin(), diagnostics.end(),
                     [](const Diagnostic& d) { return d.severity == Severity::error; });
}

std::string render(const Diagnostics& diagnostics, const SourceMap& sources,
                   RenderOptions options) {
  std::vector<std::size_t> order(diagnostics.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const Span& x = diagnostics[a].span;
    const Span& y = diagnostics[b].span;
    return x.source != y.source ? x.source < y.source : x.begin < y.begin;
  });
  Paint paint{options.color};
  std::string out;
  for (std::size_t i = 0; i < order.size() && i < options.limit; ++i) {
    if (i > 0) out += '\n';
    render_one(out, diagnostics[order[i]], sources, paint);
  }
  if (order.size() > options.limit)
    out += fmt::format("\n… and {} more\n", order.size() - options.limit);
  return out;
}

std::string nearest(std::string_view word_given, const std::vector<std::string>& candidates) {
  std::size_t best = std::max<std::size_t>(1, word_given.size() / 3) +
                     1;  // a larger distance is not a typing mistake
  std::string result;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > word_given.size() + best || word_given.size() > candidate.size() + best)
      continue;
    if (const std::size_t distance = edits(word_given, candidate); distance < best) {
      best = distance;
      result = candidate;
    }
  }
  return result;
}

}  // namespace pw
