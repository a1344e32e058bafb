// The server answers every request exactly once, whatever it receives.
#include "lsp/server.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/hash.hpp"
#include "tests/catch.hpp"

namespace pw::cli {
namespace {

constexpr std::string_view kText =
    R"(rule r {\n  y = rms_norm(x: T[*b, d], w){eps}\n  =>\n  y = silu(x)\n}\n)";

std::string open_message() {
  return R"({"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":)"
         R"({"uri":"file:///nowhere/a.pwr","version":1,"text":")" +
         std::string(kText) + R"("}}})";
}
std::string request(int id, const std::string& method, const std::string& more) {
  return R"({"jsonrpc":"2.0","id":)" + std::to_string(id) + R"(,"method":")" + method +
         R"(","params":{"textDocument":{"uri":"file:///nowhere/a.pwr"})" + more + "}}";
}
constexpr std::string_view kAt = R"(,"position":{"line":1,"character":7})";
constexpr std::string_view kRange =
    R"(,"range":{"start":{"line":0,"character":0},"end":{"line":9,"character":0}})";

std::vector<std::string> requests() {
  std::vector<std::string> out;
  int id = 10;
  for (const char* method : {"hover", "definition", "references", "documentHighlight", "completion",
                             "signatureHelp", "prepareRename"})
    out.push_back(request(++id, std::string("textDocument/") + method, std::string(kAt)));
  out.push_back(request(++id, "textDocument/rename", std::string(kAt) + R"(,"newName":"z")"));
  for (const char* method : {"documentSymbol", "formatting", "semanticTokens/full", "codeLens"})
    out.push_back(request(++id, std::string("textDocument/") + method, ""));
  for (const char* method : {"semanticTokens/range", "inlayHint", "codeAction"})
    out.push_back(request(++id, std::string("textDocument/") + method, std::string(kRange)));
  out.push_back(request(++id, "workspace/symbol", R"(,"query":"r")"));
  out.push_back(request(++id, "workspace/executeCommand", R"(,"command":"piecewise.explain")"));
  return out;
}

struct Running {
  std::vector<std::string> sent;
  Server server{[this](const std::string& message) { sent.push_back(message); }};

  Running() {
    tell(R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}})");
    tell(open_message());
    sent.clear();
  }
  void tell(const std::string& content) {
    server.receive(content);
    while (server.work()) {
    }
  }
};

TEST_CASE("server: each request has one answer, with its id", "[lsp]") {
  Running running;
  for (const std::string& one : requests()) {
    running.sent.clear();
    running.tell(one);
    INFO(one);
    REQUIRE(running.sent.size() == 1);
    const std::string id = one.substr(one.find("\"id\":") + 5, 2);
    CHECK(running.sent[0].find("\"id\":" + id) != std::string::npos);
  }
}

TEST_CASE("server: what is cancelled before it begins is answered so, and nothing else is",
          "[lsp]") {
  Running running;
  const std::vector<std::string> all = requests();
  running.server.receive(all[0]);
  running.server.receive(all[1]);
  running.server.receive(R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":12}})");
  running.server.receive(R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":999}})");
  REQUIRE(running.sent.size() == 1);
  CHECK(running.sent[0].find("-32800") != std::string::npos);
  CHECK(running.sent[0].find("\"id\":12") != std::string::npos);
  while (running.server.work()) {
  }
  REQUIRE(running.sent.size() == 2);
  CHECK(running.sent[1].find("\"id\":11") != std::string::npos);
}

std::string change_message(int version, const std::string& text) {
  return R"({"jsonrpc":"2.0","method":"textDocument/didChange","params":{"textDocument":)"
         R"({"uri":"file:///nowhere/a.pwr","version":)" +
         std::to_string(version) + R"(},"contentChanges":[{"text":")" + text + R"("}]}})";
}

TEST_CASE("server: the backlog counts what waits, and changes in a row are one", "[lsp]") {
  Running running;
  const std::string first = change_message(2, "rule a { y = neg(x) => y = x }");
  const std::string last = change_message(9, "rule b { y = neg(x) => y = x }");
  const std::string symbols_request = request(30, "textDocument/documentSymbol", "");
  for (int i = 0; i < 1000; ++i) running.server.receive(first);
  running.server.receive(last);
  CHECK(running.server.backlog().messages == 1);
  CHECK(running.server.backlog().bytes == 1000 * first.size() + last.size());
  running.server.receive(symbols_request);
  running.server.receive(first);
  running.server.receive(request(31, "textDocument/documentSymbol", ""));
  CHECK(running.server.backlog().messages == 4);
  while (running.server.work()) {
  }
  CHECK(running.server.backlog().messages == 0);
  CHECK(running.server.backlog().bytes == 0);
  REQUIRE(running.sent.size() == 2);
  CHECK(running.sent[0].find(R"("name":"b")") != std::string::npos);
  CHECK(running.sent[1].find(R"("name":"a")") != std::string::npos);
}

TEST_CASE("server: changes of ranges that are joined give the same text", "[lsp]") {
  Running running;
  const std::string place = R"("version":2},"contentChanges":[{"range":{"start":)"
                            R"({"line":0,"character":5},"end":{"line":0,"character":6}},"text":")";
  const std::string change = R"({"jsonrpc":"2.0","method":"textDocument/didChange","params":)"
                             R"({"textDocument":{"uri":"file:///nowhere/a.pwr",)" +
                             place;
  running.server.receive(change + R"(abc"}]}})");
  running.server.receive(change + R"(x"}]}})");
  CHECK(running.server.backlog().messages == 1);
  running.tell(request(30, "textDocument/documentSymbol", ""));
  REQUIRE(running.sent.size() == 1);
  CHECK(running.sent[0].find(R"("name":"xbc")") != std::string::npos);
}

TEST_CASE("server: shutdown does not wait for what was sent before it for long", "[lsp]") {
  Running running;
  const std::string shutdown = R"({"jsonrpc":"2.0","id":99,"method":"shutdown"})";
  for (const std::string& one : requests()) running.server.receive(one);
  running.server.receive(shutdown);
  REQUIRE(running.server.work());
  CHECK(running.sent.back().find("\"result\"") != std::string::npos);
  std::this_thread::sleep_for(Server::kPatience + std::chrono::milliseconds(10));
  running.sent.clear();
  while (running.server.work()) {
  }
  REQUIRE(running.sent.size() == requests().size());
  CHECK(running.sent.back().find("\"result\":null") != std::string::npos);
  for (std::size_t i = 0; i + 1 < running.sent.size(); ++i)
    CHECK(running.sent[i].find("-32800") != std::string::npos);
}

TEST_CASE("server: a shutdown that is refused leaves the server as it was", "[lsp]") {
  std::vector<std::string> sent;
  Server server{[&](const std::string& message) { sent.push_back(message); }};
  server.receive(R"({"jsonrpc":"2.0","id":1,"method":"shutdown"})");
  REQUIRE(server.work());
  std::this_thread::sleep_for(Server::kPatience + std::chrono::milliseconds(10));
  server.receive(R"({"jsonrpc":"2.0","id":2,"method":"initialize","params":{}})");
  server.receive(open_message());
  server.receive(request(3, "textDocument/documentSymbol", ""));
  while (server.work()) {
  }
  REQUIRE(sent.size() == 3);
  CHECK(sent[2].find("\"result\"") != std::string::npos);
}

TEST_CASE("server: messages made wrong at random are refused or answered", "[lsp]") {
  Random random(11);
  const std::vector<std::string> all = requests();
  const std::vector<std::string> parts{
      "{",        "}",       "[",    "]",     "null",       "-1",
      "1e99",     "\"",      ":",    ",",     "4294967296", "99999999999999999999",
      "true",     "\\u0000", "\xff", "file:", "%",          "\"id\"",
      "\"range\""};
  for (int i = 0; i < 1000; ++i) {
    Running running;
    std::string text = random.below(4) == 0 ? open_message() : all[random.below(all.size())];
    for (std::uint64_t edits = 1 + random.below(3); edits > 0; --edits) {
      const std::size_t at = random.below(text.size());
      const std::size_t length = random.below(3) == 0 ? random.below(text.size() - at) : 1;
      text.replace(at, length, parts[random.below(parts.size())]);
      if (text.empty()) text = "{";
    }
    INFO(text);
    running.tell(text);
    REQUIRE(running.sent.size() <= 2);  // one, but for edits that make a batch
    // It still serves.
    running.sent.clear();
    running.tell(R"({"jsonrpc":"2.0","id":77,"method":"workspace/symbol","params":{"query":"r"}})");
    REQUIRE(running.sent.size() == 1);
  }
}

TEST_CASE("server: brackets without end, batches and other texts are refused", "[lsp]") {
  Running running;
  for (const std::string& text :
       {std::string(100000, '['), std::string("[]"), std::string("3"), std::string("\"x\""),
        std::string(""), std::string("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"x\"}"),
        std::string("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":3}")}) {
    running.sent.clear();
    running.tell(text);
    REQUIRE(running.sent.size() == 1);
    CHECK(running.sent[0].find("\"error\"") != std::string::npos);
  }
}

}  // namespace
}  // namespace pw::cli
