#include "import/fx/emit/names.hpp"

#include <fmt/format.h>

namespace pw::fx {

std::string UniqueNames::fresh(std::string base) {
  if (generated(base)) base.resize(base.rfind("__"));
  int& next = counters_[base];
  while (true) {
    std::string name = fmt::format("{}__{}", base, next++);
    if (!insert(name)) continue;
    generated_.insert(name);
    return name;
  }
}

}  // namespace pw::fx
