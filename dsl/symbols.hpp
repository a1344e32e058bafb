// Resolves the names of several texts: where each is declared, and where it is used.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/editing/mentions.hpp"
#include "dsl/syntax/text_lines.hpp"

namespace pw {

/// A text and its tokens and mentions. Not movable: its parts refer to the text.
struct SourceText {
  SourceText(std::string called, std::string content);
  SourceText(const SourceText&) = delete;
  SourceText& operator=(const SourceText&) = delete;

  const std::string name;  ///< a path, or `<library>/…`
  const std::string text;
  const TextLines lines;
  const Mentions mentions;

  /// Returns the mentions at a place, or directly before it: two for a shorthand.
  [[nodiscard]] std::vector<std::uint32_t> at(std::uint32_t offset) const;
  /// Returns the innermost item at an offset; -1 between items.
  [[nodiscard]] std::int32_t item_at(std::uint32_t offset) const;
  [[nodiscard]] std::string_view text_of(std::uint32_t begin, std::uint32_t end) const {
    return std::string_view(text).substr(begin, end - begin);
  }
};
using SourceTextPtr = std::shared_ptr<const SourceText>;

/// A mention of a text.
struct MentionAt {
  const SourceText* text = nullptr;
  std::uint32_t index = 0;
  [[nodiscard]] const Mention& operator*() const { return text->mentions.all[index]; }
  [[nodiscard]] const Mention* operator->() const { return &**this; }
  friend bool operator==(MentionAt, MentionAt) = default;
};

class SymbolTable {
 public:
  /// Creates a table of texts that are loaded together; they must outlive it.
  explicit SymbolTable(std::vector<const SourceText*> texts);

  /// Returns the place where the name is declared, or bound first; nothing for built-in names.
  [[nodiscard]] std::optional<MentionAt> declaration(MentionAt mention) const;
  /// Returns all mentions of a declaration, itself included, by text and place.
  [[nodiscard]] std::vector<MentionAt> references(MentionAt declaration) const;

  using Names = std::map<std::string, MentionAt, std::less<>>;
  [[nodiscard]] const Names& callees() const { return callees_; }  ///< ops, patterns, externs
  [[nodiscard]] const Names& strategies() const { return strategies_; }
  [[nodiscard]] const Names& tables() const { return tables_; }
  [[nodiscard]] const Names& params() const { return params_; }
  /// Returns the attributes that an op or a pattern declares, in order.
  [[nodiscard]] static std::vector<MentionAt> attributes(MentionAt callee);
  /// Returns the operands of an op or a pattern, in order.
  [[nodiscard]] static std::vector<MentionAt> operands(MentionAt callee);
  /// Returns the rows or columns of a table.
  [[nodiscard]] static std::vector<MentionAt> members(MentionAt table, MentionKind kind);

 private:
  [[nodiscard]] std::optional<MentionAt> local(MentionAt mention) const;
  [[nodiscard]] std::optional<MentionAt> member(std::string_view table, MentionKind kind,
                                                std::string_view name) const;
  [[nodiscard]] bool may_mean(const Mention& mention, const Mention& declared) const;

  std::vector<const SourceText*> texts_;
  Names callees_, strategies_, tables_, params_;
};

}  // namespace pw
