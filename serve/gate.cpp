#include "serve/gate.hpp"

#include <array>

#include <fmt/format.h>
#include <sys/random.h>

#include "base/assert.hpp"
#include "base/parse_number.hpp"

namespace pw::cli {
namespace {

HttpAnswer no(int status, std::string_view why) {
  return {status, "text/plain; charset=utf-8", fmt::format("{}\n", why)};
}

/// Compares in constant time.
bool same(std::string_view a, std::string_view b) {
  unsigned char different = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i)
    different = static_cast<unsigned char>(different | (a[i] ^ b[i]));
  return different == 0;
}

std::string_view query_of(std::string_view target) {
  const std::size_t at = target.find('?');
  return at == std::string_view::npos ? std::string_view() : target.substr(at + 1);
}

/// Returns true if the path itself carries an unguessable secret.
bool has_own_secret(std::string_view path) {
  return path.starts_with("/picture/") || path.starts_with("/start/");
}

std::optional<HttpAnswer> refuse_body(const HttpRequest& request, std::size_t most) {
  if (!request.all("Transfer-Encoding").empty()) return no(411, "Content-Length is required");
  if (!request.all("Content-Encoding").empty()) return no(415, "Content-Encoding is not supported");
  const std::vector<std::string> lengths = request.all("Content-Length");
  if (lengths.empty())
    return request.method == "POST" ? std::optional(no(411, "Content-Length is required"))
                                    : std::nullopt;
  const auto length = parse_number<std::size_t>(lengths.front());
  if (lengths.size() > 1 || !length) return no(400, "Content-Length is not a number");
  if (*length > (request.method == "POST" ? most : 0))
    return no(413, fmt::format("the body has more than {} bytes", most));
  if (request.method == "POST" && request.one("Content-Type") != "application/octet-stream")
    return no(415, "Content-Type must be application/octet-stream");
  return {};
}

}  // namespace

std::string_view path_of(std::string_view target) { return target.substr(0, target.find('?')); }

std::string random_word() {
  std::array<unsigned char, 16> bytes{};
  const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
  PW_ASSERT(got == static_cast<ssize_t>(bytes.size()), "the system provides no random bytes");
  std::string out;
  for (const unsigned char byte : bytes) out += fmt::format("{:02x}", byte);
  return out;
}

std::string Gate::address() const {
  return fmt::format("http://127.0.0.1:{}/?token={}", port, token);
}

std::optional<HttpAnswer> Gate::refuse(const HttpRequest& request) const {
  if (request.method != "GET" && request.method != "POST")
    return no(405, "only GET and POST are supported");
  const std::string host = request.one("Host");
  if (host != fmt::format("127.0.0.1:{}", port) && host != fmt::format("localhost:{}", port))
    return no(403, "the Host must be 127.0.0.1 or localhost, with the port of this server");
  const std::vector<std::string> origins = request.all("Origin");
  const std::string site = request.one("Sec-Fetch-Site");
  const bool foreign = request.method == "POST" && !site.empty() && site != "same-origin";
  if (origins.size() > 1 || (origins.size() == 1 && origins.front() != "http://" + host) || foreign)
    return no(403, "the request comes from another site");
  if (auto refused = refuse_body(request, most_body)) return refused;
  const std::string_view path = path_of(request.target);
  if (request.method == "GET" && has_own_secret(path)) return {};
  const bool opens = request.method == "GET" && path == "/";
  const std::string_view shown = query_of(request.target);
  const std::string header = request.one(kTokenHeader);
  if (same(opens ? shown : std::string_view(header), opens ? "token=" + token : token)) return {};
  return no(403, "the token is missing or wrong: open the address that `pwr serve` printed");
}

}  // namespace pw::cli
