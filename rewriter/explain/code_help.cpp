#include "rewriter/explain/code_help.hpp"

#include "rewriter/explain/near_miss_codes.hpp"

namespace pw {

std::string help_for(std::string_view code) {
  const NearMissCode* known = near_miss_code(code);
  return known == nullptr ? std::string() : std::string(known->help);
}

}  // namespace pw
