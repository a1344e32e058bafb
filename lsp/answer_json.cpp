#include <nlohmann/json.hpp>

#include "lsp/protocol.hpp"

namespace pw::cli {
namespace {

using nlohmann::json;

/// Replaces bytes that are not UTF-8.
std::string dumped(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}
json json_of(TextPlace place) { return {{"line", place.line}, {"character", place.column}}; }
json json_of(const TextRange& range) {
  return {{"start", json_of(range.start)}, {"end", json_of(range.end)}};
}
json json_of(const Location& at) { return {{"uri", at.uri}, {"range", json_of(at.range)}}; }
json json_of(const TextEdit& edit) {
  return {{"range", json_of(edit.range)}, {"newText", edit.text}};
}
json json_of(const MessageId& id) {
  if (const auto* number = std::get_if<std::int64_t>(&id)) return *number;
  if (const auto* text = std::get_if<std::string>(&id)) return *text;
  return nullptr;
}
json json_of(const FileEdits& file);
json json_of(const OutlineSymbol& symbol);
json json_of(const FoundSymbol& symbol);
json json_of(const Completion& item);
json json_of(const TypeHint& hint);
json json_of(const OfferedAction& action);
json json_of(const RuleLens& lens);
json json_of(const PublishedDiagnostic& d);
template <class T>
json list_of(const std::vector<T>& all) {
  json out = json::array();
  for (const T& one : all) out.push_back(json_of(one));
  return out;
}
json markdown(std::string_view text) { return {{"kind", "markdown"}, {"value", text}}; }

json json_of(const FileEdits& file) { return {{file.uri, list_of(file.edits)}}; }
json json_of(const OutlineSymbol& symbol) {
  json out{{"name", symbol.name},
           {"kind", symbol.kind},
           {"range", json_of(symbol.range)},
           {"selectionRange", json_of(symbol.name_range)}};
  if (!symbol.detail.empty()) out["detail"] = symbol.detail;
  if (!symbol.children.empty()) out["children"] = list_of(symbol.children);
  return out;
}
json json_of(const FoundSymbol& symbol) {
  json out{{"name", symbol.name}, {"kind", symbol.kind}, {"location", json_of(symbol.at)}};
  if (!symbol.container.empty()) out["containerName"] = symbol.container;
  return out;
}
json json_of(const Completion& item) {
  json out{{"label", item.label},
           {"kind", item.kind},
           {"insertTextFormat", item.snippet ? 2 : 1},
           {"textEdit",
            {{"range", json_of(item.replaces)},
             {"newText", item.insert.empty() ? item.label : item.insert}}}};
  if (!item.detail.empty()) out["detail"] = item.detail;
  if (!item.documentation.empty()) out["documentation"] = markdown(item.documentation);
  if (!item.sort.empty()) out["sortText"] = item.sort;
  return out;
}
json json_of(const TypeHint& hint) {
  return {
      {"position", json_of(hint.at)}, {"label", hint.label}, {"kind", 1}, {"paddingLeft", false}};
}
json json_of(const OfferedAction& action) {
  json out{{"title", action.title},
           {"kind", "quickfix"},
           {"edit", {{"changes", json_of(action.edits)}}}};
  if (!action.code.empty()) out["isPreferred"] = true;
  return out;
}
json json_of(const RuleLens& lens) {
  return {{"range", json_of(lens.range)},
          {"command",
           {{"title", lens.title},
            {"command", "piecewise.explain"},
            {"arguments", json::array({lens.uri, lens.rule})}}}};
}
json json_of(const PublishedDiagnostic& d) {
  json out{{"range", json_of(d.range)},
           {"severity", d.severity},
           {"source", "pwr"},
           {"code", d.code},
           {"message", d.message}};
  for (const auto& [at, text] : d.related)
    out["relatedInformation"].push_back({{"location", json_of(at)}, {"message", text}});
  return out;
}

}  // namespace

namespace json_text {

std::string null() { return "null"; }
std::string text(std::string_view text) { return dumped(json(text)); }
std::string hover(const HoverText& hover) {
  return dumped({{"contents", markdown(hover.markdown)}, {"range", json_of(hover.range)}});
}
std::string locations(const std::vector<Location>& locations) { return dumped(list_of(locations)); }
std::string highlights(const std::vector<TextRange>& ranges) {
  json out = json::array();
  for (const TextRange& range : ranges) out.push_back({{"range", json_of(range)}});
  return dumped(out);
}
std::string outline(const std::vector<OutlineSymbol>& symbols) { return dumped(list_of(symbols)); }
std::string symbols(const std::vector<FoundSymbol>& symbols) { return dumped(list_of(symbols)); }
std::string completions(const std::vector<Completion>& items) {
  return dumped({{"isIncomplete", false}, {"items", list_of(items)}});
}
std::string signature(const SignatureText& signature) {
  json one{{"label", signature.label}, {"parameters", json::array()}};
  if (!signature.documentation.empty()) one["documentation"] = markdown(signature.documentation);
  for (const auto& [begin, end] : signature.parameters)
    one["parameters"].push_back({{"label", json::array({begin, end})}});
  return dumped({{"signatures", json::array({one})},
                 {"activeSignature", 0},
                 {"activeParameter", signature.active}});
}
std::string edits(const std::vector<TextEdit>& edits) { return dumped(list_of(edits)); }
std::string workspace_edit(const std::vector<FileEdits>& files) {
  json changes = json::object();
  for (const FileEdits& file : files) changes[file.uri] = list_of(file.edits);
  return dumped({{"changes", changes}});
}
std::string prepared_rename(const TextRange& range, std::string_view name) {
  return dumped({{"range", json_of(range)}, {"placeholder", name}});
}
std::string semantic_tokens(const std::vector<std::uint32_t>& data) {
  return dumped({{"data", data}});
}
std::string hints(const std::vector<TypeHint>& hints) { return dumped(list_of(hints)); }
std::string actions(const std::vector<OfferedAction>& actions) { return dumped(list_of(actions)); }
std::string lenses(const std::vector<RuleLens>& lenses) { return dumped(list_of(lenses)); }

std::string initialized(std::string_view version, bool utf8) {
  const json sync{{"openClose", true}, {"change", 2}, {"save", {{"includeText", false}}}};
  const json tokens{{"legend", {{"tokenTypes", kTokenTypes}, {"tokenModifiers", kTokenModifiers}}},
                    {"full", true},
                    {"range", true}};
  return dumped(
      {{"serverInfo", {{"name", "pwr lsp"}, {"version", version}}},
       {"capabilities",
        {{"positionEncoding", utf8 ? "utf-8" : "utf-16"},
         {"textDocumentSync", sync},
         {"hoverProvider", true},
         {"definitionProvider", true},
         {"referencesProvider", true},
         {"documentHighlightProvider", true},
         {"documentSymbolProvider", true},
         {"workspaceSymbolProvider", true},
         {"completionProvider", {{"triggerCharacters", json::array({".", "(", "{", ",", "\""})}}},
         {"signatureHelpProvider",
          {{"triggerCharacters", json::array({"(", ","})},
           {"retriggerCharacters", json::array({","})}}},
         {"documentFormattingProvider", true},
         {"renameProvider", {{"prepareProvider", true}}},
         {"semanticTokensProvider", tokens},
         {"inlayHintProvider", true},
         {"codeActionProvider", {{"codeActionKinds", json::array({"quickfix"})}}},
         {"codeLensProvider", {{"resolveProvider", false}}},
         {"executeCommandProvider", {{"commands", json::array({"piecewise.explain"})}}}}}});
}

}  // namespace json_text

std::string answer_message(const MessageId& id, std::string_view result) {
  return R"({"jsonrpc":"2.0","id":)" + dumped(json_of(id)) + R"(,"result":)" + std::string(result) +
         "}";
}
std::string error_message(const MessageId& id, const RpcError& error) {
  return dumped({{"jsonrpc", "2.0"},
                 {"id", json_of(id)},
                 {"error", {{"code", error.code}, {"message", error.message}}}});
}
std::string diagnostics_message(std::string_view uri, std::int64_t version,
                                const std::vector<PublishedDiagnostic>& diagnostics) {
  return dumped(
      {{"jsonrpc", "2.0"},
       {"method", "textDocument/publishDiagnostics"},
       {"params", {{"uri", uri}, {"version", version}, {"diagnostics", list_of(diagnostics)}}}});
}
std::string request_message(std::int64_t id, std::string_view method) {
  return dumped({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}});
}

}  // namespace pw::cli
