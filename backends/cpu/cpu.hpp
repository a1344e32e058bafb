// The backend for the machine's processor: groups of row ops as C++ compiled at run time, matrix
// products and everything else by `eager`. Without a compiler all of it runs on `eager`.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.hpp"
#include "codegen/cache/cache.hpp"

namespace pw {

/// What became of the nodes of all pieces compiled so far.
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
  std::string compiler;         ///< its path; empty: there is none, and everything runs on eager
  std::vector<Kernel> kernels;  ///< in the order they were met
  std::vector<Fallback> fallbacks;  ///< what eager runs: by op, then reason
  std::size_t compiled = 0;         ///< runs of the compiler
  CacheCounts cache;                ///< of this process
  std::string cache_problem;        ///< why kernels are not kept; empty when they are
  [[nodiscard]] std::size_t nodes_on_eager() const;
};

namespace cpu {
class FrozenSlots;
}

class CpuBackend final : public Backend {
 public:
  /// Without a cache, the one of the environment is opened when it is first needed.
  explicit CpuBackend(const BackendOptions& options = {});
  ~CpuBackend() override;
  [[nodiscard]] std::string name() const override { return "cpu"; }
  [[nodiscard]] Result<std::unique_ptr<Executable>> compile(const Graph& piece) override;
  /// From now on what is computed of weights alone is kept from run to run, and weights of products
  /// are packed once, by runs whose context has them frozen (see cpu/frozen.hpp), on one rank. Of
  /// one graph: the slots are those of the executable that is compiled next.
  [[nodiscard]] std::shared_ptr<const cpu::FrozenSlots> freeze();
  [[nodiscard]] CpuReport report() const;
  [[nodiscard]] std::vector<std::string> summary() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pw
