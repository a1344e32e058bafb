# Compiler settings that hold for the whole tree, none of which changes what the code means.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON) # the Python module links the static libraries
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()

# GCC collects its garbage often by default; with this it takes a twentieth less time, and up to a gigabyte.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(--param=ggc-min-heapsize=524288 --param=ggc-min-expand=100)
endif()

find_program(PW_CCACHE ccache)
if(PW_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${PROJECT_SOURCE_DIR}/cmake/compile.sh" "${PW_CCACHE}")
endif()

# GCC spends a third of its time on what -O2 does beyond this, which code that runs once need not wait for. Small
# functions are inlined all the same, as the linker may take its copy of one for all.
function(pw_cold target)
  if(CMAKE_BUILD_TYPE STREQUAL "Release" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -O1 -finline-small-functions)
  endif()
endfunction()
