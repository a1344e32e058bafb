#include "base/source.hpp"

#include <algorithm>

namespace pw {

Span join(Span a, Span b) {
  if (!a.valid()) return b;
  if (!b.valid() || a.source != b.source) return a;
  return {a.source, std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

SourceId SourceMap::add(std::string name, std::string text) {
  sources_.push_back({std::move(name), std::move(text)});
  return SourceId(sources_.size() - 1);
}

LineColumn SourceMap::position(SourceId id, std::uint32_t offset) const {
  std::string_view all = text(id);
  std::string_view before = all.substr(0, std::min<std::size_t>(offset, all.size()));
  std::size_t newline = before.rfind('\n');
  LineColumn at;
  at.line = static_cast<std::uint32_t>(1 + std::count(before.begin(), before.end(), '\n'));
  at.column = static_cast<std::uint32_t>(
      newline == std::string_view::npos ? before.size() + 1 : before.size() - newline);
  return at;
}

std::string_view SourceMap::line(SourceId id, std::uint32_t offset) const {
  std::string_view all = text(id);
  std::size_t at = std::min<std::size_t>(offset, all.size());
  std::size_t begin = at == 0 ? std::string_view::npos : all.rfind('\n', at - 1);
  begin = begin == std::string_view::npos ? 0 : begin + 1;
  std::size_t end = all.find('\n', at);
  if (end == std::string_view::npos) end = all.size();
  return all.substr(begin, end - begin);
}

std::string_view SourceMap::text(Span span) const {
  if (!span.valid()) return {};
  std::string_view all = text(span.source);
  std::size_t begin = std::min<std::size_t>(span.begin, all.size());
  return all.substr(begin, span.end > begin ? span.end - begin : 0);
}

std::string SourceMap::describe(Span span) const {
  if (!span.valid()) return {};
  LineColumn at = position(span.source, span.begin);
  return name(span.source) + ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
}

}  // namespace pw
