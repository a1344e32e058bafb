// Request filter: accepts only requests of a page from this server, in a browser on this machine,
// and rejects those of other sites.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "serve/http.hpp"

namespace pw::cli {

inline constexpr std::string_view kTokenHeader = "X-Piecewise-Token";

struct Gate {
  int port = 0;
  std::string token;
  std::size_t most_body = 0;  ///< bytes

  /// Returns the address that grants access.
  [[nodiscard]] std::string address() const;
  /// Returns the response to a rejected request. Checks the method, the Host (against DNS
  /// rebinding), the Origin, the size and form, and the token.
  [[nodiscard]] std::optional<HttpAnswer> refuse(const HttpRequest& request) const;
};

/// Returns the path of a target without its query.
[[nodiscard]] std::string_view path_of(std::string_view target);
/// Returns 128 random bits from the system as 32 hexadecimal digits.
[[nodiscard]] std::string random_word();

}  // namespace pw::cli
