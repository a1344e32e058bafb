#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <pybind11/stl.h>

#include "base/io/file.hpp"
#include "codegen/cache/cache.hpp"
#include "codegen/cache/digest.hpp"
#include "pipeline/run/artifact.hpp"
#include "python/module.hpp"

namespace py = pybind11;

namespace pw::python {
namespace {

/// Identifies this module's file: another build may produce different contents.
std::string module_identity() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<void*>(&module_identity), &info) == 0 || info.dli_fname == nullptr)
    return {};
  return file_stamp(info.dli_fname);
}

using NamedParts = std::vector<std::pair<std::string, std::string>>;

/// Returns a key of the parts, this build, its library, and all rules of the session.
KeyParts key_of(const Context& context, const NamedParts& parts) {
  static const std::string build = module_identity(), library = library_digest();
  KeyParts key;
  key.add("build", build).add("library", library);
  for (std::uint32_t i = 0; i < context.sources.size(); ++i)
    key.add(context.sources.name(SourceId{i}), context.sources.text(SourceId{i}));
  for (const auto& [name, value] : parts) key.add(name, value);
  return key;
}

py::bytes keep(const ContextPtr& context, const std::string& kind, const std::string& subject,
               const NamedParts& parts, const py::function& make) {
  CompileCache cache(CacheOptions::from_environment());
  std::exception_ptr raised;
  auto kept = cache.get(kind, key_of(*context, parts).of(subject), [&]() -> Result<std::string> {
    try {
      return make().cast<std::string>();
    } catch (...) {
      raised = std::current_exception();
      return fail(error_in(kind, "PW1411", "it was not made"));
    }
  });
  if (raised) std::rethrow_exception(raised);
  return py::bytes(need(context, std::move(kept)));
}

}  // namespace

void add_kept(py::class_<Context, ContextPtr>& session) {
  session.def(
      "keep", &keep, py::arg("kind"), py::arg("subject"), py::arg("parts"), py::arg("make"),
      "Returns the cached bytes for these named parts, this build and the rules loaded so far; if "
      "there are none, calls `make` and caches its result. `pwr cache why` prints the subject.");
  session.def(
      "digest",
      [](const ContextPtr& context, const NamedParts& parts) {
        return key_of(*context, parts).digest();
      },
      py::arg("parts"),
      "Returns the SHA-256 of these named parts, this build and the rules loaded so far.");
}

}  // namespace pw::python
