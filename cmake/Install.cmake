# `cmake --install`: programs, static libraries, headers, and what find_package(Piecewise CONFIG) reads.
include(CMakePackageConfigHelpers)

install(
  DIRECTORY base algebra graph models dsl rewriter splitter tensor import codegen backends exec cuda engines ranks verify viz pipeline
    proof discover studies failures kernel_reports
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/piecewise"
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.def")
install(EXPORT Piecewise
  FILE PiecewiseTargets.cmake
  NAMESPACE Piecewise::
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/Piecewise")
export(EXPORT Piecewise FILE "${PROJECT_BINARY_DIR}/PiecewiseTargets.cmake") # for wheels: cmake/Wheel.cmake
write_basic_package_version_file("${PROJECT_BINARY_DIR}/PiecewiseConfigVersion.cmake"
  VERSION "${PROJECT_VERSION}" COMPATIBILITY SameMinorVersion)
install(
  FILES cmake/PiecewiseConfig.cmake "${PROJECT_BINARY_DIR}/PiecewiseConfigVersion.cmake"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/Piecewise")
