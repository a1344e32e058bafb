#include "lsp/server.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/version.hpp"
#include "lsp/uris.hpp"

namespace pw::cli {
namespace {

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

Server::Handler Server::handler(std::string_view method) {
  static const std::map<std::string_view, Handler> kHandlers{
      {"initialize", &Server::initialize},
      {"initialized", &Server::initialized},
      {"shutdown", &Server::shutdown},
      {"exit", &Server::exit},
      {"$/setTrace", &Server::ignore},
      {"workspace/didChangeConfiguration", &Server::configure},
      {"workspace/didChangeWatchedFiles", &Server::save},
      {"textDocument/didOpen", &Server::open},
      {"textDocument/didChange", &Server::change},
      {"textDocument/didSave", &Server::save},
      {"textDocument/didClose", &Server::close},
  };
  const auto found = kHandlers.find(method);
  return found == kHandlers.end() ? nullptr : found->second;
}

void Server::handle(const Message& message) {
  const bool is_request = message.id.index() != 0;
  const Answer made = answer(message);
  if (!is_request) return;
  if (made)
    send_(answer_message(message.id, *made));
  else
    send_(error_message(message.id, made.error()));
}

/// A request without an id has no answer, so it does nothing.
Answer Server::answer(const Message& message) {
  const std::string& method = message.method;
  const bool first = method == "initialize", last = method == "exit";
  if (shut_down_ && !last) return refusal(kInvalidRequest, "the server has shut down");
  if (!initialized_ && !first && !last)
    return refusal(kNotInitialized, "initialize must come first");
  if (initialized_ && first) return refusal(kInvalidRequest, "initialize may be sent only once");
  const Handler own = handler(method);
  const Answers::Handler about_document = Answers::handler(method);
  if (own == nullptr && about_document == nullptr)
    return refusal(kMethodNotFound, "there is no method " + method);
  const bool request = about_document != nullptr || first || method == "shutdown";
  if (request && message.id.index() == 0) return json_text::null();
  try {
    return own != nullptr ? (this->*own)(message.params)
                          : (answers_.*about_document)(message.params);
  } catch (const std::exception& e) {
    return refusal(kRpcInternalError, e.what());
  }
}

// ---- life cycle

Answer Server::initialize(const Params& params) {
  initialized_ = true;
  checks_.configure(params.settings, params.client);
  answers_.snippets = params.client.snippets;
  workspace_.unit = params.client.utf8 ? ColumnUnit::utf8 : ColumnUnit::utf16;
  for (const std::string& uri : params.folders)
    if (const std::string path = path_of_uri(uri); !path.empty())
      workspace_.folders.push_back(path);
  return json_text::initialized(version(), params.client.utf8);
}
/// Loads data for answers while the editor starts.
Answer Server::initialized(const Params&) {
  static_cast<void>(workspace_.all());
  return json_text::null();
}
Answer Server::ignore(const Params&) { return json_text::null(); }
Answer Server::shutdown(const Params&) {
  shut_down_ = true;
  checks_.stop();
  return json_text::null();
}
Answer Server::exit(const Params&) {
  exit_ = shut_down_ ? 0 : 1;
  return json_text::null();
}
Answer Server::configure(const Params& params) {
  checks_.configure(params.settings);
  return json_text::null();
}

// ---- documents

Answer Server::open(const Params& params) {
  if (!params.uri || !params.text)
    return refusal(kInvalidParams, "the document has no uri or no text");
  workspace_.open(*params.uri, params.version.value_or(0), *params.text);
  checks_.opened(*params.uri);
  return json_text::null();
}

Answer Server::change(const Params& params) {
  if (!params.uri) return refusal(kInvalidParams, "the document has no uri");
  if (!workspace_.change(*params.uri, params.version.value_or(0), params.changes))
    return refusal(kInvalidParams, "the document is not open");
  checks_.schedule(*params.uri);
  return json_text::null();
}

Answer Server::save(const Params&) {
  checks_.schedule();
  return json_text::null();
}

Answer Server::close(const Params& params) {
  if (!params.uri || workspace_.find(*params.uri) == nullptr)
    return refusal(kInvalidParams, "the document is not open");
  workspace_.close(*params.uri);
  checks_.closed(*params.uri);
  return json_text::null();
}

}  // namespace pw::cli
