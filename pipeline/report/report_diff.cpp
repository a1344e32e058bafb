#include "pipeline/report/report_diff.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/characters.hpp"
#include "base/counted.hpp"
#include "base/io/file.hpp"
#include "base/io/file_kind.hpp"
#include "base/try.hpp"

namespace pw {
namespace {

bool starts_with_digit(const std::string& text) {
  const std::size_t first = text.find_first_not_of("-+ ");
  return first != std::string::npos && is_digit(text[first]);
}

/// How many columns name a row: those before the first that holds a number in some row, but one.
std::size_t naming_columns(const ReportTable& a, const ReportTable& b) {
  std::size_t count = 0;
  for (; count < a.columns.size(); ++count)
    for (const ReportTable* table : {&a, &b})
      for (const std::vector<std::string>& row : table->rows)
        if (count < row.size() && starts_with_digit(row[count]))
          return std::max<std::size_t>(count, 1);
  return std::max<std::size_t>(count, 1);
}

using Cells = std::vector<std::string>;

std::string shown(const Cells& cells) {
  std::string out;
  for (const std::string& cell : cells)
    if (!cell.empty()) out += (out.empty() ? "" : " · ") + cell;
  return out;
}

/// Returns the rows by key; equal keys are numbered.
std::map<std::pair<Cells, std::size_t>, const Cells*> named_rows(const ReportTable& table,
                                                                 std::size_t naming) {
  std::map<std::pair<Cells, std::size_t>, const Cells*> out;
  std::map<Cells, std::size_t> seen;
  for (const Cells& row : table.rows) {
    const auto end = row.begin() + static_cast<std::ptrdiff_t>(std::min(naming, row.size()));
    Cells name(row.begin(), end);
    const std::size_t number = seen[name]++;
    out.emplace(std::pair{std::move(name), number}, &row);
  }
  return out;
}

class Comparison {
 public:
  std::vector<ReportChange> take() { return std::move(out_); }

  void section(const std::string& title, const ReportSection& a, const ReportSection& b) {
    title_ = title;
    lines(a, b);
    std::map<std::string, const ReportTable*> after = tables(b);
    for (const auto& [caption, table] : tables(a)) {
      const auto other = after.find(caption);
      compare(caption, *table, other == after.end() ? ReportTable{} : *other->second);
      if (other != after.end()) after.erase(other);
    }
    for (const auto& [caption, table] : after) compare(caption, ReportTable{}, *table);
  }

 private:
  static std::map<std::string, const ReportTable*> tables(const ReportSection& section) {
    std::map<std::string, const ReportTable*> out;
    for (const ReportItem& item : section.items)
      if (const auto* table = std::get_if<ReportTable>(&item))
        out.emplace(table->caption.empty() ? shown(table->columns) : table->caption, table);
    return out;
  }

  static Cells lines_of(const ReportSection& section) {
    Cells out;
    for (const ReportItem& item : section.items)
      if (const auto* text = std::get_if<ReportText>(&item))
        out.insert(out.end(), text->lines.begin(), text->lines.end());
    return out;
  }

  void lines(const ReportSection& a, const ReportSection& b) {
    Cells left = lines_of(a), right = lines_of(b);
    for (const std::string& line : left)
      if (const auto same = std::find(right.begin(), right.end(), line); same != right.end())
        right.erase(same);
      else
        out_.push_back({title_, "", "", "", line, ""});
    for (const std::string& line : right) out_.push_back({title_, "", "", "", "", line});
  }

  void compare(const std::string& caption, const ReportTable& a, const ReportTable& b) {
    const std::size_t naming = naming_columns(a.columns.empty() ? b : a, b);
    auto after = named_rows(b, naming);
    for (const auto& [name, row] : named_rows(a, naming)) {
      const auto other = after.find(name);
      if (other == after.end()) {
        out_.push_back({title_, caption, shown(name.first), "", shown(*row), ""});
        continue;
      }
      cells(caption, shown(name.first), a.columns, *row, b.columns, *other->second);
      after.erase(other);
    }
    for (const auto& [name, row] : after)
      out_.push_back({title_, caption, shown(name.first), "", "", shown(*row)});
  }

  void cells(const std::string& caption, const std::string& name, const Cells& columns,
             const Cells& row, const Cells& other_columns, const Cells& other) {
    for (std::size_t c = 0; c < std::min(columns.size(), row.size()); ++c) {
      const auto column = std::find(other_columns.begin(), other_columns.end(), columns[c]);
      const auto at = static_cast<std::size_t>(column - other_columns.begin());
      const std::string after = at < other.size() ? other[at] : "";
      if (row[c] != after) out_.push_back({title_, caption, name, columns[c], row[c], after});
    }
  }

  std::string title_;
  std::vector<ReportChange> out_;
};

const ReportSection* section_of(const Report& report, const std::string& title) {
  const auto found = std::ranges::find(report.sections, title, &ReportSection::title);
  return found == report.sections.end() ? nullptr : &*found;
}

}  // namespace

std::vector<ReportChange> compare_reports(const Report& before, const Report& after) {
  Comparison out;
  for (const ReportSection& section : before.sections) {
    const ReportSection* other = section_of(after, section.title);
    out.section(section.title, section, other == nullptr ? ReportSection{} : *other);
  }
  for (const ReportSection& section : after.sections)
    if (section_of(before, section.title) == nullptr) out.section(section.title, {}, section);
  return out.take();
}

Result<std::vector<ReportChange>> compare_report_files(const std::string& before,
                                                       const std::string& after) {
  const Report a = PW_TRY(report_from_json(
      PW_TRY(read_text_file(before, "a report.json", "piecewise.report/1")), before));
  const Report b = PW_TRY(report_from_json(
      PW_TRY(read_text_file(after, "a report.json", "piecewise.report/1")), after));
  return compare_reports(a, b);
}

std::string report_change_lines(const std::vector<ReportChange>& changes, bool all) {
  constexpr std::size_t kMostRows = 8;
  struct Rows {
    std::size_t gone = 0, fresh = 0;
  };
  std::map<std::string, Rows> rows;  // that are in one report only, by section and table
  const auto place = [](const ReportChange& c) {
    return c.section +
           (c.table.empty() ? "" : ", " + c.table.substr(0, c.table.find_first_of(";.")));
  };
  const auto whole = [](const ReportChange& c) { return c.column.empty() && !c.table.empty(); };
  for (const ReportChange& c : changes)
    if (whole(c)) ++(c.after.empty() ? rows[place(c)].gone : rows[place(c)].fresh);
  std::string out;
  std::set<std::string> counted_already;
  for (const ReportChange& c : changes) {
    if (whole(c) && !all && rows[place(c)].gone + rows[place(c)].fresh > kMostRows) {
      const Rows& counts = rows[place(c)];
      if (counted_already.insert(place(c)).second)
        out += fmt::format("{}: {} gone, {} new; --all lists them\n", place(c),
                           counted(counts.gone, "row"), counts.fresh);
      continue;
    }
    out += place(c);
    if (!c.column.empty() && !c.row.empty()) out += ", " + c.row;
    if (!c.column.empty())
      out += fmt::format(": {} {} → {}\n", c.column, c.before, c.after);
    else
      out += (c.after.empty() ? ": − " + c.before : ": + " + c.after) + "\n";
  }
  return out;
}

Table report_change_table(const std::vector<ReportChange>& changes) {
  Table table({"section", "table", "row", "column", "before", "after"});
  for (const ReportChange& c : changes)
    table.add({c.section, c.table, c.row, c.column, c.before, c.after});
  return table;
}

}  // namespace pw
