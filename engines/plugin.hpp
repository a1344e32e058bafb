// Plugins: engines, externs and host functions that a shared library of the user's own adds to a
// program. The library is built with the installed package, of the same version, and states its
// function by PW_PLUGIN. It runs with all rights of the program: only its user names one.
#pragma once

#include <string>
#include <vector>

#include "backends/host_functions.hpp"
#include "base/version.hpp"
#include "dsl/natives.hpp"
#include "engines/step_engine.hpp"

namespace pw {

struct Plugin {
  struct Extern {
    std::string name;
    std::vector<AttributeKind> kinds;  ///< of its arguments
    Native function;
  };
  std::string path;
  std::vector<StepEngineKind> engines;
  std::vector<Extern> externs;
  HostFunctions host_functions;

  /// Of a context that loads rules after this; what is bound there already stays.
  void bind(Context& context) const;
};

/// Loads the library, for as long as the process lives. PW1217 where it cannot be loaded, is no
/// plugin, or was built with another version.
Result<Plugin> load_plugin(const std::string& path);

}  // namespace pw

/// `PW_PLUGIN(fill)`, once in a library: `void fill(pw::Plugin&)` says what it adds.
#define PW_PLUGIN(fill)                                                         \
  extern "C" const char* piecewise_plugin_version() { return ::pw::version(); } \
  extern "C" void piecewise_plugin(::pw::Plugin& plugin) { fill(plugin); }
