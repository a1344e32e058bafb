// A backend whose compiled pieces are bytes, so that the compile cache and artifacts hold them.
// Backends of plugins derive from it; cpu and cuda store their kernels themselves.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.hpp"

namespace pw {

class PortableBackend : public Backend {
 public:
  /// Returns a text that identifies all that a saved piece depends on besides its graph and this
  /// program's version: the compiler, its options, the device.
  [[nodiscard]] virtual std::string hash() const = 0;
  /// Compiles a piece to bytes that load() accepts in any process.
  [[nodiscard]] virtual Result<std::string> save(const Graph& piece) = 0;
  /// Returns the executable of saved bytes, without compiling. Fails if they are damaged or were
  /// saved elsewhere; from the cache they are then compiled again.
  [[nodiscard]] virtual Result<std::unique_ptr<Executable>> load(const Graph& piece,
                                                                 const std::string& saved) = 0;

  /// Loads the piece from the artifact or the cache; otherwise saves and loads it. Fails with
  /// PW1226 if it is not in the artifact that runs.
  [[nodiscard]] Result<std::unique_ptr<Executable>> compile(const Graph& piece) final;
  [[nodiscard]] std::vector<std::string> summary() const override;

 protected:
  explicit PortableBackend(const BackendOptions& options);

 private:
  std::shared_ptr<CompileCache> cache_;
  std::atomic<std::uint64_t> saved_{0}, loaded_{0};
};

}  // namespace pw
