// The last line of defence of a program: what escapes becomes exit code 70 and a request to report
// it.
#pragma once

#include <functional>

namespace pw::cli {

int guarded(const std::function<int()>& body);

}  // namespace pw::cli
