#include "cli/parts/labs.hpp"

namespace pw::cli {

const Labs* labs() { return nullptr; }

}  // namespace pw::cli
