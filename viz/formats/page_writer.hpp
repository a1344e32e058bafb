// Internal to viz/: writes the members of a page's data, and its table of texts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "viz/formats/text_table.hpp"
#include "viz/links.hpp"
#include "viz/page.hpp"
#include "viz/union.hpp"

namespace pw::viz {

using Ints = std::vector<std::int64_t>;

/// Returns a JSON value in one line, with bytes that are not UTF-8 replaced.
template <class Json>
[[nodiscard]] std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}
[[nodiscard]] std::string print(const Ints& numbers);

class PageWriter {
 public:
  PageWriter() { texts_.add(""); }
  void put(const char* name, const std::string& json);
  void put(const char* name, const Ints& numbers) { put(name, print(numbers)); }
  /// Returns the number of a text in the table.
  std::int64_t text(std::string_view words) { return texts_.add(words); }
  /// Returns the table of texts.
  [[nodiscard]] const TextTable& texts() const { return texts_; }
  /// Returns all members.
  [[nodiscard]] std::string finish() { return std::move(out_) + "}"; }

 private:
  TextTable texts_;
  std::string out_;
};

/// Numbers of values: inputs, then the results of the nodes in order.
class ValueNumbers {
 public:
  ValueNumbers(const UnionGraph& graph, const Links& links, PageWriter& page);
  /// Returns −1 if absent; below for a literal, −2 minus the number of its text.
  std::int64_t of(const Source& source, std::uint32_t version);

 private:
  const UnionGraph& graph_;
  PageWriter& page_;
  std::vector<std::int64_t> first_;  // by union position
};

void put_graph(PageWriter& page, ValueNumbers& references, const PageParts& parts);
/// Writes groups, shapes, and the places of all nodes.
void put_places(PageWriter& page, const PageParts& parts);
void put_timeline(PageWriter& page, const PageParts& parts);
/// Writes rewrites, tried rules, and misses.
void put_rules(PageWriter& page, ValueNumbers& references, const PageParts& parts);
/// Writes classes of pieces, and the plan, if there are any.
void put_pieces_and_plan(PageWriter& page, const PageParts& parts);

}  // namespace pw::viz
