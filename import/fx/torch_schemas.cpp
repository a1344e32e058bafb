// Searches the sorted lines of the table by bisection.
#include "import/fx/torch_schemas.hpp"

#include <algorithm>

namespace pw::fx {
namespace {

// `T`, `L`, `Ta!` …
template <class Entry>
void read_kind(std::string_view text, Entry& out) {
  if (text.empty()) return;
  out.tensor = text[0] == 'T';
  out.list = text[0] == 'L';
  text.remove_prefix(1);
  if (!text.empty() && text[0] != '!') out.alias = text[0];
  out.written = text.ends_with("!");
}

Schema::Argument read_argument(std::string_view text) {
  Schema::Argument out;
  if (text.ends_with("=")) {
    out.optional = true;
    text.remove_suffix(1);
  }
  std::size_t colon = std::min(text.find(':'), text.size());
  out.name = text.substr(0, colon);
  if (colon < text.size()) read_kind(text.substr(colon + 1), out);
  return out;
}

std::string_view target_of(std::string_view line) { return line.substr(0, line.find(' ')); }

// The line that `at` is in.
std::string_view line_at(std::string_view table, std::size_t at) {
  std::size_t start = at == 0 ? std::string_view::npos : table.rfind('\n', at - 1);
  start = start == std::string_view::npos ? 0 : start + 1;
  return table.substr(start, std::min(table.find('\n', at), table.size()) - start);
}

std::string_view without_head(std::string_view table) {
  while (table.starts_with("#"))
    table.remove_prefix(std::min(table.find('\n'), table.size() - 1) + 1);
  return table;
}

}  // namespace

Schema parse_schema(std::string_view line) {
  Schema out;
  bool results = false, keyword_only = false;
  for (bool first = true; !line.empty(); first = false) {
    std::size_t end = std::min(line.find(' '), line.size());
    std::string_view word = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
    if (first) {
      out.target = word;
    } else if (word == ">") {
      results = true;
    } else if (word == "*") {
      keyword_only = true;
    } else if (word == "!random") {
      out.random = true;
    } else if (word == "!effect") {
      out.effect = true;
    } else if (word == "!shape") {
      out.reshapes = true;
    } else if (results) {
      Schema::Result result;
      if (word != "-") read_kind(word, result);
      out.results.push_back(result);
    } else {
      out.arguments.push_back(read_argument(word));
      out.arguments.back().keyword_only = keyword_only;
    }
  }
  return out;
}

bool Schema::writes() const {
  return std::ranges::any_of(arguments, [](const Argument& a) { return a.written; });
}

bool Schema::aliases() const {
  return std::ranges::any_of(results, [](const Result& r) { return r.alias != 0; });
}

std::string_view schema_line(std::string_view target) {
  if (target.ends_with(".default")) target.remove_suffix(8);
  std::string_view table = without_head(schema_table());
  std::size_t low = 0, high = table.size();  // places of line starts, or the end
  while (low < high) {
    std::string_view line = line_at(table, low + (high - low) / 2);
    auto start = static_cast<std::size_t>(line.data() - table.data());
    if (target_of(line) == target) return line;
    if (target_of(line) < target) {
      low = start + line.size() + 1;
    } else {
      high = start;
    }
  }
  return {};
}

std::optional<Schema> find_schema(std::string_view target) {
  std::string_view line = schema_line(target);
  if (line.empty()) return std::nullopt;
  return parse_schema(line);
}

}  // namespace pw::fx
