# Writes OUTPUT: a C++ source holding the viewer's page. FILES (paths joined by `|`) are concatenated in
# their order: .css to the style, .js to the script.
string(REPLACE "|" ";" paths "${FILES}")
set(style "")
set(script "")
foreach(path IN LISTS paths)
  file(READ "${path}" text)
  foreach(clash ")page\"" "</script" "</style")
    string(FIND "${text}" "${clash}" at)
    if(NOT at EQUAL -1)
      message(FATAL_ERROR "${path}: contains ${clash}, which would end what it is embedded in")
    endif()
  endforeach()
  if(path MATCHES "\\.css$")
    string(APPEND style "    R\"page(${text})page\"\n")
  else()
    string(APPEND script "    R\"page(${text})page\"\n")
  endif()
endforeach()

file(WRITE "${OUTPUT}" "\
// Generated from viz/page/ by cmake/EmbedPage.cmake.
#include \"viz/page.hpp\"

namespace pw::viz {

const std::string_view kPageStyle =
${style};
const std::string_view kPageScript =
${script};

}  // namespace pw::viz
")
