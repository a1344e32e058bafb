#include "serve/site.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "serve/ask.hpp"
#include "serve/gate.hpp"
#include "serve/page.hpp"
#include "viz/page.hpp"

namespace pw::cli {
namespace {

constexpr std::size_t kGraphs = 8, kPictures = 16, kShelfBytes = std::size_t{256} << 20;
constexpr const char* kJson = "application/json";

/// Adds headers that restrict an answer to the page and forbid caching.
HttpAnswer kept_private(HttpAnswer answer) {
  const std::pair<std::string, std::string> own[] = {
      {"Cache-Control", "no-store"},
      {"Referrer-Policy", "no-referrer"},
      {"X-Content-Type-Options", "nosniff"},
      {"Cross-Origin-Resource-Policy", "same-origin"}};
  answer.headers.insert(answer.headers.end(), std::begin(own), std::end(own));
  return answer;
}

HttpAnswer not_there() { return {404, "text/plain; charset=utf-8", "there is no such page\n"}; }

bool is_id(std::string_view text) {
  return !text.empty() && text.size() <= 64 &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Returns the page's message for a worker without an answer.
std::string no_answer(WorkerResult::End end, std::chrono::seconds most) {
  if (end == WorkerResult::End::late)
    return problem_to_json(
        "PW1604", fmt::format("this took longer than {} s and was stopped", most.count()),
        "check that the rules terminate, or set a larger limit with `pwr serve --time-limit`");
  if (end == WorkerResult::End::busy)
    return problem_to_json("PW1604", "other pages of this server are busy", "try again");
  return problem_to_json("PW1604",
                         "this ended without an answer: it used more than 4 GiB of memory, "
                         "or triggered a bug in pwr",
                         "run `pwr check` and `pwviz` on the same files for details");
}

}  // namespace

void Shelf::put(const std::string& name, std::string text) {
  const std::lock_guard lock(mutex_);
  texts_.remove_if([&](const auto& one) { return one.first == name; });
  texts_.emplace_front(name, std::make_shared<const std::string>(std::move(text)));
  std::size_t count = 0, bytes = 0;
  for (auto it = texts_.begin(); it != texts_.end(); ++it) {
    bytes += it->second->size();
    if (++count > 1 && (count > most_ || bytes > most_bytes_)) {
      texts_.erase(it, texts_.end());
      return;
    }
  }
}

std::shared_ptr<const std::string> Shelf::find(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto it = std::find_if(texts_.begin(), texts_.end(),
                               [&](const auto& one) { return one.first == name; });
  if (it == texts_.end()) return nullptr;
  texts_.splice(texts_.begin(), texts_, it);
  return texts_.front().second;
}

Site::Site(std::string share, std::string token, std::chrono::seconds most)
    : share_(std::move(share)),
      token_(std::move(token)),
      most_(most),
      start_(random_word()),
      graphs_(kGraphs, kShelfBytes),
      pictures_(kPictures, kShelfBytes),
      workers_(most) {}

HttpAnswer Site::answer(const HttpRequest& request) {
  const std::string_view path = path_of(request.target);
  const bool get = request.method == "GET";
  if (get && path == "/") return kept_private(page());
  if (get && path == "/share") return kept_private({200, kJson, share_});
  if (get && path.starts_with("/start/")) return kept_private(start(path.substr(7)));
  if (get && path.starts_with("/picture/")) return kept_private(picture(path.substr(9)));
  if (!get && path == "/ask") return kept_private(ask(request));
  return kept_private(not_there());
}

HttpAnswer Site::start(std::string_view word) {
  const std::lock_guard lock(mutex_);
  if (start_.empty() || word != start_)
    return {403, "text/plain; charset=utf-8",
            "this address works only once: open the one that `pwr serve` printed\n"};
  start_.clear();
  return {303, "text/plain; charset=utf-8", "", {{"Location", "/?token=" + token_}}};
}

HttpAnswer Site::page() const {
  const std::string nonce = random_word();
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>pwr serve</title>\n<link rel=\"icon\" href=\"data:,\">\n<style nonce=\"{0}\">{1}{2}"
      "</style>\n</head>\n<body class=\"serve\">\n"
      "<script type=\"application/json\" id=\"settings\" nonce=\"{0}\">{3}</script>\n"
      "<script nonce=\"{0}\">{4}</script>\n</body>\n</html>\n",
      nonce, viz::kPageStyle, kPageStyle, page_settings_json(), kPageScript);
  return {200,
          "text/html; charset=utf-8",
          std::move(html),
          {{"Content-Security-Policy",
            fmt::format("default-src 'none'; script-src 'nonce-{0}'; style-src 'nonce-{0}'; "
                        "connect-src 'self'; frame-src 'self'; img-src data:; base-uri 'none'; "
                        "form-action 'none'; frame-ancestors 'none'",
                        nonce)}}};
}

/// Sandboxes the picture in a separate origin without network access, because the graph is
/// untrusted.
HttpAnswer Site::picture(std::string_view name) {
  const auto found = pictures_.find(name);
  if (!found) return not_there();
  return {200,
          "text/html; charset=utf-8",
          *found,
          {{"Content-Security-Policy",
            "sandbox allow-scripts allow-downloads; default-src 'none'; script-src "
            "'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
            "form-action 'none'; frame-ancestors 'self'"}}};
}

/// The body is a line of JSON, followed by the graph unless the server already stores it.
HttpAnswer Site::ask(const HttpRequest& request) {
  const std::string page = request.one("X-Piecewise-Page");
  const std::string graph = request.one("X-Piecewise-Graph");
  if (!is_id(page) || (!graph.empty() && !is_id(graph)))
    return {400, "text/plain; charset=utf-8", "an id is missing or invalid\n"};
  const std::size_t end = request.body.find('\n');
  if (end == std::string::npos)
    return {400, "text/plain; charset=utf-8", "the body does not start with a line of JSON\n"};
  const std::string_view question = std::string_view(request.body).substr(0, end);
  auto content = std::make_shared<const std::string>(request.body.substr(end + 1));
  if (!graph.empty()) {
    if (!content->empty()) graphs_.put(graph, *content);
    content = graphs_.find(graph);
    if (!content) return {410, "text/plain; charset=utf-8", "this graph is no longer stored\n"};
  }
  WorkerResult result = workers_.run(page, question, *content);
  if (result.end == WorkerResult::End::cancelled)
    return {409, "text/plain; charset=utf-8", "a newer request replaced this one\n"};
  if (result.end == WorkerResult::End::stopped)
    return {503, "text/plain; charset=utf-8", "the server has stopped\n"};
  if (result.end != WorkerResult::End::answered) return {200, kJson, no_answer(result.end, most_)};
  HttpAnswer out{200, kJson, std::move(result.answer)};
  if (!result.picture.empty()) {
    const std::string name = random_word();
    pictures_.put(name, std::move(result.picture));
    out.headers.emplace_back("X-Piecewise-Picture", name);
  }
  return out;
}

}  // namespace pw::cli
