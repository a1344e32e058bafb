// Plugins: engines, externs and host functions that a user's shared library adds to a program. The
// library is built against the installed package of the same version, and exports its function by
// PW_PLUGIN. It runs with all rights of the program, so only the program's user can name one.
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
    std::vector<AttributeKind> kinds;  ///< kinds of the arguments
    Native function;
  };
  std::string path;
  std::vector<StepEngineKind> engines;
  std::vector<Extern> externs;
  HostFunctions host_functions;

  /// Binds the externs in a context before it loads rules; existing bindings stay.
  void bind(Context& context) const;
};

/// Loads the library for the lifetime of the process. Fails with PW1217 if it cannot be loaded, is
/// not a plugin, or was built with another version.
Result<Plugin> load_plugin(const std::string& path);

}  // namespace pw

/// Defines the plugin's entry, once per library. `PW_PLUGIN(fill)` with `void fill(pw::Plugin&)`,
/// which registers what the library adds.
#define PW_PLUGIN(fill)                                                         \
  extern "C" const char* piecewise_plugin_version() { return ::pw::version(); } \
  extern "C" void piecewise_plugin(::pw::Plugin& plugin) { fill(plugin); }
