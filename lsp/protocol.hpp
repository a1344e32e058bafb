// The supported subset of the language server protocol (3.17), as plain data. JSON parsing and
// printing are in message_json.cpp and answer_json.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "dsl/syntax/text_lines.hpp"

namespace pw::cli {

struct TextRange {
  TextPlace start, end;
  friend bool operator==(const TextRange&, const TextRange&) = default;
};
struct TextEdit {
  TextRange range;
  std::string text;
};
struct FileEdits {
  std::string uri;
  std::vector<TextEdit> edits;
};
struct Location {
  std::string uri;
  TextRange range;
};

// ---- client to server

using MessageId = std::variant<std::monostate, std::int64_t, std::string>;

struct ContentChange {
  std::optional<TextRange> range;  ///< absent: the whole document
  std::string text;
};
/// Settings from initializationOptions or a configuration.
struct Settings {
  std::optional<std::string> graph;  ///< the graph for match counts
  std::optional<std::int64_t> debounce_ms;
};
struct ClientCan {
  bool utf8 = false, snippets = false, refresh_hints = false, refresh_lenses = false;
};
/// The union of all methods' parameters.
struct Params {
  std::optional<std::string> uri, text, new_name, query, command;
  std::optional<std::int64_t> version;
  std::optional<TextPlace> position;
  std::optional<TextRange> range;
  std::vector<ContentChange> changes;
  std::vector<std::string> arguments;  ///< arguments of a command that are strings
  std::vector<std::string> folders;    ///< workspace folders as URIs
  std::optional<MessageId> cancelled;
  bool declaration = true;  ///< references include the declaration
  Settings settings;
  ClientCan client;
};
struct Message {
  MessageId id;
  std::string method;  ///< empty for a response
  Params params;
};
/// A JSON-RPC error.
struct RpcError {
  int code = 0;
  std::string message;
};
inline constexpr int kParseError = -32700, kInvalidRequest = -32600, kMethodNotFound = -32601,
                     kInvalidParams = -32602, kRpcInternalError = -32603, kNotInitialized = -32002,
                     kRequestCancelled = -32800, kRequestFailed = -32803;

/// The content of a frame; a batch has several messages.
struct ReadMessages {
  std::vector<std::variant<Message, std::pair<MessageId, RpcError>>> all;
};
ReadMessages read_messages(std::string_view content);

// ---- server to client

struct PublishedDiagnostic {
  TextRange range;
  int severity = 1;
  std::string code, message;
  std::vector<std::pair<Location, std::string>> related;
};
struct HoverText {
  std::string markdown;
  TextRange range;
};
struct OutlineSymbol {
  std::string name, detail;
  int kind = 0;
  TextRange range, name_range;
  std::vector<OutlineSymbol> children;
};
struct FoundSymbol {
  std::string name, container;
  int kind = 0;
  Location at;
};
struct Completion {
  std::string label, detail, documentation;
  int kind = 1;
  std::string insert;  ///< empty: same as the label
  bool snippet = false;
  TextRange replaces;
  std::string sort;
};
struct SignatureText {
  std::string label, documentation;
  std::vector<std::pair<std::uint32_t, std::uint32_t>>
      parameters;  ///< ranges in the label, in UTF-16
  std::uint32_t active = 0;
};
struct TypeHint {
  TextPlace at;
  std::string label;
};
struct OfferedAction {
  std::string title;
  FileEdits edits;
  std::string code;  ///< of the diagnostic that it fixes; empty: none
};
struct RuleLens {
  TextRange range;
  std::string title, uri, rule;
};

/// JSON values as text.
namespace json_text {
std::string null();
std::string initialized(std::string_view version, bool utf8);
std::string hover(const HoverText& hover);
std::string locations(const std::vector<Location>& locations);
std::string highlights(const std::vector<TextRange>& ranges);
std::string outline(const std::vector<OutlineSymbol>& symbols);
std::string symbols(const std::vector<FoundSymbol>& symbols);
std::string completions(const std::vector<Completion>& items);
std::string signature(const SignatureText& signature);
std::string edits(const std::vector<TextEdit>& edits);
std::string workspace_edit(const std::vector<FileEdits>& files);
std::string prepared_rename(const TextRange& range, std::string_view name);
std::string semantic_tokens(const std::vector<std::uint32_t>& data);
std::string hints(const std::vector<TypeHint>& hints);
std::string actions(const std::vector<OfferedAction>& actions);
std::string lenses(const std::vector<RuleLens>& lenses);
std::string text(std::string_view text);
}  // namespace json_text

std::string answer_message(const MessageId& id, std::string_view result);
std::string error_message(const MessageId& id, const RpcError& error);
std::string diagnostics_message(std::string_view uri, std::int64_t version,
                                const std::vector<PublishedDiagnostic>& diagnostics);
/// Returns a server request without parameters, such as workspace/codeLens/refresh.
std::string request_message(std::int64_t id, std::string_view method);

/// The legend of semantic tokens: a token's type is its index.
inline constexpr std::string_view kTokenTypes[] = {
    "comment", "string",   "number",   "keyword",   "operator",  "function",   "type",
    "class",   "variable", "property", "decorator", "parameter", "enumMember", "macro"};
inline constexpr std::string_view kTokenModifiers[] = {"declaration", "defaultLibrary"};

}  // namespace pw::cli
