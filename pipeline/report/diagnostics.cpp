#include "pipeline/report/diagnostics.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/printable.hpp"

namespace pw {
namespace {

/// Returns the number of the character that contains a byte, both from 1. Each byte outside a valid
/// character counts as one.
std::uint32_t character_at(std::string_view line, std::uint32_t column) {
  std::uint32_t number = 1;
  for (std::size_t at = 0; at + 1 < column && at < line.size(); ++number)
    at += std::max<std::size_t>(1, first_character(line.substr(at)).length);
  return number;
}

FilePlace file_place(const SourceMap& sources, Span span) {
  if (!span.valid()) return {};
  const std::uint32_t end = std::max(span.end, span.begin);
  const LineColumn first = sources.position(span.source, span.begin);
  const LineColumn last = sources.position(span.source, end);
  return {sources.name(span.source),
          first.line,
          last.line,
          first.column,
          last.column,
          character_at(sources.line(span.source, span.begin), first.column),
          character_at(sources.line(span.source, end), last.column)};
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

/// Parses "model.json at /nodes/3/op", or a file alone; otherwise returns the subject.
void place_outside(PlacedDiagnostic& out, const std::string& place) {
  const std::size_t at = place.rfind(" at /");
  if (at != std::string::npos && is_file(place.substr(0, at))) {
    out.place.file = place.substr(0, at);
    out.inside = place.substr(at + 4);
  } else if (is_file(place)) {
    out.place.file = place;
  } else {
    out.inside = place;
  }
}

std::string replaced(std::string text, std::string_view special) {
  std::string out;
  for (const char c : text)
    out += special.find(c) == std::string_view::npos
               ? std::string(1, c)
               : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return out;
}

/// Line ends begin the next command of a workflow, so they are escaped.
std::string command_data(const std::string& text) {
  return replaced(printable_lines(text), "%\r\n");
}
std::string command_property(const std::string& text) {
  return replaced(printable(text), "%\r\n:,");
}

std::string annotation(const PlacedDiagnostic& d) {
  const std::string_view command = d.severity == Severity::note ? "notice" : name(d.severity);
  std::string properties;
  const auto add = [&](std::string_view key, const std::string& value) {
    properties +=
        fmt::format("{}{}={}", properties.empty() ? " " : ",", key, command_property(value));
  };
  if (!d.place.file.empty()) add("file", d.place.file);
  if (d.place.line > 0) {
    add("line", std::to_string(d.place.line));
    add("endLine", std::to_string(d.place.end_line));
    add("col", std::to_string(d.place.character));
    add("endColumn", std::to_string(d.place.end_character));
  }
  if (!d.code.empty()) add("title", d.code);
  std::string message = d.message;
  if (!d.inside.empty()) message = d.inside + ": " + message;
  if (!d.help.empty()) message += "\nhelp: " + d.help;
  return fmt::format("::{}{}::{}\n", command, properties, command_data(message));
}

}  // namespace

std::string_view name(Severity severity) {
  switch (severity) {
    case Severity::error: return "error";
    case Severity::warning: return "warning";
    case Severity::note: return "note";
  }
  return "?";
}

PlacedDiagnostic placed(const Diagnostic& diagnostic, const SourceMap& sources) {
  PlacedDiagnostic out;
  out.severity = diagnostic.severity;
  out.code = diagnostic.code;
  out.message = diagnostic.message;
  out.label = diagnostic.label;
  out.help = diagnostic.help;
  out.notes = diagnostic.notes;
  out.place = file_place(sources, diagnostic.span);
  if (!diagnostic.span.valid())
    place_outside(out, diagnostic.place);
  else
    out.inside = diagnostic.place;
  for (const Label& label : diagnostic.secondary)
    if (label.span.valid()) out.related.emplace_back(file_place(sources, label.span), label.text);
  return out;
}

std::string github_annotations(const std::vector<PlacedDiagnostic>& diagnostics) {
  std::string out;
  for (const PlacedDiagnostic& diagnostic : diagnostics) out += annotation(diagnostic);
  return out;
}

}  // namespace pw
