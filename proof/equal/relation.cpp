// The keywords of relations.
#include "proof/equal/relation.hpp"

#include <array>

namespace pw::proof {

std::string_view name(Part part) {
  constexpr std::array<std::string_view, 5> kNames = {"replicated", "gathered", "blocks", "partial",
                                                      "cat"};
  return kNames[static_cast<std::size_t>(part)];
}

}  // namespace pw::proof
