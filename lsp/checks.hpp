// What takes longer than an answer may: checking a document, and then analysing its rules and
// counting their matches. Each is a function of what it is given, and runs on a thread of its own.
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
  std::map<std::string, std::string> unsaved;  ///< by real path; holds the text itself, too
  std::string graph;                           ///< lenses count in it; empty: none
};

/// A diagnostic with its place in the text that was checked.
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

/// What `pwr check` says of the text, in its place.
struct CheckedDocument {
  std::string uri;
  std::int64_t version = 0;
  SourceTextPtr text;
  std::vector<FoundDiagnostic> found;
  std::map<std::string, std::string, std::less<>> types;  ///< by type_key()
  std::shared_ptr<Draft> draft;  ///< for analyse_document(), if there are no errors; else null
};
[[nodiscard]] CheckedDocument check_document(const CheckJob& job);
/// Diagnostics of `sources` with their places in the text; one of another text is placed at the
/// `use` that leads there, or at the beginning.
[[nodiscard]] std::vector<FoundDiagnostic> found_in(const SourceText& text,
                                                    const SourceMap& sources,
                                                    const Diagnostics& diagnostics);

/// A name by its item and its scope there, so that a type is found again after the text moved.
[[nodiscard]] std::string type_key(const SourceText& text, const Mention& mention);

struct RuleCounts {
  std::size_t matches = 0, near_misses = 0;
  std::string text;  ///< why the nearest places do not match, as `pwr explain` has it
};
/// "64 matches · 3 near misses in model.json"
[[nodiscard]] std::string lens_title(const RuleCounts& counts, const std::string& graph);
struct AnalysedDocument {
  std::string uri;
  std::int64_t version = 0;
  std::vector<FoundDiagnostic> found;  ///< warnings of rules that compete, never fire, may not end
  std::string graph;                   ///< its file name
  std::string graph_problem;           ///< why it was not read
  std::map<std::string, RuleCounts> counts;  ///< by rule, of this text only
};
[[nodiscard]] AnalysedDocument analyse_document(const CheckJob& job, Draft& draft);

/// The verdicts on the rules of a text, which may take seconds.
struct JudgedDocument {
  std::string uri;
  std::int64_t version = 0;
  std::vector<FoundDiagnostic> found;           ///< rules that change numbers or may overflow
  std::map<std::string, std::string> verdicts;  ///< by rule, as `pwr verify` prints them
};
[[nodiscard]] JudgedDocument judge_document(const CheckJob& job, Draft& draft);

}  // namespace pw::cli
