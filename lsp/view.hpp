// One document as requests see it: its text, what is loaded with it, and what its names refer to.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lsp/workspace.hpp"

namespace pw::cli {

using TypesByName = std::map<std::string, std::string, std::less<>>;

struct DocumentView {
  /// `types` are those of the last check, by type_key(); must outlive this.
  DocumentView(const Workspace& of, SourceTextPtr document, const TypesByName& known);

  [[nodiscard]] std::uint32_t offset(TextPlace place) const {
    return text->lines.offset(place, workspace.unit);
  }
  /// What stands at a place, and where it is declared: nothing for either.
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

/// The item that holds a declaration; null where a text has none there.
[[nodiscard]] const OutlineItem* item_of(MentionAt declaration);
/// The lines of comments directly above it, without `//`.
[[nodiscard]] std::string comment_above(const SourceText& text, const OutlineItem& item);
/// An item's text up to its body.
[[nodiscard]] std::string_view head_of(const SourceText& text, const OutlineItem& item);
/// SymbolKind of the protocol.
[[nodiscard]] int symbol_kind(Tok item);

// ---- one function a request; nothing where there is nothing to say

[[nodiscard]] std::optional<HoverText> hover(const DocumentView& view, std::uint32_t offset);
[[nodiscard]] std::vector<Location> definition(const DocumentView& view, std::uint32_t offset);
/// In the document, and in every text that the declaration is loaded into; `texts` keeps them.
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
/// Five numbers a token, as the protocol has them.
[[nodiscard]] std::vector<std::uint32_t> semantic_tokens(const DocumentView& view,
                                                         std::uint32_t begin, std::uint32_t end);

/// The name that can be changed at a place, or why none can.
struct Renaming {
  std::optional<DocumentView::Named> at;
  std::string problem;
};
[[nodiscard]] Renaming renaming(const DocumentView& view, std::uint32_t offset);
/// The edits, or why there are none.
struct Renamed {
  std::vector<FileEdits> files;
  std::string problem;
};
[[nodiscard]] Renamed rename(const DocumentView& view, std::uint32_t offset,
                             const std::string& name);

}  // namespace pw::cli
