// One number of all sources that decide a verdict, taken when the program is built.
#pragma once

namespace pw {

[[nodiscard]] const char* proof_sources();

}  // namespace pw
