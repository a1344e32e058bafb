#include "base/version.hpp"

namespace pw {

const char* version() { return PW_VERSION; }

}  // namespace pw
