#include "lsp/answers.hpp"

#include <algorithm>
#include <utility>

#include "lsp/actions.hpp"
#include "pipeline/format.hpp"

namespace pw::cli {
namespace {

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

}  // namespace

tl::unexpected<RpcError> refusal(int code, std::string why) {
  return tl::unexpected(RpcError{code, std::move(why)});
}

Answers::Handler Answers::handler(std::string_view method) {
  static const std::map<std::string_view, Handler> kHandlers{
      {"textDocument/hover", &Answers::hover_at},
      {"textDocument/definition", &Answers::define},
      {"textDocument/references", &Answers::refer},
      {"textDocument/documentHighlight", &Answers::highlight},
      {"textDocument/documentSymbol", &Answers::document_symbols},
      {"workspace/symbol", &Answers::workspace_symbols},
      {"textDocument/completion", &Answers::complete_at},
      {"textDocument/signatureHelp", &Answers::signature_at},
      {"textDocument/formatting", &Answers::format},
      {"textDocument/prepareRename", &Answers::prepare_rename},
      {"textDocument/rename", &Answers::rename_at},
      {"textDocument/semanticTokens/full", &Answers::tokens},
      {"textDocument/semanticTokens/range", &Answers::tokens},
      {"textDocument/inlayHint", &Answers::hints},
      {"textDocument/codeAction", &Answers::actions},
      {"textDocument/codeLens", &Answers::lenses},
      {"workspace/executeCommand", &Answers::execute},
  };
  const auto found = kHandlers.find(method);
  return found == kHandlers.end() ? nullptr : found->second;
}

tl::expected<DocumentView, RpcError> Answers::view_of(const Params& params) const {
  static const TypesByName kNone;
  if (!params.uri) return refusal(kInvalidParams, "the document has no uri");
  const OpenDocument* document = workspace_.find(*params.uri);
  if (document == nullptr) return refusal(kInvalidParams, "the document is not open");
  const DocumentChecks::Results* results = checks_.results(*params.uri);
  const bool known = results != nullptr && results->checked;
  return DocumentView(workspace_, document->text, known ? results->checked->types : kNone);
}

tl::expected<Answers::Placed, RpcError> Answers::placed(const Params& params) const {
  auto view = view_of(params);
  if (!view) return tl::unexpected(view.error());
  if (!params.position) return refusal(kInvalidParams, "the position has no line or no character");
  const std::uint32_t offset = view->offset(*params.position);
  return Placed{std::move(*view), offset};
}

Answer Answers::hover_at(const Params& params) const {
  const auto at = placed(params);
  if (!at) return tl::unexpected(at.error());
  auto found = hover(at->view, at->offset);
  if (!found) return json_text::null();
  found->markdown += verdict_text(params, *found);
  return json_text::hover(*found);
}

/// Returns the verdict on the rule whose name is hovered over; empty for anything else.
std::string Answers::verdict_text(const Params& params, const HoverText& at) const {
  const DocumentChecks::Results* results = checks_.results(*params.uri);
  const OpenDocument* document = workspace_.find(*params.uri);
  if (results == nullptr || !results->judged || document == nullptr) return "";
  const std::vector<OutlineItem>& items = document->text->mentions.items;
  for (const OutlineItem& item : items) {
    if (item.kind != Tok::rule || item.name.empty()) continue;
    const TextRange range = workspace_.range(*document->text, item.name_begin, item.name_end);
    if (!(range == at.range)) continue;
    const std::string group =
        item.group >= 0 ? items[static_cast<std::size_t>(item.group)].name + "." : "";
    const auto verdict = results->judged->verdicts.find(group + item.name);
    if (verdict != results->judged->verdicts.end()) return "\n\n" + verdict->second;
  }
  return "";
}

Answer Answers::define(const Params& params) const {
  const auto at = placed(params);
  if (!at) return tl::unexpected(at.error());
  return json_text::locations(definition(at->view, at->offset));
}

Answer Answers::refer(const Params& params) const {
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

Answer Answers::highlight(const Params& params) const {
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

Answer Answers::document_symbols(const Params& params) const {
  const auto view = view_of(params);
  if (!view) return tl::unexpected(view.error());
  return json_text::outline(outline(workspace_, *view->text));
}

Answer Answers::workspace_symbols(const Params& params) const {
  return json_text::symbols(find_symbols(workspace_, params.query.value_or("")));
}

Answer Answers::complete_at(const Params& params) const {
  const auto at = placed(params);
  if (!at) return tl::unexpected(at.error());
  return json_text::completions(complete(at->view, at->offset, snippets));
}

Answer Answers::signature_at(const Params& params) const {
  const auto at = placed(params);
  if (!at) return tl::unexpected(at.error());
  const auto found = signature(at->view, at->offset);
  return found ? json_text::signature(*found) : json_text::null();
}

Answer Answers::format(const Params& params) const {
  const auto view = view_of(params);
  if (!view) return tl::unexpected(view.error());
  const auto context = std::make_shared<Context>();
  const auto formatted = format_rules(context, view->text->name, view->text->text);
  if (!formatted) return refusal(kRequestFailed, formatted.error().front().message);
  return json_text::edits(difference(workspace_, *view->text, formatted->text));
}

Answer Answers::prepare_rename(const Params& params) const {
  const auto at = placed(params);
  if (!at) return tl::unexpected(at.error());
  const Renaming found = renaming(at->view, at->offset);
  if (!found.at) return refusal(kRequestFailed, found.problem);
  return json_text::prepared_rename(at->view.range(found.at->mention), found.at->mention->name);
}

Answer Answers::rename_at(const Params& params) const {
  const auto at = placed(params);
  if (!at) return tl::unexpected(at.error());
  if (!params.new_name) return refusal(kInvalidParams, "newName is missing");
  const Renamed renamed = rename(at->view, at->offset, *params.new_name);
  if (!renamed.problem.empty()) return refusal(kRequestFailed, renamed.problem);
  return json_text::workspace_edit(renamed.files);
}

Answer Answers::tokens(const Params& params) const {
  const auto view = view_of(params);
  if (!view) return tl::unexpected(view.error());
  std::uint32_t begin = 0, end = static_cast<std::uint32_t>(view->text->text.size());
  if (params.range)
    begin = view->offset(params.range->start), end = view->offset(params.range->end);
  return json_text::semantic_tokens(semantic_tokens(*view, begin, end));
}

Answer Answers::hints(const Params& params) const {
  const auto view = view_of(params);
  if (!view) return tl::unexpected(view.error());
  if (!params.range) return refusal(kInvalidParams, "range is missing");
  return json_text::hints(
      type_hints(*view, view->offset(params.range->start), view->offset(params.range->end)));
}

Answer Answers::actions(const Params& params) const {
  const auto view = view_of(params);
  if (!view) return tl::unexpected(view.error());
  if (!params.range) return refusal(kInvalidParams, "range is missing");
  const DocumentChecks::Results* results = checks_.results(*params.uri);
  std::vector<FoundDiagnostic> found;
  if (results != nullptr) {
    const auto& [checked, analysed, judged] = *results;
    // Positions refer to the checked text.
    if (checked && checked->text == view->text) found = checked->found;
    if (checked && checked->text == view->text && analysed && analysed->version == checked->version)
      found.insert(found.end(), analysed->found.begin(), analysed->found.end());
  }
  return json_text::actions(offered_actions(*view, found, view->offset(params.range->start),
                                            view->offset(params.range->end)));
}

Answer Answers::lenses(const Params& params) const {
  const auto view = view_of(params);
  if (!view) return tl::unexpected(view.error());
  std::vector<RuleLens> out;
  const DocumentChecks::Results* results = checks_.results(*params.uri);
  if (results == nullptr || !results->analysed) return json_text::lenses(out);
  const AnalysedDocument& analysed = *results->analysed;
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

Answer Answers::execute(const Params& params) const {
  if (params.command != "piecewise.explain" || params.arguments.size() != 2)
    return refusal(kInvalidParams, "piecewise.explain requires a document and a rule");
  const DocumentChecks::Results* results = checks_.results(params.arguments[0]);
  if (results == nullptr || !results->analysed)
    return refusal(kRequestFailed, "nothing was counted in this document");
  const auto counts = results->analysed->counts.find(params.arguments[1]);
  if (counts == results->analysed->counts.end())
    return refusal(kRequestFailed, "no rule of this document has that name");
  return json_text::text(lens_title(counts->second, results->analysed->graph) + "\n" +
                         counts->second.text);
}

}  // namespace pw::cli
