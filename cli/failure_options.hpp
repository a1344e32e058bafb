// The options that say what is wrong with a rewrite: those of bisect and reduce.
#pragma once

#include <string>

#include "cli/session.hpp"
#include "failures/failure.hpp"

namespace pw::cli {

/// As they are written; `request` reads the lists.
struct FailureOptions {
  FailureRequest stated;
  std::string tokens;
  void add_to(CLI::App& app, bool order);  ///< `order`: with --order
  [[nodiscard]] FailureRequest request(const Session& session) const;
};

}  // namespace pw::cli
