#include "engines/plugin.hpp"

#include <filesystem>

#include <dlfcn.h>
#include <fmt/format.h>

namespace pw {
namespace {

tl::unexpected<Diagnostics> refused(const std::string& path, std::string message,
                                    std::string help) {
  return fail(error_in("plugin " + path, "PW1217", std::move(message), std::move(help)));
}

}  // namespace

void Plugin::bind(Context& context) const {
  for (const Extern& item : externs) bind_native(context, item.name, item.kinds, item.function);
  if (host_functions.by_op.empty()) return;
  if (!context.host_functions) context.host_functions = std::make_shared<HostFunctions>();
  for (const auto& [op, function] : host_functions.by_op)
    context.host_functions->by_op.emplace(op, function);
}

Result<Plugin> load_plugin(const std::string& path) {
  // Absolute, because a bare name would be searched on the system's paths.
  std::error_code ignored;
  const std::string file = std::filesystem::absolute(path, ignored).string();
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = ::dlerror();
    return refused(path, fmt::format("it cannot be loaded: {}", why == nullptr ? "?" : why),
                   "name a shared library built with find_package(Piecewise)");
  }
  using Version = const char* (*)();
  using Fill = void (*)(Plugin&);
  const auto stated = reinterpret_cast<Version>(::dlsym(library, "piecewise_plugin_version"));
  const auto fill = reinterpret_cast<Fill>(::dlsym(library, "piecewise_plugin"));
  if (stated == nullptr || fill == nullptr)
    return refused(path, "it is not a plugin: it lacks `piecewise_plugin`",
                   "write PW_PLUGIN(fill) in one of its sources");
  if (const std::string other = stated(); other != version())
    return refused(path, fmt::format("it was built with version {}, this is {}", other, version()),
                   "rebuild it");
  Plugin plugin;
  plugin.path = path;
  fill(plugin);
  return plugin;
}

}  // namespace pw
