#include "lsp/server.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/io/file.hpp"
#include "base/io/own_folders.hpp"
#include "base/version.hpp"
#include "dsl/used_file.hpp"
#include "lsp/actions.hpp"
#include "lsp/uris.hpp"
#include "pipeline/format.hpp"

namespace pw::cli {
namespace {

constexpr std::chrono::milliseconds kDebounce{150};
constexpr std::int64_t kLongestDebounce = 10'000;

tl::unexpected<RpcError> refusal(int code, std::string why) {
  return tl::unexpected(RpcError{code, std::move(why)});
}

/// Returns one edit from the first different line to the last, so that other lines do not move.
std::vector<TextEdit> difference(const Workspace& workspace, const SourceText& from,
                                 const std::string& to) {
  const std::string& a = from.text;
  if (a == to) return {};
  std::size_t begin = 0;
  while (begin < a.size() && begin < to.size() && a[begin] == to[begin]) ++begin;
  std::size_t same = 0;
  while (same < a.size() - begin && same < to.size() - begin &&
         a[a.size() - 1 - same] == to[to.size() - 1 - same])
    ++same;
  // Whole lines, so that no character is split.
  while (begin > 0 && a[begin - 1] != '\n') --begin;
  while (same > 0 && a[a.size() - same - 1] != '\n') --same;
  const std::size_t end = a.size() - same;
  return {
      {workspace.range(from, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)),
       to.substr(begin, to.size() - same - begin)}};
}

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

/// Merges consecutive changes of the same document: only the last text is read.
bool join(Message& last, Message& next) {
  constexpr std::string_view kChange = "textDocument/didChange";
  if (last.method != kChange || next.method != kChange || !last.params.uri ||
      last.params.uri != next.params.uri || last.id.index() != 0 || next.id.index() != 0)
    return false;
  std::vector<ContentChange>& changes = last.params.changes;
  for (ContentChange& change : next.params.changes) {
    if (!change.range) changes.clear();  // it replaces the whole text
    changes.push_back(std::move(change));
  }
  last.params.version = next.params.version;
  return true;
}

}  // namespace

// ---- messages

void Server::refuse_frame(const std::string& problem) {
  send_(error_message({}, {kParseError, problem}));
}

void Server::put(Message message, std::size_t bytes) {
  if (message.method == "shutdown" && !shutdown_due_) shutdown_due_ = Clock::now() + kPatience;
  waiting_bytes_ += bytes;
  if (!waiting_.empty() && join(waiting_.back().message, message))
    waiting_.back().bytes += bytes;
  else
    waiting_.push_back({std::move(message), bytes});
}

void Server::cancel(const MessageId& id) {
  const auto it = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& waiting) {
    return waiting.message.id.index() != 0 && waiting.message.id == id;
  });
  if (it == waiting_.end()) return;  // answered already
  send_(error_message(it->message.id, {kRequestCancelled, "cancelled"}));
  if (it->message.method == "shutdown") shutdown_due_.reset();
  waiting_bytes_ -= it->bytes;
  waiting_.erase(it);
}

void Server::receive(const std::string& content) {
  std::size_t bytes = content.size();
  ReadMessages read = read_messages(content);
  for (auto& one : read.all) {
    if (const auto* bad = std::get_if<std::pair<MessageId, RpcError>>(&one)) {
      send_(error_message(bad->first, bad->second));
      continue;
    }
    auto& message = std::get<Message>(one);
    if (message.method != "$/cancelRequest")
      put(std::move(message), std::exchange(bytes, 0));
    else if (message.params.cancelled)
      cancel(*message.params.cancelled);
  }
}

bool Server::work() {
  if (waiting_.empty() || exit_) return false;
  const Waiting next = std::move(waiting_.front());
  waiting_.pop_front();
  waiting_bytes_ -= next.bytes;
  const std::string& method = next.message.method;
  const bool overdue = shutdown_due_ && *shutdown_due_ < Clock::now();
  if (method == "shutdown") shutdown_due_.reset();
  if (!overdue || method == "shutdown" || method == "exit" || method == "initialize")
    handle(next.message);
  else if (next.message.id.index() != 0)
    send_(error_message(next.message.id, {kRequestCancelled, "the server is shutting down"}));
  return true;
}

const std::vector<Server::Method>& Server::methods() {
  static const std::vector<Method> kMethods{
      {"initialize", &Server::initialize, true},
      {"initialized", &Server::initialized, false},
      {"shutdown", &Server::shutdown, true},
      {"exit", &Server::exit, false},
      {"$/setTrace", &Server::ignore, false},
      {"workspace/didChangeConfiguration", &Server::configure, false},
      {"workspace/didChangeWatchedFiles", &Server::save, false},
      {"textDocument/didOpen", &Server::open, false},
      {"textDocument/didChange", &Server::change, false},
      {"textDocument/didSave", &Server::save, false},
      {"textDocument/didClose", &Server::close, false},
      {"textDocument/hover", &Server::hover_at, true},
      {"textDocument/definition", &Server::define, true},
      {"textDocument/references", &Server::refer, true},
      {"textDocument/documentHighlight", &Server::highlight, true},
      {"textDocument/documentSymbol", &Server::document_symbols, true},
      {"workspace/symbol", &Server::workspace_symbols, true},
      {"textDocument/completion", &Server::complete_at, true},
      {"textDocument/signatureHelp", &Server::signature_at, true},
      {"textDocument/formatting", &Server::format, true},
      {"textDocument/prepareRename", &Server::prepare_rename, true},
      {"textDocument/rename", &Server::rename_at, true},
      {"textDocument/semanticTokens/full", &Server::tokens, true},
      {"textDocument/semanticTokens/range", &Server::tokens, true},
      {"textDocument/inlayHint", &Server::hints, true},
      {"textDocument/codeAction", &Server::actions, true},
      {"textDocument/codeLens", &Server::lenses, true},
      {"workspace/executeCommand", &Server::execute, true},
  };
  return kMethods;
}

void Server::handle(const Message& message) {
  const bool asks = message.id.index() != 0;
  const auto refuse = [&](int code, std::string why) {
    if (asks) send_(error_message(message.id, {code, std::move(why)}));
  };
  const auto it = std::find_if(methods().begin(), methods().end(),
                               [&](const Method& m) { return m.name == message.method; });
  const bool first = message.method == "initialize", last = message.method == "exit";
  if (shut_down_ && !last) return refuse(kInvalidRequest, "the server has shut down");
  if (!initialized_ && !first && !last)
    return refuse(kNotInitialized, "initialize must come first");
  if (initialized_ && first) return refuse(kInvalidRequest, "initialize may be sent only once");
  if (it == methods().end()) {
    return refuse(kMethodNotFound, "there is no method " + message.method);
  }
  if (it->request && !asks) return;  // a request without an id has no answer
  Answer answer;
  try {
    answer = (this->*it->handler)(message.params);
  } catch (const std::exception& e) {
    answer = refusal(kRpcInternalError, e.what());
  }
  if (!asks) return;
  if (answer)
    send_(answer_message(message.id, *answer));
  else
    send_(error_message(message.id, answer.error()));
}

// ---- life cycle

Server::Answer Server::initialize(const Params& params) {
  initialized_ = true;
  client_ = params.client;
  settings_ = params.settings;
  workspace_.unit = client_.utf8 ? ColumnUnit::utf8 : ColumnUnit::utf16;
  for (const std::string& uri : params.folders)
    if (const std::string path = path_of_uri(uri); !path.empty())
      workspace_.folders.push_back(path);
  return json_text::initialized(version(), client_.utf8);
}
/// Loads data for answers while the editor starts.
Server::Answer Server::initialized(const Params&) {
  static_cast<void>(workspace_.all());
  return json_text::null();
}
Server::Answer Server::ignore(const Params&) { return json_text::null(); }
Server::Answer Server::shutdown(const Params&) {
  shut_down_ = true;
  due_.clear();
  return json_text::null();
}
Server::Answer Server::exit(const Params&) {
  exit_ = shut_down_ ? 0 : 1;
  return json_text::null();
}
Server::Answer Server::configure(const Params& params) {
  if (params.settings.graph) settings_.graph = params.settings.graph;
  if (params.settings.debounce_ms) settings_.debounce_ms = params.settings.debounce_ms;
  ask_checks({});
  return json_text::null();
}

// ---- documents

Server::Answer Server::open(const Params& params) {
  if (!params.uri || !params.text)
    return refusal(kInvalidParams, "the document has no uri or no text");
  workspace_.open(*params.uri, params.version.value_or(0), *params.text);
  states_.erase(*params.uri);
  ask_checks({});
  ask_check(*params.uri, Clock::now());
  return json_text::null();
}

Server::Answer Server::change(const Params& params) {
  if (!params.uri) return refusal(kInvalidParams, "the document has no uri");
  if (!workspace_.change(*params.uri, params.version.value_or(0), params.changes))
    return refusal(kInvalidParams, "the document is not open");
  ask_checks(*params.uri);
  return json_text::null();
}

Server::Answer Server::save(const Params&) {
  ask_checks({});
  return json_text::null();
}

Server::Answer Server::close(const Params& params) {
  if (!params.uri || workspace_.find(*params.uri) == nullptr)
    return refusal(kInvalidParams, "the document is not open");
  workspace_.close(*params.uri);
  states_.erase(*params.uri);
  due_.erase(*params.uri);
  send_(diagnostics_message(*params.uri, 0, {}));
  ask_checks({});
  return json_text::null();
}

// ---- requests

tl::expected<DocumentView, RpcError> Server::view_of(const Params& params) const {
  static const TypesByName kNone;
  if (!params.uri) return refusal(kInvalidParams, "the document has no uri");
  const OpenDocument* document = workspace_.find(*params.uri);
  if (document == nullptr) return refusal(kInvalidParams, "the document is not open");
  const auto state = states_.find(*params.uri);
  const bool known = state != states_.end() && state->second.checked;
  return DocumentView(workspace_, document->text, known ? state->second.checked->types : kNone);
}

tl::expected<Server::Placed, RpcError> Server::placed(const Params& params) const {
  auto view = view_of(params);
  if (!view) return tl::unexpected(view.error());
  if (!params.position) return refusal(kInvalidParams, "the position has no line or no character");
  const std::uint32_t offset = view->offset(*params.position);
  return Placed{std::move(*view), offset};
}

Server::Answer Server::hover_at(const Params& params) {
  const auto at = placed(params);
  if (!at) return tl::unexpected(at.error());
  auto found = hover(at->view, at->offset);
  if (!found) return json_text::null();
  found->markdown += verdict_text(params, *found);
  return json_text::hover(*found);
}

/// Returns the verdict on the rule whose name is hovered over; empty for anything else.
std::string Server::verdict_text(const Params& params, const HoverText& at) const {
  const auto state = states_.find(*params.uri);
  const OpenDocument* document = workspace_.find(*params.uri);
  if (state == states_.end() || !state->second.judged || document == nullptr) return "";
  const std::vector<OutlineItem>& items = document->text->mentions.items;
  for (const OutlineItem& item : items) {
    if (item.kind != Tok::rule || item.name.empty()) continue;
    const TextRange range = workspace_.range(*document->text, item.name_begin, item.name_end);
    if (!(range == at.range)) continue;
    const std::string group =
        item.group >= 0 ? items[static_cast<std::size_t>(item.group)].name + "." : "";
    const auto verdict = state->second.judged->verdicts.find(group + item.name);
    if (verdict != state->second.judged->verdicts.end()) return "\n\n" + verdict->second;
  }
  return "";
}

Server::Answer Server::define(const Params& params) {
  const auto at = placed(params);
  if (!at) return tl::unexpected(at.error());
  return json_text::locations(definition(at->view, at->offset));
}

Server::Answer Server::refer(const Params& params) {
  const auto at = placed(params);
  if (!at) return tl::unexpected(at.error());
  std::vector<Location> out;
  std::vector<SourceTextPtr> texts;
  for (const DocumentView::Named& named : at->view.named_at(at->offset)) {
    if (!named.declaration) continue;
    std::vector<MentionAt> found = references(at->view, *named.declaration, texts);
    if (!params.declaration) std::erase(found, *named.declaration);
    for (Location& l : locations(workspace_, found)) out.push_back(std::move(l));
  }
  return json_text::locations(out);
}

Server::Answer Server::highlight(const Params& params) {
  const auto at = placed(params);
  if (!at) return tl::unexpected(at.error());
  std::vector<TextRange> out;
  for (const DocumentView::Named& named : at->view.named_at(at->offset)) {
    if (!named.declaration) continue;
    for (MentionAt m : at->view.symbols.references(*named.declaration))
      if (m.text == at->view.text.get()) out.push_back(at->view.range(m));
  }
  return json_text::highlights(out);
}

Server::Answer Server::document_symbols(const Params& params) {
  const auto view = view_of(params);
  if (!view) return tl::unexpected(view.error());
  return json_text::outline(outline(workspace_, *view->text));
}

Server::Answer Server::workspace_symbols(const Params& params) {
  return json_text::symbols(find_symbols(workspace_, params.query.value_or("")));
}

Server::Answer Server::complete_at(const Params& params) {
  const auto at = placed(params);
  if (!at) return tl::unexpected(at.error());
  return json_text::completions(complete(at->view, at->offset, client_.snippets));
}

Server::Answer Server::signature_at(const Params& params) {
  const auto at = placed(params);
  if (!at) return tl::unexpected(at.error());
  const auto found = signature(at->view, at->offset);
  return found ? json_text::signature(*found) : json_text::null();
}

Server::Answer Server::format(const Params& params) {
  const auto view = view_of(params);
  if (!view) return tl::unexpected(view.error());
  const auto context = std::make_shared<Context>();
  const auto formatted = format_rules(context, view->text->name, view->text->text);
  if (!formatted) return refusal(kRequestFailed, formatted.error().front().message);
  return json_text::edits(difference(workspace_, *view->text, formatted->text));
}

Server::Answer Server::prepare_rename(const Params& params) {
  const auto at = placed(params);
  if (!at) return tl::unexpected(at.error());
  const Renaming found = renaming(at->view, at->offset);
  if (!found.at) return refusal(kRequestFailed, found.problem);
  return json_text::prepared_rename(at->view.range(found.at->mention), found.at->mention->name);
}

Server::Answer Server::rename_at(const Params& params) {
  const auto at = placed(params);
  if (!at) return tl::unexpected(at.error());
  if (!params.new_name) return refusal(kInvalidParams, "newName is missing");
  const Renamed renamed = rename(at->view, at->offset, *params.new_name);
  if (!renamed.problem.empty()) return refusal(kRequestFailed, renamed.problem);
  return json_text::workspace_edit(renamed.files);
}

Server::Answer Server::tokens(const Params& params) {
  const auto view = view_of(params);
  if (!view) return tl::unexpected(view.error());
  std::uint32_t begin = 0, end = static_cast<std::uint32_t>(view->text->text.size());
  if (params.range)
    begin = view->offset(params.range->start), end = view->offset(params.range->end);
  return json_text::semantic_tokens(semantic_tokens(*view, begin, end));
}

Server::Answer Server::hints(const Params& params) {
  const auto view = view_of(params);
  if (!view) return tl::unexpected(view.error());
  if (!params.range) return refusal(kInvalidParams, "range is missing");
  return json_text::hints(
      type_hints(*view, view->offset(params.range->start), view->offset(params.range->end)));
}

Server::Answer Server::actions(const Params& params) {
  const auto view = view_of(params);
  if (!view) return tl::unexpected(view.error());
  if (!params.range) return refusal(kInvalidParams, "range is missing");
  const auto state = states_.find(*params.uri);
  std::vector<FoundDiagnostic> found;
  if (state != states_.end()) {
    const auto& [checked, analysed, judged] = state->second;
    // Positions refer to the checked text.
    if (checked && checked->text == view->text) found = checked->found;
    if (checked && checked->text == view->text && analysed && analysed->version == checked->version)
      found.insert(found.end(), analysed->found.begin(), analysed->found.end());
  }
  return json_text::actions(offered_actions(*view, found, view->offset(params.range->start),
                                            view->offset(params.range->end)));
}

Server::Answer Server::lenses(const Params& params) {
  const auto view = view_of(params);
  if (!view) return tl::unexpected(view.error());
  std::vector<RuleLens> out;
  const auto state = states_.find(*params.uri);
  if (state == states_.end() || !state->second.analysed) return json_text::lenses(out);
  const AnalysedDocument& analysed = *state->second.analysed;
  for (const OutlineItem& item : view->text->mentions.items) {
    if (item.kind != Tok::rule) continue;
    std::string rule = item.name;
    if (item.group >= 0)
      rule = view->text->mentions.items[static_cast<std::size_t>(item.group)].name + "." + rule;
    const auto counts = analysed.counts.find(rule);
    std::string title;
    if (counts != analysed.counts.end())
      title = lens_title(counts->second, analysed.graph);
    else if (!analysed.graph_problem.empty())
      title = analysed.graph + ": " + analysed.graph_problem;
    else
      continue;
    out.push_back({workspace_.range(*view->text, item.name_begin, item.name_end), std::move(title),
                   *params.uri, rule});
  }
  return json_text::lenses(out);
}

Server::Answer Server::execute(const Params& params) {
  if (params.command != "piecewise.explain" || params.arguments.size() != 2)
    return refusal(kInvalidParams, "piecewise.explain requires a document and a rule");
  const auto state = states_.find(params.arguments[0]);
  if (state == states_.end() || !state->second.analysed)
    return refusal(kRequestFailed, "nothing was counted in this document");
  const auto counts = state->second.analysed->counts.find(params.arguments[1]);
  if (counts == state->second.analysed->counts.end())
    return refusal(kRequestFailed, "no rule of this document has that name");
  return json_text::text(lens_title(counts->second, state->second.analysed->graph) + "\n" +
                         counts->second.text);
}

// ---- checks

void Server::ask_check(const std::string& uri, Clock::time_point due) { due_[uri] = due; }

/// Schedules the changed document, and later all others, which may use it.
void Server::ask_checks(const std::string& changed) {
  const std::chrono::milliseconds wait = settings_.debounce_ms
                                             ? std::chrono::milliseconds(std::clamp<std::int64_t>(
                                                   *settings_.debounce_ms, 0, kLongestDebounce))
                                             : kDebounce;
  const Clock::time_point now = Clock::now();
  for (const auto& [uri, document] : workspace_.documents())
    ask_check(uri, now + (uri == changed ? wait : 2 * wait));
}

std::optional<Server::Clock::time_point> Server::next_check() const {
  std::optional<Clock::time_point> out;
  for (const auto& [uri, due] : due_)
    if (!out || due < *out) out = due;
  return out;
}

std::optional<CheckJob> Server::take_check() {
  const auto first = std::min_element(
      due_.begin(), due_.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (first == due_.end() || first->second > Clock::now()) return {};
  const OpenDocument* document = workspace_.find(first->first);
  due_.erase(first);
  if (document == nullptr) return {};
  return CheckJob{document->uri,  document->text->name, document->version,
                  document->text, workspace_.unsaved(), graph_of(*document)};
}

void Server::checked(CheckedDocument result) {
  const OpenDocument* document = workspace_.find(result.uri);
  if (document == nullptr || document->text != result.text) return;  // another check is due
  const std::string uri = result.uri;
  State& state = states_[uri];
  const auto same = [&](const Analysis& a) { return a.job.uri == uri; };
  std::erase_if(analyses_, same);
  std::erase_if(judgings_, same);
  if (result.draft) {
    CheckJob job{uri, document->text->name, result.version, result.text, {}, graph_of(*document)};
    analyses_.push_back({job, result.draft});
    judgings_.push_back({std::move(job), std::move(result.draft)});
  } else {
    state.analysed.reset();
    state.judged.reset();
  }
  const bool types = !state.checked || state.checked->types != result.types;
  state.checked = std::move(result);
  publish(uri);
  if (types && client_.refresh_hints) refresh("workspace/inlayHint/refresh");
}

std::optional<Server::Analysis> Server::take_analysis() {
  if (analyses_.empty()) return {};
  Analysis out = std::move(analyses_.front());
  analyses_.pop_front();
  return out;
}

void Server::analysed(AnalysedDocument result) {
  const auto state = states_.find(result.uri);
  if (state == states_.end() || !state->second.checked ||
      state->second.checked->version != result.version)
    return;
  const bool lenses = !result.counts.empty() || !result.graph_problem.empty();
  const bool warnings = !result.found.empty();
  const std::string uri = result.uri;
  state->second.analysed = std::move(result);
  if (warnings) publish(uri);
  if (lenses && client_.refresh_lenses) refresh("workspace/codeLens/refresh");
}

std::optional<Server::Analysis> Server::take_judging() {
  if (!analyses_.empty() || judgings_.empty()) return {};
  Analysis out = std::move(judgings_.front());
  judgings_.pop_front();
  return out;
}

void Server::judged(JudgedDocument result) {
  const auto state = states_.find(result.uri);
  if (state == states_.end() || !state->second.checked ||
      state->second.checked->version != result.version)
    return;
  const std::string uri = result.uri;
  const bool warnings = !result.found.empty();
  state->second.judged = std::move(result);
  if (warnings) publish(uri);
}

void Server::publish(const std::string& uri) {
  const State& state = states_[uri];
  std::vector<PublishedDiagnostic> out;
  const SourceText& text = *state.checked->text;
  for (const FoundDiagnostic& d : state.checked->found)
    out.push_back(published(workspace_, text, d));
  if (state.analysed && state.analysed->version == state.checked->version)
    for (const FoundDiagnostic& d : state.analysed->found)
      out.push_back(published(workspace_, text, d));
  if (state.judged && state.judged->version == state.checked->version)
    for (const FoundDiagnostic& d : state.judged->found)
      out.push_back(published(workspace_, text, d));
  send_(diagnostics_message(uri, state.checked->version, out));
}

void Server::refresh(std::string_view method) { send_(request_message(++asked_, method)); }

/// Returns the configured graph, relative to the document's or the workspace's folder; otherwise a
/// graph next to the rules with the same name.
std::string Server::graph_of(const OpenDocument& document) const {
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
