# pw_self_contained(TARGET): what is installed needs no library but libc's and GCC's, so that it runs where nothing
# was installed for it. fmt is compiled in, and --as-needed drops the shared one, which then defines nothing.
if(fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10)
  add_library(pw_fmt OBJECT "${PROJECT_SOURCE_DIR}/cmake/fmt.cpp")
  target_link_libraries(pw_fmt PRIVATE fmt::fmt)
endif()

function(pw_self_contained target)
  target_link_options(${target} PRIVATE -Wl,--as-needed)
  if(TARGET pw_fmt)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:pw_fmt>)
  endif()
endfunction()
