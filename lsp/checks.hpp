// Slow computations of the server: checks of a document, analysis of its rules, and match counts.
// Each is a pure function that runs on its own thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "dsl/symbols.hpp"
#include "dsl/syntax/draft.hpp"

namespace pw::cli {

struct CheckJob {
  std::string uri, path;
  std::int64_t version = 0;
  SourceTextPtr text;
  std::map<std::string, std::string> unsaved;  ///< by real path; includes the text itself
  std::string graph;                           ///< graph for match counts; none if empty
};

/// A diagnostic with its range in the checked text.
struct FoundDiagnostic {
  std::uint32_t begin = 0, end = 0;
  Severity severity = Severity::error;
  std::string code, message, help;
  struct Related {
    std::string file;  ///< a path, or `<library>/…`
    LineColumn begin, end;
    std::string text;
  };
  std::vector<Related> related;
};

/// The results of `pwr check` on the text.
struct CheckedDocument {
  std::string uri;
  std::int64_t version = 0;
  SourceTextPtr text;
  std::vector<FoundDiagnostic> found;
  std::map<std::string, std::string, std::less<>> types;  ///< by type_key()
  std::shared_ptr<Draft>
      draft;  ///< input of analyse_document() if there are no errors; otherwise null
};
[[nodiscard]] CheckedDocument check_document(const CheckJob& job);
/// Returns the diagnostics with ranges in the text. A diagnostic of another file is placed at the
/// `use` that leads to it, or at the beginning.
[[nodiscard]] std::vector<FoundDiagnostic> found_in(const SourceText& text,
                                                    const SourceMap& sources,
                                                    const Diagnostics& diagnostics);

/// Returns a key of a name by its item and scope, which remains valid when the text moves.
[[nodiscard]] std::string type_key(const SourceText& text, const Mention& mention);

struct RuleCounts {
  std::size_t matches = 0, near_misses = 0;
  std::string text;  ///< explanation of near misses, as from `pwr explain`
};
/// Returns "64 matches · 3 near misses in model.json".
[[nodiscard]] std::string lens_title(const RuleCounts& counts, const std::string& graph);
struct AnalysedDocument {
  std::string uri;
  std::int64_t version = 0;
  std::vector<FoundDiagnostic>
      found;          ///< warnings about rules that compete, never fire, or may not terminate
  std::string graph;  ///< its file name
  std::string graph_problem;                 ///< why it could not be read
  std::map<std::string, RuleCounts> counts;  ///< by rule of this text
};
[[nodiscard]] AnalysedDocument analyse_document(const CheckJob& job, Draft& draft);

/// The verdicts on the rules of a text; may take seconds.
struct JudgedDocument {
  std::string uri;
  std::int64_t version = 0;
  std::vector<FoundDiagnostic> found;           ///< rules that change numbers or may overflow
  std::map<std::string, std::string> verdicts;  ///< by rule, as `pwr verify` prints them
};
[[nodiscard]] JudgedDocument judge_document(const CheckJob& job, Draft& draft);

}  // namespace pw::cli
