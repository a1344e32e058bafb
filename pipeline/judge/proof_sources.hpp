// A hash of all sources that influence a verdict, computed at build time.
#pragma once

namespace pw {

[[nodiscard]] const char* proof_sources();

}  // namespace pw
