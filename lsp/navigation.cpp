#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "dsl/used_file.hpp"
#include "graph/text/text.hpp"
#include "lsp/view.hpp"

namespace pw::cli {
namespace {

constexpr std::size_t kMostFound = 500;

bool of_library(const SourceText& text) { return is_of_library(text.name); }

/// Returns the file of a `use` at the position.
std::vector<Location> used_at(const DocumentView& view, std::uint32_t offset) {
  for (const UseOf& use : view.text->mentions.uses) {
    if (offset < use.begin || offset > use.end) continue;
    const UsedFile used = find_used(view.text->name, use.path);
    const std::string name = used.embedded != nullptr
                                 ? std::string(kLibrary) + std::string(used.embedded->path)
                                 : used.path;
    for (const SourceTextPtr& text : view.texts)
      if (text->name == name) return {{view.workspace.uri_of(*text), {}}};
  }
  return {};
}

/// Returns true if the letters occur in this order, possibly with others between them.
bool holds_letters(std::string_view name, std::string_view query) {
  std::size_t at = 0;
  for (const char c : name)
    if (at < query.size() && std::tolower(static_cast<unsigned char>(c)) ==
                                 std::tolower(static_cast<unsigned char>(query[at])))
      ++at;
  return at == query.size();
}

OutlineSymbol symbol_of(const Workspace& workspace, const SourceText& text,
                        const OutlineItem& item) {
  OutlineSymbol out;
  const std::string_view word =
      text.text_of(item.begin, text.text.find_first_of(" \t\n({\"", item.begin));
  out.name = item.name.empty() ? std::string(word) : item.name;
  out.detail = word;
  out.kind = symbol_kind(item.kind);
  out.range = workspace.range(text, item.begin, item.end);
  out.name_range =
      item.name.empty()
          ? workspace.range(text, item.begin, item.begin + static_cast<std::uint32_t>(word.size()))
          : workspace.range(text, item.name_begin, item.name_end);
  return out;
}

/// Returns the replacement of one mention. A shorthand is two mentions; one keeps its name.
std::string replacement(const Mention& mention, const std::string& name) {
  const std::string printed =
      mention.kind == MentionKind::attribute ? print_word(name) : print_name(name);
  if (!mention.shorthand) return printed;
  if (mention.kind == MentionKind::attribute) return printed + " = " + print_name(mention.name);
  return print_word(mention.name) + " = " + printed;
}

/// Returns true if the scope of a name, or a declaration next to it, already has the new name.
bool is_taken(const DocumentView& view, MentionAt declared, const std::string& name) {
  if (declared->kind == MentionKind::name) {
    const std::vector<Mention>& all = declared.text->mentions.all;
    return std::any_of(all.begin(), all.end(), [&](const Mention& m) {
      return m.kind == MentionKind::name && m.scope == declared->scope && m.name == name;
    });
  }
  if (declared->kind == MentionKind::row || declared->kind == MentionKind::column) {
    const std::vector<Mention>& all = declared.text->mentions.all;
    return std::any_of(all.begin(), all.end(), [&](const Mention& m) {
      return m.kind == declared->kind && m.declares && m.of == declared->of && m.name == name;
    });
  }
  const std::string full = declared->of.empty() ? name : declared->of + "." + name;
  return view.symbols.callees().contains(name) || view.symbols.strategies().contains(full) ||
         view.symbols.tables().contains(name) || view.symbols.params().contains(name);
}

}  // namespace

std::vector<Location> locations(const Workspace& workspace,
                                const std::vector<MentionAt>& mentions) {
  std::vector<Location> out;
  std::map<const SourceText*, std::string> uris;
  for (MentionAt m : mentions) {
    std::string& uri = uris[m.text];
    if (uri.empty()) uri = workspace.uri_of(*m.text);
    if (!uri.empty()) out.push_back({uri, workspace.range(*m.text, m->begin, m->end)});
  }
  return out;
}

std::vector<Location> definition(const DocumentView& view, std::uint32_t offset) {
  std::vector<MentionAt> found;
  for (const DocumentView::Named& named : view.named_at(offset))
    if (named.declaration) found.push_back(*named.declaration);
  if (found.empty()) return used_at(view, offset);
  return locations(view.workspace, found);
}

std::vector<MentionAt> references(const DocumentView& view, MentionAt declaration,
                                  std::vector<SourceTextPtr>& texts) {
  std::vector<MentionAt> out = view.symbols.references(declaration);
  texts = view.texts;
  // A name of a scope is only used there, unless it is an attribute of an op or a pattern.
  const bool local =
      declaration->kind == MentionKind::name && declaration->place != NamePlace::attribute;
  for (const SourceTextPtr& other : local ? std::vector<SourceTextPtr>() : view.workspace.all()) {
    const bool seen_already =
        std::find(view.texts.begin(), view.texts.end(), other) != view.texts.end();
    if (seen_already || other->text.find(declaration->name) == std::string::npos) continue;
    const std::vector<SourceTextPtr> loaded = view.workspace.loaded_with(other);
    std::vector<const SourceText*> seen;
    for (const SourceTextPtr& text : loaded) seen.push_back(text.get());
    const bool loads = std::find(seen.begin(), seen.end(), declaration.text) != seen.end();
    if (!loads) continue;
    texts.insert(texts.end(), loaded.begin(), loaded.end());
    for (MentionAt m : SymbolTable(std::move(seen)).references(declaration))
      if (std::find(out.begin(), out.end(), m) == out.end()) out.push_back(m);
  }
  std::stable_sort(out.begin(), out.end(), [](MentionAt x, MentionAt y) {
    return x.text->name != y.text->name ? x.text->name < y.text->name : x->begin < y->begin;
  });
  return out;
}

std::vector<OutlineSymbol> outline(const Workspace& workspace, const SourceText& text) {
  std::vector<OutlineSymbol> out;
  std::int32_t group = -1;
  for (std::size_t i = 0; i < text.mentions.items.size(); ++i) {
    const OutlineItem& item = text.mentions.items[i];
    if (item.kind == Tok::use) continue;
    if (item.group >= 0 && item.group == group) {
      out.back().children.push_back(symbol_of(workspace, text, item));
      continue;
    }
    group = item.kind == Tok::group ? static_cast<std::int32_t>(i) : -1;
    out.push_back(symbol_of(workspace, text, item));
  }
  return out;
}

std::vector<FoundSymbol> find_symbols(const Workspace& workspace, const std::string& query) {
  std::vector<FoundSymbol> out;
  for (const SourceTextPtr& text : workspace.all()) {
    const std::string uri = workspace.uri_of(*text);
    for (const OutlineItem& item : text->mentions.items) {
      if (item.name.empty() || !holds_letters(item.name, query)) continue;
      if (out.size() == kMostFound) return out;
      std::string group;
      if (item.group >= 0) group = text->mentions.items[static_cast<std::size_t>(item.group)].name;
      out.push_back({item.name,
                     group,
                     symbol_kind(item.kind),
                     {uri, workspace.range(*text, item.name_begin, item.name_end)}});
    }
  }
  return out;
}

Renaming renaming(const DocumentView& view, std::uint32_t offset) {
  // A shorthand refers to the name that the rule binds, not to the op's attribute.
  std::optional<DocumentView::Named> at;
  for (const DocumentView::Named& named : view.named_at(offset))
    if (named.declaration) at = named;
  if (!at) return {{}, "there is no name here that a rule file declares"};
  if (of_library(*at->declaration->text))
    return {{}, fmt::format("`{}` is declared in the library", at->mention->name)};
  return {at, {}};
}

Renamed rename(const DocumentView& view, std::uint32_t offset, const std::string& name) {
  const auto [at, problem] = renaming(view, offset);
  if (!at) return {{}, problem};
  const MentionAt declared = *at->declaration;
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) >= ' ' && c != 127;
  });
  if (name.empty() || !plain) return {{}, "a name must be one non-empty line of text"};
  if (name == declared->name) return {};
  if (is_taken(view, declared, name)) return {{}, fmt::format("`{}` is already in use", name)};
  std::map<const SourceText*, FileEdits> files;
  std::vector<SourceTextPtr> texts;
  for (MentionAt m : references(view, declared, texts)) {
    FileEdits& file = files[m.text];
    if (file.uri.empty()) file.uri = view.workspace.uri_of(*m.text);
    file.edits.push_back({view.workspace.range(*m.text, m->begin, m->end), replacement(*m, name)});
  }
  Renamed out;
  for (auto& [text, file] : files) out.files.push_back(std::move(file));
  std::sort(out.files.begin(), out.files.end(),
            [](const FileEdits& a, const FileEdits& b) { return a.uri < b.uri; });
  return out;
}

}  // namespace pw::cli
