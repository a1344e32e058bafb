# Debian's packages; nothing is fetched. `./dev` installs what is missing.
find_package(Threads REQUIRED)

# What is built so runs on a machine that has nothing but libc: what else it needs is loaded when it is there.
option(PW_STATIC "link everything but libc into each program" OFF)
if(PW_STATIC) # not into the Python module, since a process has several modules and one C++ runtime
  add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-static-libstdc++$<SEMICOLON>-static-libgcc>)
endif()
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(tl-expected REQUIRED)
find_package(Boost 1.74 REQUIRED) # headers only
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
# SHA-256 only, and from the archive, of which that is a small part.
set(OPENSSL_USE_STATIC_LIBS ON)
if(OPENSSL_CRYPTO_LIBRARY MATCHES "\\.so$") # of a build folder that was configured before
  unset(OPENSSL_CRYPTO_LIBRARY CACHE)
endif()
find_package(OpenSSL 3 REQUIRED COMPONENTS Crypto)
find_path(PW_GRAPHVIZ_INCLUDE gvc.h PATH_SUFFIXES graphviz REQUIRED) # headers only
find_path(PW_LIBZIP_INCLUDE zip.h REQUIRED) # headers only
find_path(PW_TOML_INCLUDE toml++/toml.h REQUIRED) # headers only

# Optional: without it the Python module, the notebooks and their tests are left out.
# Debian's own interpreter, since Debian's pybind11 and numpy belong to it.
set(PW_PYTHON /usr/bin/python3 CACHE FILEPATH "Python interpreter for the bindings")
if(SKBUILD) # pip's, with the pybind11 that pyproject.toml asks for
  set(PW_PYTHON "${Python_EXECUTABLE}")
endif()
set(PYTHON_EXECUTABLE "${PW_PYTHON}" CACHE FILEPATH "" FORCE)
set(Python_EXECUTABLE "${PW_PYTHON}" CACHE FILEPATH "" FORCE)
find_package(pybind11 2.10 QUIET)
if(CMAKE_BUILD_TYPE MATCHES "^(Asan|Tsan)$")
  set(pybind11_FOUND OFF) # an uninstrumented interpreter cannot load an instrumented module
elseif(NOT pybind11_FOUND)
  message(STATUS "pybind11 not found: the Python module will not be built")
endif()

# Optional: without it `pwr serve` says that it is missing. Debian's library, whose header only declares.
find_library(PW_HTTPLIB cpp-httplib)
find_path(PW_HTTPLIB_INCLUDE httplib.h)

# Optional: without it `pwr prove` proves what needs no solver.
find_library(PW_Z3 z3)
find_path(PW_Z3_INCLUDE z3++.h)
if(NOT PW_Z3 OR NOT PW_Z3_INCLUDE)
  message(WARNING "Z3 not found (libz3-dev): pwr prove leaves unproved what needs a solver, and has no verdicts on IEEE arithmetic")
endif()

# Optional: without it there are no studies. Headers only: the library is loaded where it is.
find_path(PW_SQLITE_INCLUDE sqlite3.h)
if(NOT PW_SQLITE_INCLUDE)
  message(WARNING "sqlite3.h not found: `pwr explore --study` will say so; libsqlite3-dev has it")
endif()

# Optional: without it `pwr extract --solver cbc` says that it is missing.
find_library(PW_CBC_LIBRARY CbcSolver)
find_path(PW_CBC_INCLUDE coin/Cbc_C_Interface.h)

# Optional: without it ranks are those of one process.
set(MPI_CXX_SKIP_MPICXX ON)
find_package(MPI QUIET COMPONENTS CXX)

# Optional: without it `bench/` is left out.
find_package(benchmark QUIET)
