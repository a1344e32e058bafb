# What `pip wheel .` (scikit-build-core) packs: the programs, the Python module with its stub, manual pages and completions.
# PW_FINISHED_BUILD names the folder of a finished build, from which they are taken instead of being built again. If its
# module is another Python's, the module alone is compiled here and linked with the libraries of that build.
set(PW_FINISHED_BUILD "" CACHE PATH "for wheels: a finished build whose programs and module are packed")

# The install() rules of the component `wheel`, and the target that pip builds.
function(pw_install_wheel)
  add_custom_target(pw_wheel)
  if(PW_FINISHED_BUILD)
    get_filename_component(build "${PW_FINISHED_BUILD}" ABSOLUTE)
    set(module "${build}/python/_piecewise.${SKBUILD_SOABI}.so")
    install(PROGRAMS "${build}/bin/pwr" "${build}/bin/pwviz" DESTINATION "${SKBUILD_SCRIPTS_DIR}" COMPONENT wheel)
  else()
    set(build "${PROJECT_BINARY_DIR}")
    add_dependencies(pw_wheel pwr pwviz pw_share)
    install(TARGETS pwr pwviz DESTINATION "${SKBUILD_SCRIPTS_DIR}" COMPONENT wheel)
  endif()
  if(PW_FINISHED_BUILD AND EXISTS "${module}")
    install(FILES "${module}" DESTINATION . COMPONENT wheel)
  else()
    if(PW_FINISHED_BUILD)
      pw_module_of_finished_build("${build}")
    endif()
    add_dependencies(pw_wheel pw_python)
    install(TARGETS pw_python DESTINATION . COMPONENT wheel)
  endif()
  # A type checker reads the stub of a module that is no package only from a stub package (PEP 561).
  install(FILES python/_piecewise.pyi DESTINATION _piecewise-stubs RENAME __init__.pyi COMPONENT wheel)
  # PyTorch imports it at every start, so it is no part of the package, whose import loads the module.
  install(FILES python/piecewise_autoload.py DESTINATION . COMPONENT wheel)
  # Beside bin/, where pwr looks for it; it needs cpp-httplib's library, which a wheel does not carry.
  install(DIRECTORY "${build}/lib" DESTINATION "${SKBUILD_DATA_DIR}" COMPONENT wheel OPTIONAL)
  install(DIRECTORY "${build}/share" DESTINATION "${SKBUILD_DATA_DIR}" COMPONENT wheel)
endfunction()

# Compiles the module for pip's interpreter, with the libraries that a finished build exports.
macro(pw_module_of_finished_build build)
  include(Toolchain)
  include(Dependencies)
  include(SelfContained)
  include("${build}/PiecewiseTargets.cmake")
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 16)
  add_subdirectory(python)
endmacro()
