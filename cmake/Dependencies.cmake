# Debian's packages; nothing is fetched. `./dev` installs what is missing.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(tl-expected REQUIRED)
find_package(Boost 1.74 REQUIRED) # headers only
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(OpenSSL 3 REQUIRED COMPONENTS Crypto) # SHA-256 only
find_package(PkgConfig REQUIRED)
pkg_check_modules(GVC REQUIRED IMPORTED_TARGET libgvc libcgraph)

# Optional: without it the Python module, the notebooks and their tests are left out.
# Debian's own interpreter, since Debian's pybind11 and numpy belong to it.
set(PW_PYTHON /usr/bin/python3 CACHE FILEPATH "Python interpreter for the bindings")
set(PYTHON_EXECUTABLE "${PW_PYTHON}" CACHE FILEPATH "" FORCE)
set(Python_EXECUTABLE "${PW_PYTHON}" CACHE FILEPATH "" FORCE)
find_package(pybind11 2.10 QUIET)
if(CMAKE_BUILD_TYPE STREQUAL "Asan")
  set(pybind11_FOUND OFF) # an uninstrumented interpreter cannot load an instrumented module
elseif(NOT pybind11_FOUND)
  message(STATUS "pybind11 not found: the Python module will not be built")
endif()

# Optional: without it `bench/` is left out.
find_package(benchmark QUIET)
