# pw_library, pw_program, pw_test, pw_script_test: one call a target, sources always listed by name.

add_library(pw_warnings INTERFACE)
target_compile_options(pw_warnings INTERFACE
  -Wall -Wextra -Wswitch-enum -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wundef)

# GCC 12 takes what it inlines of std::string and std::vector for accesses out of bounds, and does not see that a
# precompiled header is a system's (GCC bugs 105329 and 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(pw_warnings INTERFACE
    -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
endif()

# Clang does not see that std::stable_sort of GCC 12's library may use what that library deprecates.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(pw_warnings INTERFACE -Wno-deprecated-declarations)
endif()

# Includes are written from the root, so that is the only include folder of our own.
add_library(pw_root INTERFACE)
target_include_directories(pw_root INTERFACE
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>" "$<INSTALL_INTERFACE:include/piecewise>")
target_compile_options(pw_root INTERFACE "$<BUILD_INTERFACE:-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=>")
target_compile_features(pw_root INTERFACE cxx_std_20)

# What is installed: the libraries by pw_library, and the programs by pw_program.
include(GNUInstallDirs)
install(TARGETS pw_warnings pw_root EXPORT Piecewise)

# pw_library(NAME [INTERNAL] [COLD] [SOURCES …] [DEPS …] [PRIVATE_DEPS …])
# A static library; with no sources yet, an INTERFACE library that passes its DEPS on. COLD: what runs once a command,
# not once a node; see pw_cold. INTERNAL: it is not installed.
function(pw_library name)
  cmake_parse_arguments(ARG "INTERNAL;COLD" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  pw_refuse_unknown(pw_library "${ARG_UNPARSED_ARGUMENTS}")
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    target_link_libraries(${name} PUBLIC pw_root ${ARG_DEPS} PRIVATE pw_warnings ${ARG_PRIVATE_DEPS})
    pw_precompiled(${name} "${ARG_COLD}")
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE pw_root ${ARG_DEPS})
  endif()
  if(NOT ARG_INTERNAL)
    install(TARGETS ${name} EXPORT Piecewise)
  endif()
endfunction()

# pw_part(NAME OF LIBRARY SOURCES … [DEPS …]): sources of a library that are cold while its others are not.
function(pw_part name)
  cmake_parse_arguments(ARG "" "OF" "SOURCES;DEPS" ${ARGN})
  pw_refuse_unknown(pw_part "${ARG_UNPARSED_ARGUMENTS}")
  add_library(${name} OBJECT ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE pw_root pw_warnings ${ARG_DEPS})
  pw_precompiled(${name} ON)
  target_sources(${ARG_OF} PRIVATE $<TARGET_OBJECTS:${name}>)
endfunction()

# pw_precompiled(TARGET COLD): all libraries share two sets of precompiled headers, as those of a library cost as much as
# a dozen of its sources.
function(pw_precompiled target cold)
  if(cold)
    pw_cold(${target})
    target_precompile_headers(${target} REUSE_FROM pw_headers_cold)
  else()
    target_precompile_headers(${target} REUSE_FROM pw_headers)
  endif()
endfunction()

# What is precompiled, and the targets that do it. A target has precompiled headers only if a source uses them.
function(pw_headers name)
  add_library(${name} OBJECT "${PROJECT_SOURCE_DIR}/cmake/precompiled.cpp")
  target_link_libraries(${name} PRIVATE pw_root pw_warnings fmt::fmt)
  target_precompile_headers(${name} PRIVATE "${PROJECT_SOURCE_DIR}/cmake/precompiled.hpp")
endfunction()

# pw_vectorized(SOURCE …): sources whose loops are worth full vectorisation whatever the build's own level.
function(pw_vectorized)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Asan")
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "-O3")
  endif()
endfunction()

# pw_program(NAME [INSTALL] [COLD] [SOURCES …] [DEPS …]): an executable in bin/; none while there are no sources.
function(pw_program name)
  cmake_parse_arguments(ARG "INSTALL;COLD" "" "SOURCES;DEPS" ${ARGN})
  pw_refuse_unknown(pw_program "${ARG_UNPARSED_ARGUMENTS}")
  if(NOT ARG_SOURCES)
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE pw_root pw_warnings fmt::fmt ${ARG_DEPS})
  if(ARG_COLD)
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${name} PRIVATE -fPIC) # as libraries are compiled: else the headers are refused
    pw_precompiled(${name} TRUE)
  endif()
  if(ARG_INSTALL OR PW_STATIC)
    pw_self_contained(${name})
  endif()
  if(ARG_INSTALL)
    install(TARGETS ${name})
  endif()
endfunction()

# pw_test(FOLDER [SOURCES …] [DEPS …] [ENV NAME=value …] [LABELS …] [TIMEOUT seconds])
# `test_FOLDER` in bin/, a Catch2 program and one ctest entry, run from the source root. Exit code 77 is a skip.
function(pw_test folder)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;ENV;LABELS" ${ARGN})
  pw_refuse_unknown(pw_test "${ARG_UNPARSED_ARGUMENTS}")
  if(NOT ARG_SOURCES)
    return()
  endif()
  set(target test_${folder})
  add_executable(${target} ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE pw_root pw_warnings pw_catch_main ${ARG_DEPS})
  target_precompile_headers(${target} REUSE_FROM pw_catch_main)
  pw_cold(${target})
  if(PW_STATIC)
    pw_self_contained(${target})
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE 8) # their little worlds have names alike
  pw_script_test(${folder} COMMAND ${target} ENV ${ARG_ENV} LABELS ${ARG_LABELS} TIMEOUT ${ARG_TIMEOUT})
endfunction()

# pw_script_test(NAME COMMAND … [ENV …] [LABELS …] [TIMEOUT seconds]): any command as a ctest entry.
function(pw_script_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "COMMAND;ENV;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  # Seconds of a machine with nothing else to do; the limit ends a hang, and measures nothing.
  math(EXPR ARG_TIMEOUT "4 * ${ARG_TIMEOUT}")
  if(CMAKE_BUILD_TYPE STREQUAL "Asan") # sanitizers take their time
    math(EXPR ARG_TIMEOUT "4 * ${ARG_TIMEOUT}")
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  add_test(NAME ${name} COMMAND ${ARG_COMMAND} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  set_tests_properties(${name} PROPERTIES
    TIMEOUT ${ARG_TIMEOUT}
    LABELS "${ARG_LABELS}"
    SKIP_RETURN_CODE 77
    ENVIRONMENT "PW_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY};PWR_CACHE_DIR=${PROJECT_BINARY_DIR}/compile-cache;${ARG_ENV}")
endfunction()

function(pw_refuse_unknown caller arguments)
  if(arguments)
    message(FATAL_ERROR "${caller}: unknown arguments: ${arguments}")
  endif()
endfunction()
