// Interface to the HTTP library, with requests and responses as plain data. The library is
// optional, so the code that links to it is a module that is loaded on demand.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostic.hpp"

namespace pw::cli {

struct HttpRequest {
  std::string method;
  std::string target;  ///< path and query, as sent
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;

  /// Returns all values of a header; names are case-insensitive.
  [[nodiscard]] std::vector<std::string> all(std::string_view name) const;
  /// Returns the value of a header that occurs once; otherwise empty.
  [[nodiscard]] std::string one(std::string_view name) const;
};

struct HttpAnswer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// The callbacks of a server; both are called concurrently.
struct HttpService {
  /// Called before a body is read; returns the response to a rejected request.
  std::function<std::optional<HttpAnswer>(const HttpRequest&)> refuse;
  std::function<HttpAnswer(const HttpRequest&)> answer;
  std::size_t most_bytes = 0;  ///< of a body; one with more is cut off, as are headers of 64 KiB
};

/// Serves one request for each connection, on 127.0.0.1 only.
class HttpServer {
 public:
  virtual ~HttpServer() = default;
  /// Binds a port (0: any free one). Returns 0 or an `errno`.
  virtual int bind(int port) = 0;
  [[nodiscard]] virtual int port() const = 0;
  /// Runs until stop(), which any thread may call.
  virtual void serve() = 0;
  virtual void stop() = 0;
};

/// Fails with PW1600 if the module or its library is missing.
Result<std::unique_ptr<HttpServer>> make_http_server(HttpService service);

/// Signature of the module's entry point.
using MakeHttpServer = HttpServer* (*)(HttpService* service);
inline constexpr const char* kMakeHttpServer = "piecewise_http_server";

}  // namespace pw::cli
