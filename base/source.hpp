// Source texts and places in them. A Span is a byte range of one source of a SourceMap.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "base/id.hpp"

namespace pw {

using SourceId = Id<struct SourceTag>;

struct Span {
  SourceId source;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;  ///< one past the last byte

  [[nodiscard]] bool valid() const { return source.valid(); }
  friend bool operator==(const Span&, const Span&) = default;
};

/// Returns the span from the start of `a` to the end of `b`; either may be invalid.
Span join(Span a, Span b);

struct LineColumn {
  std::uint32_t line = 1;    ///< from 1
  std::uint32_t column = 1;  ///< from 1, in bytes
};

/// Owner of the texts that diagnostics point into. References stay valid for the life of the map.
class SourceMap {
 public:
  SourceId add(std::string name, std::string text);
  [[nodiscard]] const std::string& name(SourceId id) const { return sources_[id.index].name; }
  [[nodiscard]] std::string_view text(SourceId id) const { return sources_[id.index].text; }
  [[nodiscard]] LineColumn position(SourceId id, std::uint32_t offset) const;
  /// Returns the line that holds `offset`, without its line end.
  [[nodiscard]] std::string_view line(SourceId id, std::uint32_t offset) const;
  /// Returns the text that a span covers; empty for an invalid span.
  [[nodiscard]] std::string_view text(Span span) const;
  /// Returns "file:line:column", or an empty string for an invalid span.
  [[nodiscard]] std::string describe(Span span) const;
  [[nodiscard]] std::size_t size() const { return sources_.size(); }

 private:
  struct Source {
    std::string name;
    std::string text;
  };
  std::deque<Source> sources_;
};

}  // namespace pw
