// The texts that an editor has open, those they use, and those of its folders.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/symbols.hpp"
#include "lsp/protocol.hpp"

namespace pw::cli {

struct OpenDocument {
  std::string uri;
  std::int64_t version = 0;
  SourceTextPtr text;  ///< its name is the path, or the URI where that is no file's
};

class Workspace {
 public:
  ColumnUnit unit = ColumnUnit::utf16;
  std::vector<std::string> folders;  ///< paths

  void open(const std::string& uri, std::int64_t version, std::string text);
  void close(const std::string& uri);
  /// Applies edits one after another. False where the document is not open.
  bool change(const std::string& uri, std::int64_t version,
              const std::vector<ContentChange>& changes);
  [[nodiscard]] const OpenDocument* find(const std::string& uri) const;
  [[nodiscard]] const std::map<std::string, OpenDocument>& documents() const { return documents_; }

  /// The text and all that is loaded with it: what it uses, over any number of steps, and the ops
  /// of the library.
  [[nodiscard]] std::vector<SourceTextPtr> loaded_with(const SourceTextPtr& root) const;
  /// Open documents and the rule files of the folders, 2000 at most.
  [[nodiscard]] std::vector<SourceTextPtr> all() const;
  /// By real path: what LoadOptions::unsaved takes.
  [[nodiscard]] std::map<std::string, std::string> unsaved() const;

  /// A text of the library is written into the user's cache, unless a folder holds it as it is:
  /// then a client can open it. Empty where that fails.
  [[nodiscard]] std::string uri_of(const SourceText& text) const;
  [[nodiscard]] TextRange range(const SourceText& text, std::uint32_t begin,
                                std::uint32_t end) const {
    return {text.lines.place(begin, unit), text.lines.place(end, unit)};
  }

 private:
  [[nodiscard]] SourceTextPtr file(const std::string& path) const;

  std::map<std::string, OpenDocument> documents_;  // by URI
  struct Kept {
    std::string stamp;
    SourceTextPtr text;
  };
  mutable std::map<std::string, Kept> files_;  // by path
};

/// The text of the library, read once.
[[nodiscard]] SourceTextPtr library_text(const std::string& path);

}  // namespace pw::cli
