// The options of bisect and reduce that describe a failure.
#pragma once

#include <string>

#include "cli/session.hpp"
#include "failures/failure.hpp"

namespace pw::cli {

/// Raw option values; `request` parses the lists.
struct FailureOptions {
  FailureRequest stated;
  std::string tokens;
  void add_to(CLI::App& app, bool order);  ///< `order`: with --order
  [[nodiscard]] FailureRequest request(const Session& session) const;
};

}  // namespace pw::cli
