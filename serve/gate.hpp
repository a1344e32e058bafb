// Which requests are let in: those of the page that this server gave out, in a browser of this
// machine. Other sites, whose pages a browser may show at the same time, are kept out.
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

  /// The address that lets in.
  [[nodiscard]] std::string address() const;
  /// The answer to a request that is not let in: by its method, by a Host that names another
  /// machine (a name that was made to lead here, DNS rebinding), by an Origin that is another site,
  /// by its size or form, or for want of the token.
  [[nodiscard]] std::optional<HttpAnswer> refuse(const HttpRequest& request) const;
};

/// The path of a target, without its query.
[[nodiscard]] std::string_view path_of(std::string_view target);
/// 128 random bits of the system's, as 32 hexadecimal digits.
[[nodiscard]] std::string random_word();

}  // namespace pw::cli
