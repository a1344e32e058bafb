// What a run says of its only saturation.
#pragma once

#include "tests/rewriter/random_graphs.hpp"

namespace pw::test {

inline const Saturated& saturated(const RewriteReport& report) {
  REQUIRE(report.saturations.size() == 1);
  return report.saturations.front();
}

}  // namespace pw::test
