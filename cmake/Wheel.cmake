# What `pip wheel .` (scikit-build-core) packs: the programs, the Python module, manual pages and completions.
# PW_FINISHED_BUILD names the folder of a finished build, from which they are taken instead of being built again.
set(PW_FINISHED_BUILD "" CACHE PATH "for wheels: a finished build whose programs and module are packed")

# The install() rules of the component `wheel`, and the target that pip builds.
function(pw_install_wheel)
  add_custom_target(pw_wheel)
  if(PW_FINISHED_BUILD)
    get_filename_component(build "${PW_FINISHED_BUILD}" ABSOLUTE)
    set(module "${build}/python/_piecewise.${SKBUILD_SOABI}.so")
    if(NOT EXISTS "${module}")
      message(FATAL_ERROR "there is no ${module}: build pw_python there, for the interpreter that runs pip")
    endif()
    install(PROGRAMS "${build}/bin/pwr" "${build}/bin/pwviz" DESTINATION "${SKBUILD_SCRIPTS_DIR}" COMPONENT wheel)
    install(FILES "${module}" DESTINATION . COMPONENT wheel)
  else()
    set(build "${PROJECT_BINARY_DIR}")
    add_dependencies(pw_wheel pwr pwviz pw_python pw_share)
    install(TARGETS pwr pwviz DESTINATION "${SKBUILD_SCRIPTS_DIR}" COMPONENT wheel)
    install(TARGETS pw_python DESTINATION . COMPONENT wheel)
  endif()
  # Beside bin/, where pwr looks for it; it needs cpp-httplib's library, which a wheel does not carry.
  install(DIRECTORY "${build}/lib" DESTINATION "${SKBUILD_DATA_DIR}" COMPONENT wheel OPTIONAL)
  install(DIRECTORY "${build}/share" DESTINATION "${SKBUILD_DATA_DIR}" COMPONENT wheel)
endfunction()
