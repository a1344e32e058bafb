// A document as requests see it: its text, the texts loaded with it, and the targets of its names.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lsp/workspace.hpp"

namespace pw::cli {

using TypesByName = std::map<std::string, std::string, std::less<>>;

struct DocumentView {
  /// `types` come from the last check, by type_key(), and must outlive this.
  DocumentView(const Workspace& of, SourceTextPtr document, const TypesByName& known);

  [[nodiscard]] std::uint32_t offset(TextPlace place) const {
    return text->lines.offset(place, workspace.unit);
  }
  /// The mention at a position, and its declaration; either may be absent.
  struct Named {
    MentionAt mention;
    std::optional<MentionAt> declaration;
  };
  [[nodiscard]] std::vector<Named> named_at(std::uint32_t offset) const;
  [[nodiscard]] std::optional<std::string> type_of(MentionAt name) const;
  [[nodiscard]] TextRange range(MentionAt at) const {
    return workspace.range(*at.text, at->begin, at->end);
  }

  const Workspace& workspace;
  SourceTextPtr text;
  std::vector<SourceTextPtr> texts;  ///< the document first
  SymbolTable symbols;
  const TypesByName& types;
};

/// Returns the item of a declaration; null if there is none.
[[nodiscard]] const OutlineItem* item_of(MentionAt declaration);
/// Returns the comment lines directly above an item, without `//`.
[[nodiscard]] std::string comment_above(const SourceText& text, const OutlineItem& item);
/// Returns an item's text before its body.
[[nodiscard]] std::string_view head_of(const SourceText& text, const OutlineItem& item);
/// Returns the protocol's SymbolKind.
[[nodiscard]] int symbol_kind(Tok item);

// ---- one function for each request; nothing if there is no result

[[nodiscard]] std::optional<HoverText> hover(const DocumentView& view, std::uint32_t offset);
[[nodiscard]] std::vector<Location> definition(const DocumentView& view, std::uint32_t offset);
/// Returns the references in the document and in every text that loads the declaration; `texts`
/// keeps these alive.
[[nodiscard]] std::vector<MentionAt> references(const DocumentView& view, MentionAt declaration,
                                                std::vector<SourceTextPtr>& texts);
[[nodiscard]] std::vector<Location> locations(const Workspace& workspace,
                                              const std::vector<MentionAt>& mentions);
[[nodiscard]] std::vector<OutlineSymbol> outline(const Workspace& workspace,
                                                 const SourceText& text);
[[nodiscard]] std::vector<FoundSymbol> find_symbols(const Workspace& workspace,
                                                    const std::string& query);
[[nodiscard]] std::vector<Completion> complete(const DocumentView& view, std::uint32_t offset,
                                               bool snippets);
[[nodiscard]] std::optional<SignatureText> signature(const DocumentView& view,
                                                     std::uint32_t offset);
[[nodiscard]] std::vector<TypeHint> type_hints(const DocumentView& view, std::uint32_t begin,
                                               std::uint32_t end);
/// Returns the protocol's encoding: five numbers for each token.
[[nodiscard]] std::vector<std::uint32_t> semantic_tokens(const DocumentView& view,
                                                         std::uint32_t begin, std::uint32_t end);

/// The name to be renamed at a position, or why renaming is impossible.
struct Renaming {
  std::optional<DocumentView::Named> at;
  std::string problem;
};
[[nodiscard]] Renaming renaming(const DocumentView& view, std::uint32_t offset);
/// The edits of a rename, or why it is impossible.
struct Renamed {
  std::vector<FileEdits> files;
  std::string problem;
};
[[nodiscard]] Renamed rename(const DocumentView& view, std::uint32_t offset,
                             const std::string& name);

}  // namespace pw::cli
