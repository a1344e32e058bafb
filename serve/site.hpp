// The resources of the server: its page, the initial share, answers, and pictures. It only reads
// the ids of a request: a separate process reads the rest (workers.hpp).
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "serve/http.hpp"
#include "serve/workers.hpp"

namespace pw::cli {

/// LRU cache of texts by name, with limited size.
class Shelf {
 public:
  Shelf(std::size_t most, std::size_t most_bytes) : most_(most), most_bytes_(most_bytes) {}
  void put(const std::string& name, std::string text);
  /// Returns the text; null if it is absent or was evicted.
  [[nodiscard]] std::shared_ptr<const std::string> find(std::string_view name);

 private:
  std::size_t most_, most_bytes_;
  std::mutex mutex_;
  std::list<std::pair<std::string, std::shared_ptr<const std::string>>> texts_;  // newest first
};

class Site {
 public:
  /// `share` is the pages' initial document; `token` grants access.
  Site(std::string share, std::string token, std::chrono::seconds most);

  /// Returns a path that opens the page once. It may be passed to a program that starts a browser,
  /// because other users can see its arguments.
  [[nodiscard]] std::string start_path() const { return "/start/" + start_; }
  /// Answers a request that the gate accepted.
  HttpAnswer answer(const HttpRequest& request);
  void stop() { workers_.stop(); }

 private:
  HttpAnswer start(std::string_view word);
  HttpAnswer page() const;
  HttpAnswer picture(std::string_view name);
  HttpAnswer ask(const HttpRequest& request);

  std::string share_, token_;
  std::chrono::seconds most_;
  std::mutex mutex_;
  std::string start_;  // empty after its use
  Shelf graphs_, pictures_;
  Workers workers_;
};

}  // namespace pw::cli
