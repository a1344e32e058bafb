#include "backends/portable_backend.hpp"

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/try.hpp"
#include "base/version.hpp"
#include "codegen/cache/cache.hpp"
#include "codegen/cache/digest.hpp"
#include "graph/text/graph_json.hpp"

namespace pw {

PortableBackend::PortableBackend(const BackendOptions& options)
    : cache_(options.cache ? options.cache
                           : std::make_shared<CompileCache>(CacheOptions::from_environment())) {}

Result<std::unique_ptr<Executable>> PortableBackend::compile(const Graph& piece) {
  KeyParts key;
  key.add("version", version()).add("backend", name()).add("hash", hash());
  key.add("graph", graph_to_json(piece));
  bool made = false;
  std::unique_ptr<Executable> out;
  const auto make = [&]() -> Result<std::string> {
    made = true;
    return save(piece);
  };
  const auto usable = [&](const std::string& saved) {
    auto loaded = load(piece, saved);
    if (!loaded) return false;
    out = std::move(*loaded);
    return true;
  };
  const std::string bytes = PW_TRY(cache_->get("backend", key.of(name()), make, usable));
  ++(made ? saved_ : loaded_);
  if (out) return out;
  return load(piece, bytes);
}

std::vector<std::string> PortableBackend::summary() const {
  return {
      fmt::format("{}: {}, {} loaded", name(), counted(saved_ + loaded_, "piece"), loaded_.load())};
}

}  // namespace pw
