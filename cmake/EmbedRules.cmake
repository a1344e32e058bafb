# Writes OUTPUT: a C++ source holding the text of FILES (names under ROOT, joined by `|`), sorted by name.
string(REPLACE "|" ";" names "${FILES}")
list(SORT names)

set(entries "")
foreach(name IN LISTS names)
  file(READ "${ROOT}/${name}" text)
  string(FIND "${text}" ")pwr\"" clash)
  if(NOT clash EQUAL -1)
    message(FATAL_ERROR "rules/${name}: contains )pwr\", which would end the embedded literal")
  endif()
  string(APPEND entries "    {\"${name}\", R\"pwr(${text})pwr\"},\n")
endforeach()
list(LENGTH names count)

file(WRITE "${OUTPUT}" "\
// Generated from rules/ by cmake/EmbedRules.cmake.
#include \"dsl/embedded_rules.hpp\"

#include <array>

namespace pw {
namespace {

constexpr std::array<EmbeddedFile, ${count}> kFiles{{
${entries}}};

}  // namespace

std::span<const EmbeddedFile> embedded_rules() { return kFiles; }

}  // namespace pw
")
