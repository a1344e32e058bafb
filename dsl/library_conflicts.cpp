#include "dsl/library_conflicts.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "dsl/build/declare_op.hpp"
#include "dsl/editing/mentions.hpp"
#include "dsl/editing/rename_items.hpp"
#include "dsl/same_op.hpp"
#include "dsl/syntax/suggest.hpp"

namespace pw {
namespace {

using Space = NewNames ItemNames::*;
constexpr Space kSpaces[] = {&ItemNames::callees, &ItemNames::strategies, &ItemNames::params,
                             &ItemNames::tables,  &ItemNames::externs,    &ItemNames::splits,
                             &ItemNames::tests,   &ItemNames::explores};

/// Declaration of an item.
struct Declared {
  std::string what, name;
  Span place, whole;
  Space space = nullptr;
  bool data = false;  ///< items with the same text are equal
};

template <class Item>
std::optional<Declared> named(const char* what, const Item& item, Space space, bool data = false) {
  Span place = item.span;
  if constexpr (requires { item.name_span; }) place = item.name_span;
  return Declared{what, item.name, place, item.span, space, data};
}

std::optional<Declared> declared_by(const ast::Use&) { return std::nullopt; }
std::optional<Declared> declared_by(const ast::ForeignItem&) { return std::nullopt; }
std::optional<Declared> declared_by(const ast::GraphItem&) { return std::nullopt; }
std::optional<Declared> declared_by(const ast::Capture& c) {
  return Declared{"capture", "capture", c.span, c.span, nullptr};
}
auto declared_by(const ast::Param& i) { return named("param", i, &ItemNames::params, true); }
auto declared_by(const ast::Extern& i) { return named("extern", i, &ItemNames::externs, true); }
auto declared_by(const ast::OpItem& i) { return named("op", i, &ItemNames::callees); }
auto declared_by(const ast::Table& i) { return named("table", i, &ItemNames::tables, true); }
auto declared_by(const ast::Pattern& i) { return named("pattern", i, &ItemNames::callees, true); }
auto declared_by(const ast::Rule& i) { return named("rule", i, &ItemNames::strategies); }
auto declared_by(const ast::Group& i) { return named("group", i, &ItemNames::strategies); }
auto declared_by(const ast::Pass& i) { return named("pass", i, &ItemNames::strategies); }
auto declared_by(const ast::Pipeline& i) { return named("pipeline", i, &ItemNames::strategies); }
auto declared_by(const ast::Split& i) { return named("split", i, &ItemNames::splits); }
auto declared_by(const ast::Explore& i) { return named("explore", i, &ItemNames::explores); }
auto declared_by(const ast::Test& i) { return named("test", i, &ItemNames::tests); }
std::optional<Declared> declaration(const ast::Item& item) {
  return std::visit([](const auto& i) { return declared_by(i); }, item);
}

std::string without_spaces(std::string_view text) {
  std::string out;
  std::copy_if(text.begin(), text.end(), std::back_inserter(out),
               [](char c) { return c != ' ' && c != '\n' && c != '\t' && c != '\r'; });
  return out;
}

class ConflictResolver {
 public:
  ConflictResolver(Context& context, std::vector<ast::File>& files,
                   const std::vector<std::set<std::size_t>>& uses, Diagnostics& out)
      : context_(context), files_(files), uses_(uses), out_(out), own_(files.size()) {}

  void run() {
    for (std::size_t i = 0; i < files_.size(); ++i)
      if (in_library(i)) note_library(files_[i]);
    for (std::size_t i = 0; i < files_.size(); ++i)
      if (!in_library(i)) compare(i);
    if (own_captures_) drop_library_captures();
    for (std::size_t i = 0; i < files_.size(); ++i) rename_items(files_[i], names_in(i));
  }

 private:
  [[nodiscard]] bool in_library(std::size_t file) const {
    return is_in_library(context_, {files_[file].source, 0, 0});
  }
  [[nodiscard]] const std::string& file_name(SourceId source) const {
    return context_.sources.name(source);
  }

  void note_library(const ast::File& file) {
    for (const ast::Item& item : file.items)
      if (auto declared = declaration(item)) library_.push_back(std::move(*declared));
  }
  [[nodiscard]] const Declared* in_library(const Declared& mine) const {
    for (const Declared& other : library_)
      if (other.space == mine.space && other.name == mine.name) return &other;
    return nullptr;
  }

  void compare(std::size_t file) {
    std::erase_if(files_[file].items, [&](ast::Item& item) {
      const auto mine = declaration(item);
      return mine && !keep(file, item, *mine);
    });
  }

  /// Returns false if the item repeats the library's declaration.
  bool keep(std::size_t file, ast::Item& item, const Declared& mine) {
    if (const auto* op = std::get_if<ast::OpItem>(&item); op != nullptr && !keep_op(file, *op))
      return false;
    if (std::holds_alternative<ast::Pattern>(item)) keep_pattern(file, mine);
    const Declared* other = in_library(mine);
    if (other == nullptr) return true;
    if (mine.what == "capture") {
      own_captures_ = true;
      out_.push_back(shadows_library(mine.what, mine.name, mine.place, other->place,
                                     "the library's sizes are ignored"));
      return true;
    }
    if (mine.data && other->data && same_text(mine.whole, other->whole)) return false;
    if (own_[file].callees.contains(mine.name) && mine.space == &ItemNames::callees) return true;
    displace(mine, *other);
    (own_[file].*mine.space).emplace(mine.name, mine.name);
    return true;
  }

  [[nodiscard]] bool same_text(Span a, Span b) const {
    return without_spaces(context_.sources.text(a)) == without_spaces(context_.sources.text(b));
  }

  /// Keeps the name for the library's op, since graphs are imported to it.
  bool keep_op(std::size_t file, const ast::OpItem& item) {
    const OpId known = context_.ops.find(item.name);
    if (item.imported || !known.valid() || !is_in_library(context_, context_.ops[known].span))
      return true;
    Diagnostics wrong;  // declaring reports them
    const std::optional<Op> op = lower_op(context_, item, wrong);
    if (!op) return true;
    if (says_the_same(context_.ops[known], *op)) return false;
    const std::string name = name_beside_library(context_, file_name(files_[file].source), *op);
    own_[file].callees.insert_or_assign(item.name, name);
    out_.push_back(shadows_library(
        "op", item.name, item.name_span, context_.ops[known].span,
        "graphs call it " + in_ticks(name) +
            "; declare it as the library does to use the library's op, or rename it"));
    return true;
  }

  void keep_pattern(std::size_t file, const Declared& mine) {
    const OpId known = context_.ops.find(mine.name);
    if (!known.valid() || !is_in_library(context_, context_.ops[known].span)) return;
    Op named;
    named.name = mine.name;
    own_[file].callees.insert_or_assign(
        mine.name, name_beside_library(context_, file_name(files_[file].source), named));
    Diagnostic d = shadows_library("pattern", mine.name, mine.place, context_.ops[known].span,
                                   "rename the pattern to call the op");
    d.message = "pattern " + in_ticks(mine.name) + " has the name of an op of the library";
    out_.push_back(std::move(d));
  }

  void displace(const Declared& mine, const Declared& library) {
    const std::string stem = std::filesystem::path(file_name(library.place.source)).stem().string();
    const std::string name = stem + "." + mine.name;
    (displaced_.*mine.space).emplace(mine.name, name);
    out_.push_back(shadows_library(mine.what, mine.name, mine.place, library.place,
                                   "the library's is called " + in_ticks(name) + " in this run"));
  }

  void drop_library_captures() {
    for (std::size_t i = 0; i < files_.size(); ++i)
      if (in_library(i))
        std::erase_if(files_[i].items, [](const ast::Item& item) {
          return std::holds_alternative<ast::Capture>(item);
        });
  }

  /// Returns a file's own names, then those of the files that it uses, then the library's.
  ItemNames names_in(std::size_t file) {
    if (in_library(file)) return displaced_;
    ItemNames out = own_[file];
    for (const std::size_t used : uses_[file])
      for (const Space space : kSpaces)
        for (const auto& [name, now] : own_[used].*space) add(file, out.*space, name, now);
    for (const Space space : kSpaces)
      for (const auto& [name, now] : displaced_.*space) (out.*space).emplace(name, now);
    return out;
  }

  void add(std::size_t file, NewNames& names, const std::string& name, const std::string& now) {
    const auto [it, fresh] = names.emplace(name, now);
    if (fresh || it->second == now || own_[file].callees.contains(name)) return;
    const Mentions mentions = find_mentions(context_.sources.text(files_[file].source));
    if (std::none_of(mentions.all.begin(), mentions.all.end(), [&](const Mention& m) {
          return m.kind == MentionKind::callee && m.name == name;
        }))
      return;
    out_.push_back(error_at(
        use_of(files_[file]), "PW0207",
        in_ticks(name) + " means two ops here: " + in_ticks(it->second) + " and " + in_ticks(now),
        "write the full name, or use only one of the two files"));
  }
  static Span use_of(const ast::File& file) {
    for (const ast::Item& item : file.items)
      if (const auto* use = std::get_if<ast::Use>(&item)) return use->span;
    return {file.source, 0, 0};
  }

  Context& context_;
  std::vector<ast::File>& files_;
  const std::vector<std::set<std::size_t>>& uses_;
  Diagnostics& out_;
  std::vector<Declared> library_;
  std::vector<ItemNames> own_;  ///< by file: new names of its own items
  ItemNames displaced_;         ///< names of the library's files that a user's item took
  bool own_captures_ = false;
};

}  // namespace

void resolve_library_conflicts(Context& context, std::vector<ast::File>& files,
                               const std::vector<std::set<std::size_t>>& uses, Diagnostics& out) {
  ConflictResolver(context, files, uses, out).run();
}

}  // namespace pw
