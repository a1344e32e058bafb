#include "lsp/document_checks.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/io/own_folders.hpp"
#include "dsl/used_file.hpp"
#include "lsp/uris.hpp"

namespace pw::cli {
namespace {

constexpr std::chrono::milliseconds kDebounce{150};
constexpr std::int64_t kLongestDebounce = 10'000;

PublishedDiagnostic published(const Workspace& workspace, const SourceText& text,
                              const FoundDiagnostic& d) {
  PublishedDiagnostic out;
  out.range = workspace.range(text, d.begin, d.end);
  out.severity = d.severity == Severity::error ? 1 : d.severity == Severity::warning ? 2 : 3;
  out.code = d.code;
  out.message = d.message;
  for (const FoundDiagnostic::Related& r : d.related) {
    const auto place = [](LineColumn at) { return TextPlace{at.line - 1, at.column - 1}; };
    TextRange range{place(r.begin), place(r.end)};  // in bytes, if the text is not available
    const SourceTextPtr library =
        r.file.starts_with(kLibrary) ? library_text(r.file.substr(kLibrary.size())) : nullptr;
    const SourceText* at = r.file == text.name ? &text : library.get();
    if (at != nullptr)
      range = workspace.range(*at, at->lines.offset(range.start, ColumnUnit::utf8),
                              at->lines.offset(range.end, ColumnUnit::utf8));
    const std::string uri =
        at != nullptr ? workspace.uri_of(*at) : uri_of_path(real_path(r.file).generic_string());
    if (!uri.empty()) out.related.push_back({{uri, range}, r.text});
  }
  return out;
}

}  // namespace

void DocumentChecks::configure(const Settings& settings, const ClientCan& client) {
  settings_ = settings;
  client_ = client;
}

void DocumentChecks::configure(const Settings& settings) {
  if (settings.graph) settings_.graph = settings.graph;
  if (settings.debounce_ms) settings_.debounce_ms = settings.debounce_ms;
  schedule();
}

void DocumentChecks::opened(const std::string& uri) {
  results_.erase(uri);
  schedule();
  due_[uri] = Clock::now();
}

void DocumentChecks::closed(const std::string& uri) {
  results_.erase(uri);
  due_.erase(uri);
  send_(diagnostics_message(uri, 0, {}));
  schedule();
}

void DocumentChecks::schedule(const std::string& changed) {
  const std::chrono::milliseconds wait = settings_.debounce_ms
                                             ? std::chrono::milliseconds(std::clamp<std::int64_t>(
                                                   *settings_.debounce_ms, 0, kLongestDebounce))
                                             : kDebounce;
  const Clock::time_point now = Clock::now();
  for (const auto& [uri, document] : workspace_.documents())
    due_[uri] = now + (uri == changed ? wait : 2 * wait);
}

const DocumentChecks::Results* DocumentChecks::results(const std::string& uri) const {
  const auto found = results_.find(uri);
  return found == results_.end() ? nullptr : &found->second;
}

DocumentChecks::Results* DocumentChecks::current(const std::string& uri, std::int64_t version) {
  const auto found = results_.find(uri);
  const bool is_current =
      found != results_.end() && found->second.checked && found->second.checked->version == version;
  return is_current ? &found->second : nullptr;
}

std::optional<DocumentChecks::Clock::time_point> DocumentChecks::next_check() const {
  std::optional<Clock::time_point> out;
  for (const auto& [uri, due] : due_)
    if (!out || due < *out) out = due;
  return out;
}

std::optional<CheckJob> DocumentChecks::take_check() {
  const auto first = std::min_element(
      due_.begin(), due_.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (first == due_.end() || first->second > Clock::now()) return {};
  const OpenDocument* document = workspace_.find(first->first);
  due_.erase(first);
  if (document == nullptr) return {};
  return CheckJob{document->uri,  document->text->name, document->version,
                  document->text, workspace_.unsaved(), graph_of(*document)};
}

void DocumentChecks::checked(CheckedDocument result) {
  const OpenDocument* document = workspace_.find(result.uri);
  if (document == nullptr || document->text != result.text) return;  // another check is due
  const std::string uri = result.uri;
  Results& results = results_[uri];
  const auto same = [&](const Analysis& a) { return a.job.uri == uri; };
  std::erase_if(analyses_, same);
  std::erase_if(judgings_, same);
  if (result.draft) {
    CheckJob job{uri, document->text->name, result.version, result.text, {}, graph_of(*document)};
    analyses_.push_back({job, result.draft});
    judgings_.push_back({std::move(job), std::move(result.draft)});
  } else {
    results.analysed.reset();
    results.judged.reset();
  }
  const bool types = !results.checked || results.checked->types != result.types;
  results.checked = std::move(result);
  publish(uri);
  if (types && client_.refresh_hints) refresh("workspace/inlayHint/refresh");
}

std::optional<DocumentChecks::Analysis> DocumentChecks::take_analysis() {
  if (analyses_.empty()) return {};
  Analysis out = std::move(analyses_.front());
  analyses_.pop_front();
  return out;
}

void DocumentChecks::analysed(AnalysedDocument result) {
  Results* results = current(result.uri, result.version);
  if (results == nullptr) return;
  const bool lenses = !result.counts.empty() || !result.graph_problem.empty();
  const bool warnings = !result.found.empty();
  const std::string uri = result.uri;
  results->analysed = std::move(result);
  if (warnings) publish(uri);
  if (lenses && client_.refresh_lenses) refresh("workspace/codeLens/refresh");
}

std::optional<DocumentChecks::Analysis> DocumentChecks::take_judging() {
  if (!analyses_.empty() || judgings_.empty()) return {};
  Analysis out = std::move(judgings_.front());
  judgings_.pop_front();
  return out;
}

void DocumentChecks::judged(JudgedDocument result) {
  Results* results = current(result.uri, result.version);
  if (results == nullptr) return;
  const std::string uri = result.uri;
  const bool warnings = !result.found.empty();
  results->judged = std::move(result);
  if (warnings) publish(uri);
}

void DocumentChecks::publish(const std::string& uri) {
  const Results& results = results_[uri];
  std::vector<PublishedDiagnostic> out;
  const SourceText& text = *results.checked->text;
  for (const FoundDiagnostic& d : results.checked->found)
    out.push_back(published(workspace_, text, d));
  if (results.analysed && results.analysed->version == results.checked->version)
    for (const FoundDiagnostic& d : results.analysed->found)
      out.push_back(published(workspace_, text, d));
  if (results.judged && results.judged->version == results.checked->version)
    for (const FoundDiagnostic& d : results.judged->found)
      out.push_back(published(workspace_, text, d));
  send_(diagnostics_message(uri, results.checked->version, out));
}

void DocumentChecks::refresh(std::string_view method) {
  send_(request_message(++requests_, method));
}

/// Returns the configured graph, relative to the document's or the workspace's folder; otherwise a
/// graph next to the rules with the same name.
std::string DocumentChecks::graph_of(const OpenDocument& document) const {
  namespace fs = std::filesystem;
  const fs::path path(document.text->name);
  std::error_code error;
  if (settings_.graph && !settings_.graph->empty()) {
    std::vector<fs::path> folders{path.parent_path()};
    for (const std::string& folder : workspace_.folders) folders.emplace_back(folder);
    for (const fs::path& folder : folders)
      if (fs::is_regular_file(folder / *settings_.graph, error))
        return (folder / *settings_.graph).generic_string();
    return *settings_.graph;
  }
  for (const char* ending : {".pwg", ".json", ".fx.txt"}) {
    fs::path near = path;
    near.replace_extension(ending);
    if (fs::is_regular_file(near, error)) return near.generic_string();
  }
  return {};
}

}  // namespace pw::cli
