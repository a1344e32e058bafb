// Completion inserts a name at the cursor and resolves it like any other: its kind determines which
// names fit. Keywords come from the grammar.
#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "base/characters.hpp"
#include "dsl/check/check.hpp"
#include "dsl/syntax/expected_words.hpp"
#include "dsl/used_file.hpp"
#include "graph/dtype.hpp"
#include "graph/text/text.hpp"
#include "lsp/view.hpp"

namespace pw::cli {
namespace {

constexpr std::string_view kCursor = "pwr_cursor_here";
// CompletionItemKind of the protocol.
constexpr int kFunction = 3, kField = 5, kVariable = 6, kClass = 7, kKeyword = 14, kFile = 17,
              kEnumMember = 20, kConstant = 21, kTypeParameter = 25;

class Completing {
 public:
  Completing(const DocumentView& view, std::uint32_t offset, bool snippets)
      : view_(view), snippets_(snippets), begin_(offset), end_(offset) {
    const std::string& text = view.text->text;
    while (begin_ > 0 && is_in_name(text[begin_ - 1])) --begin_;
    while (end_ < text.size() && is_in_name(text[end_])) ++end_;
    if (begin_ < end_ && is_digit(text[begin_])) begin_ = end_;
  }

  std::vector<Completion> run() {
    if (const UseOf* use = use_here()) {
      files(*use);
      return std::move(out_);
    }
    if (in_comment_or_string()) return {};
    const std::string& text = view_.text->text;
    const SourceText probe(view_.text->name,
                           text.substr(0, begin_) + std::string(kCursor) + text.substr(end_));
    for (const std::uint32_t i : probe.at(begin_))
      if (probe.mentions.all[i].begin == begin_ || probe.mentions.all[i].name.ends_with(kCursor))
        names_for(probe, probe.mentions.all[i]);
    for (const std::string& word : expected_words(*view_.text, begin_))
      put(word, kKeyword, "", "3");
    return std::move(out_);
  }

 private:
  Completion* put(const std::string& label, int kind, std::string detail, std::string_view order) {
    if (label == kCursor || label == "_" || !seen_.insert(label).second) return nullptr;
    Completion& item = out_.emplace_back();
    item.label = label;
    item.kind = kind;
    item.detail = std::move(detail);
    item.replaces = view_.workspace.range(*view_.text, begin_, end_);
    item.sort = std::string(order) + label;
    return &item;
  }

  [[nodiscard]] const UseOf* use_here() const {
    for (const UseOf& use : view_.text->mentions.uses)
      if (use.begin < end_ && begin_ <= use.end) return &use;
    return nullptr;
  }
  [[nodiscard]] bool in_comment_or_string() const {
    const TextPlace place = view_.text->lines.place(begin_, ColumnUnit::utf8);
    const std::string_view before = view_.text->lines.line(place.line).substr(0, place.column);
    char quote = '\0';
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (quote != '\0' && before[i] == '\\')
        ++i;
      else if (quote != '\0')
        quote = before[i] == quote ? '\0' : quote;
      else if (before[i] == '"' || before[i] == '`')
        quote = before[i];
      else if (before.substr(i).starts_with("//"))
        return true;
    }
    return quote != '\0';
  }

  void files(const UseOf& use) {
    begin_ = use.begin + 1;
    end_ = std::max(begin_, use.end - (view_.text->text[use.end - 1] == '"' ? 1u : 0u));
    std::error_code error;
    const auto folder = std::filesystem::path(view_.text->name).parent_path();
    std::vector<std::string> siblings;
    for (std::filesystem::directory_iterator it(folder, error), last; !error && it != last;
         it.increment(error))
      if (it->path().extension() == ".pwr" && it->path().generic_string() != view_.text->name)
        siblings.push_back(it->path().filename().string());
    std::sort(siblings.begin(), siblings.end());
    for (const std::string& name : siblings) put(name, kFile, "next to this file", "1");
    for (const std::string& name : library_names())
      if (name.ends_with(".pwr")) put(name, kFile, "of the library", "2");
  }

  void names_for(const SourceText& probe, const Mention& m) {
    switch (m.kind) {
      case MentionKind::callee: callees(false); return;
      case MentionKind::reference: strategies(); return;
      case MentionKind::table: all_of(view_.symbols.tables(), kClass); return;
      case MentionKind::param: all_of(view_.symbols.params(), kConstant); return;
      case MentionKind::attribute: attributes(m.of); return;
      case MentionKind::property: properties(probe, m); return;
      case MentionKind::kind:
        for (const char* kind :
             {"int", "float", "bool", "str", "dtype", "axis", "ints", "dims", "floats", "strs"})
          put(kind, kKeyword, "", "1");
        return;
      case MentionKind::trait:
        for (const char* trait : {"commutative", "associative", "view", "collective", "effect",
                                  "splitting", "rowwise", "pointwise"})
          put(trait, kKeyword, "", "1");
        return;
      case MentionKind::name: names(probe, m); return;
      case MentionKind::row: rows(m); return;
      case MentionKind::op:
      case MentionKind::pattern:
      case MentionKind::rule:
      case MentionKind::group:
      case MentionKind::column:
      case MentionKind::pass:
      case MentionKind::pipeline:
      case MentionKind::split:
      case MentionKind::explore:
      case MentionKind::extern_:
      case MentionKind::test:
      case MentionKind::foreign: return;  // a new name
    }
  }
  void all_of(const SymbolTable::Names& names, int kind) {
    for (const auto& [name, at] : names) put(name, kind, "", "1");
  }

  /// Adds ops with their operands as a snippet; `inside`: values are also allowed there.
  void callees(bool inside) {
    for (const auto& [name, at] : view_.symbols.callees()) {
      const OutlineItem* item = item_of(at);
      Completion* put_item =
          put(print_path(name), kFunction,
              item != nullptr ? std::string(head_of(*at.text, *item)) : "", inside ? "2" : "1");
      if (put_item == nullptr) continue;
      if (item != nullptr) put_item->documentation = comment_above(*at.text, *item);
      if (!inside || !snippets_) continue;
      put_item->insert = print_path(name) + "(";
      std::size_t number = 0;
      for (MentionAt operand : SymbolTable::operands(at))
        put_item->insert +=
            fmt::format("{}${{{}:{}}}", number == 0 ? "" : ", ", number + 1, operand->name),
            ++number;
      put_item->insert += ")";
      put_item->snippet = true;
    }
  }

  void strategies() {
    for (const auto& [name, at] : view_.symbols.strategies())
      put(name, kClass, at->kind == MentionKind::rule ? "rule" : "", "1");
    for (const char* name : {"dce", "cse", "elide_clones"})
      put(name, kFunction, "built-in pass", "2");
  }

  void rows(const Mention& m) {
    const auto family = view_.symbols.strategies().find(m.of);
    if (family == view_.symbols.strategies().end() || family->second->scope == kNoScope) return;
    members(family->second.text->mentions.scopes[family->second->scope].table, MentionKind::row);
  }
  void members(const std::string& table, MentionKind kind) {
    const auto it = view_.symbols.tables().find(table);
    if (it == view_.symbols.tables().end()) return;
    for (MentionAt m : SymbolTable::members(it->second, kind))
      put(m->name, kEnumMember, table, "1");
  }
  void properties(const SourceText& probe, const Mention& m) {
    const std::string& table =
        m.scope == kNoScope ? std::string() : probe.mentions.scopes[m.scope].table;
    if (!table.empty()) members(table, MentionKind::column);
    put("shape", kField, "the dims of a value", "2");
    for (const auto& [name, at] : view_.symbols.strategies())  // `noop.` of a strategy
      if (at->kind == MentionKind::rule && at->of == m.of) put(at->name, kClass, m.of, "1");
  }

  void attributes(const std::string& callee) {
    const auto it = view_.symbols.callees().find(callee);
    if (it == view_.symbols.callees().end()) return;
    for (MentionAt a : SymbolTable::attributes(it->second))
      put(a->name, kField, "of " + callee, "1");
  }

  /// Adds names of the scope that fit the position.
  void names(const SourceText& probe, const Mention& m) {
    if (m.shorthand) return;  // the attribute determines what fits
    const bool type = m.place == NamePlace::dtype;
    if (m.scope != kNoScope)
      for (const Mention& other : probe.mentions.all)
        if (other.kind == MentionKind::name && other.scope == m.scope && fits(other, m.place))
          put(other.name, type ? kTypeParameter : kVariable, "", "1");
    if (type)
      for (int i = 0; i < kDTypeCount; ++i)
        put(std::string(name(static_cast<DType>(i))), kTypeParameter, "element type", "1");
    if (m.place == NamePlace::value && !m.declares) callees(true);
    if (m.place == NamePlace::guard || m.place == NamePlace::attribute || m.place == NamePlace::dim)
      all_of(view_.symbols.params(), kConstant);
    if (m.place == NamePlace::guard)
      for (const std::string& function : known_functions()) put(function, kFunction, "", "2");
  }
  static bool fits(const Mention& other, NamePlace place) {
    switch (place) {
      case NamePlace::value: return other.place == NamePlace::value;
      case NamePlace::dim:
      case NamePlace::sequence:
        return other.place == NamePlace::dim || other.place == NamePlace::sequence ||
               other.place == NamePlace::attribute;
      case NamePlace::dtype: return other.place == NamePlace::dtype;
      case NamePlace::attribute:
      case NamePlace::guard: return true;
    }
    return false;
  }

  const DocumentView& view_;
  bool snippets_;
  std::uint32_t begin_, end_;
  std::set<std::string> seen_;
  std::vector<Completion> out_;
};

}  // namespace

std::vector<Completion> complete(const DocumentView& view, std::uint32_t offset, bool snippets) {
  return Completing(view, offset, snippets).run();
}

}  // namespace pw::cli
