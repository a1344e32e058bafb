// Backend for the host processor. It compiles groups of row ops as C++ at run time; matrix products
// and all other ops run on `eager`. Without a compiler everything runs on `eager`.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.hpp"
#include "codegen/cache/cache.hpp"

namespace pw {

/// How the nodes of all pieces compiled so far run.
struct CpuReport {
  struct Kernel {
    std::string ops;       ///< "add + rms_norm", for people
    std::size_t uses = 0;  ///< over all pieces
    std::string text;      ///< C++, without the prelude
  };
  struct Fallback {
    std::string op, reason;
    std::size_t nodes = 0;
  };
  std::string compiler;  ///< path of the compiler; empty: not found, and everything runs on eager
  std::vector<Kernel> kernels;      ///< in order of first use
  std::vector<Fallback> fallbacks;  ///< nodes that run on eager, by op and reason
  std::size_t compiled = 0;         ///< runs of the compiler
  CacheCounts cache;                ///< counts of this process
  std::string cache_problem;        ///< why compiled kernels are not cached; empty when they are
  [[nodiscard]] std::size_t nodes_on_eager() const;
};

class CpuBackend final : public Backend {
 public:
  /// Creates the backend. Without a cache in the options, the environment's cache is opened on
  /// first use.
  explicit CpuBackend(const BackendOptions& options = {});
  ~CpuBackend() override;
  [[nodiscard]] std::string name() const override { return "cpu"; }
  [[nodiscard]] Result<std::unique_ptr<Executable>> compile(const Graph& piece) override;
  /// Also packs the weights of products once (see cpu/frozen.hpp).
  [[nodiscard]] std::shared_ptr<const cpu::FrozenSlots> freeze() override;
  [[nodiscard]] CpuReport report() const;
  [[nodiscard]] std::shared_ptr<const CpuReport> compile_report() const override {
    return std::make_shared<CpuReport>(report());
  }
  [[nodiscard]] std::vector<std::string> summary() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pw
