#include <limits>

#include <nlohmann/json.hpp>

#include "lsp/protocol.hpp"

namespace pw::cli {
namespace {

using nlohmann::json;

constexpr int kMostDepth = 64;

/// Returns the member, or null if there is none.
const json& member(const json& of, const char* key) {
  static const json kNull;
  if (!of.is_object()) return kNull;
  const auto it = of.find(key);
  return it == of.end() ? kNull : *it;
}

std::optional<std::string> string_of(const json& value) {
  return value.is_string() ? std::optional(value.get<std::string>()) : std::nullopt;
}
/// Accepts a JSON number without a fraction, in the range of 32 bits if it is a position.
std::optional<std::int64_t> integer_of(const json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return {};
    return static_cast<std::int64_t>(number);
  }
  return value.is_number_integer() ? std::optional(value.get<std::int64_t>()) : std::nullopt;
}
std::optional<std::uint32_t> count_of(const json& value) {
  const auto number = integer_of(value);
  if (!number || *number < 0 || *number > std::numeric_limits<std::int32_t>::max()) return {};
  return static_cast<std::uint32_t>(*number);
}
std::optional<TextPlace> place_of(const json& value) {
  const auto line = count_of(member(value, "line")), column = count_of(member(value, "character"));
  if (!line || !column) return {};
  return TextPlace{*line, *column};
}
std::optional<TextRange> range_of(const json& value) {
  const auto start = place_of(member(value, "start")), end = place_of(member(value, "end"));
  if (!start || !end) return {};
  return TextRange{*start, *end};
}
MessageId id_of(const json& value) {
  if (const auto number = integer_of(value)) return *number;
  if (auto text = string_of(value)) return std::move(*text);
  return {};
}
bool is_true(const json& value) { return value.is_boolean() && value.get<bool>(); }

void read_changes(const json& list, std::vector<ContentChange>& out) {
  if (!list.is_array()) return;
  for (const json& change : list) {
    auto text = string_of(member(change, "text"));
    if (!text) continue;
    out.push_back({range_of(member(change, "range")), std::move(*text)});
  }
}

/// `{"graph": …}`, alone or under "piecewise".
void read_settings(const json& value, Settings& out) {
  const json& own = member(value, "piecewise").is_object() ? member(value, "piecewise") : value;
  out.graph = string_of(member(own, "graph"));
  out.debounce_ms = integer_of(member(own, "debounce"));
}

void read_client(const json& params, Params& out) {
  const json& can = member(params, "capabilities");
  const json& encodings = member(member(can, "general"), "positionEncodings");
  if (encodings.is_array())
    for (const json& encoding : encodings)
      if (encoding == "utf-8") out.client.utf8 = true;
  const json& text = member(can, "textDocument");
  out.client.snippets =
      is_true(member(member(member(text, "completion"), "completionItem"), "snippetSupport"));
  const json& workspace = member(can, "workspace");
  out.client.refresh_hints = is_true(member(member(workspace, "inlayHint"), "refreshSupport"));
  out.client.refresh_lenses = is_true(member(member(workspace, "codeLens"), "refreshSupport"));
  const json& folders = member(params, "workspaceFolders");
  if (folders.is_array())
    for (const json& folder : folders)
      if (auto uri = string_of(member(folder, "uri"))) out.folders.push_back(std::move(*uri));
  if (auto root = string_of(member(params, "rootUri")); root && out.folders.empty())
    out.folders.push_back(std::move(*root));
  if (const json& options = member(params, "initializationOptions"); options.is_object())
    read_settings(options, out.settings);
}

Params params_of(const json& value) {
  Params out;
  const json& document = member(value, "textDocument");
  out.uri = string_of(member(document, "uri"));
  out.text = string_of(member(document, "text"));
  out.version = integer_of(member(document, "version"));
  out.position = place_of(member(value, "position"));
  out.range = range_of(member(value, "range"));
  out.new_name = string_of(member(value, "newName"));
  out.query = string_of(member(value, "query"));
  out.command = string_of(member(value, "command"));
  read_changes(member(value, "contentChanges"), out.changes);
  if (const json& arguments = member(value, "arguments"); arguments.is_array())
    for (const json& argument : arguments)
      if (auto text = string_of(argument)) out.arguments.push_back(std::move(*text));
  if (const json& id = member(value, "id"); !id.is_null()) out.cancelled = id_of(id);
  const json& with = member(member(value, "context"), "includeDeclaration");
  out.declaration = !with.is_boolean() || with.get<bool>();
  if (const json& settings = member(value, "settings"); settings.is_object())
    read_settings(settings, out.settings);
  read_client(value, out);
  return out;
}

void read_one(const json& value, ReadMessages& out) {
  const MessageId id = id_of(member(value, "id"));
  const auto refuse = [&](std::string why) {
    out.all.emplace_back(std::pair(id, RpcError{kInvalidRequest, std::move(why)}));
  };
  if (!value.is_object()) return refuse("a message must be an object");
  if (member(value, "jsonrpc") != "2.0") return refuse("\"jsonrpc\" is not \"2.0\"");
  const json& named = member(value, "method");
  if (named.is_null() && (value.contains("result") || value.contains("error"))) return;
  if (!named.is_string()) return refuse("\"method\" is not a string");
  const json& params = member(value, "params");
  if (!params.is_null() && !params.is_object() && !params.is_array())
    return refuse("\"params\" is neither an object nor a list");
  out.all.emplace_back(Message{id, named.get<std::string>(), params_of(params)});
}

/// Returns true if too many brackets are nested; runs before the text is parsed.
bool too_deep(std::string_view text) {
  int depth = 0;
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inside) {
      if (c == '\\') ++i;
      if (c == '"') inside = false;
    } else if (c == '"') {
      inside = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMostDepth) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

}  // namespace

ReadMessages read_messages(std::string_view content) {
  ReadMessages out;
  const auto refuse = [&](std::string why) {
    out.all.emplace_back(std::pair(MessageId(), RpcError{kParseError, std::move(why)}));
    return out;
  };
  if (too_deep(content)) return refuse("brackets are nested more than 64 deep");
  const json value = json::parse(content, nullptr, false);
  if (value.is_discarded()) return refuse("the message is not JSON");
  if (!value.is_array()) {
    read_one(value, out);
    return out;
  }
  if (value.empty())
    out.all.emplace_back(std::pair(MessageId(), RpcError{kInvalidRequest, "the batch is empty"}));
  for (const json& one : value) read_one(one, out);
  return out;
}

}  // namespace pw::cli
