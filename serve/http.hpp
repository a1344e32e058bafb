// The seam to HTTP: requests and answers as plain data. The library that speaks the protocol is not
// on every machine, so what is linked with it is a module, which is loaded when a server is wanted.
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
  std::string target;  ///< path and query, as they were sent
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;

  /// All values of a header, whatever the case of its name.
  [[nodiscard]] std::vector<std::string> all(std::string_view name) const;
  /// The value of a header that is there once; empty otherwise.
  [[nodiscard]] std::string one(std::string_view name) const;
};

struct HttpAnswer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// Both functions are called by several threads at once.
struct HttpService {
  /// Asked before a body is read: the answer to a request that goes no further.
  std::function<std::optional<HttpAnswer>(const HttpRequest&)> refuse;
  std::function<HttpAnswer(const HttpRequest&)> answer;
  std::size_t most_bytes = 0;  ///< of a body; one with more is cut off, as are headers of 64 KiB
};

/// Serves one request a connection, on 127.0.0.1 and nowhere else.
class HttpServer {
 public:
  virtual ~HttpServer() = default;
  /// Takes a port, 0: any that is free. 0, or the reason as an `errno`.
  virtual int bind(int port) = 0;
  [[nodiscard]] virtual int port() const = 0;
  /// Until stop(), which any thread may call.
  virtual void serve() = 0;
  virtual void stop() = 0;
};

/// PW1600 where the module, or the library that it needs, is missing.
Result<std::unique_ptr<HttpServer>> make_http_server(HttpService service);

/// What the module exports.
using MakeHttpServer = HttpServer* (*)(HttpService* service);
inline constexpr const char* kMakeHttpServer = "piecewise_http_server";

}  // namespace pw::cli
