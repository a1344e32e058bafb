// What the server serves: its page, the share that it began with, answers, and pictures. It reads
// nothing of what a page sends but an id: the rest goes to a process of its own (workers.hpp).
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

/// Texts by name; the ones that were used last, as many as there is place for.
class Shelf {
 public:
  Shelf(std::size_t most, std::size_t most_bytes) : most_(most), most_bytes_(most_bytes) {}
  void put(const std::string& name, std::string text);
  /// Null where it is not there, or not any more.
  [[nodiscard]] std::shared_ptr<const std::string> find(std::string_view name);

 private:
  std::size_t most_, most_bytes_;
  std::mutex mutex_;
  std::list<std::pair<std::string, std::shared_ptr<const std::string>>> texts_;  // the newest first
};

class Site {
 public:
  /// `share`: the document that pages begin with. `token`: what lets them in.
  Site(std::string share, std::string token, std::chrono::seconds most);

  /// The path that leads to the page once: what a program that opens a browser may be told, as its
  /// arguments are seen by others.
  [[nodiscard]] std::string start_path() const { return "/start/" + start_; }
  /// Of a request that the gate let in.
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
  std::string start_;  // empty once it was used
  Shelf graphs_, pictures_;
  Workers workers_;
};

}  // namespace pw::cli
