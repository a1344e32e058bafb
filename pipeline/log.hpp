// What the stages say while they work. Callers print it, keep it, or let it be.
#pragma once

#include <functional>
#include <string>

#include "base/diagnostic.hpp"

namespace pw {

struct Log {
  std::function<void(const std::string& line)> say = [](const std::string&) {};
  /// What is being done now; each replaces the one before.
  std::function<void(const std::string& line)> progress = [](const std::string&) {};
  std::function<void(const Diagnostics&)> warn = [](const Diagnostics&) {};
};

}  // namespace pw
