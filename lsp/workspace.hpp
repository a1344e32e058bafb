// The open texts, the texts that they use, and those in the workspace folders.
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
  SourceTextPtr text;  ///< its name is the path, or the URI if it does not denote a file
};

class Workspace {
 public:
  ColumnUnit unit = ColumnUnit::utf16;
  std::vector<std::string> folders;  ///< paths

  void open(const std::string& uri, std::int64_t version, std::string text);
  void close(const std::string& uri);
  /// Applies edits in order; false if the document is not open.
  bool change(const std::string& uri, std::int64_t version,
              const std::vector<ContentChange>& changes);
  [[nodiscard]] const OpenDocument* find(const std::string& uri) const;
  [[nodiscard]] const std::map<std::string, OpenDocument>& documents() const { return documents_; }

  /// Returns the text with everything that it loads: the transitive closure of `use`, and the
  /// library's ops.
  [[nodiscard]] std::vector<SourceTextPtr> loaded_with(const SourceTextPtr& root) const;
  /// Returns open documents and rule files of the folders, at most 2000.
  [[nodiscard]] std::vector<SourceTextPtr> all() const;
  /// Returns the open texts by real path, for LoadOptions::unsaved.
  [[nodiscard]] std::map<std::string, std::string> unsaved() const;

  /// Returns a URI that a client can open. Library texts are written to the user's cache unless a
  /// folder contains them unchanged. Empty on failure.
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

/// Returns a library text, cached.
[[nodiscard]] SourceTextPtr library_text(const std::string& path);

}  // namespace pw::cli
