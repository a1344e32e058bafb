#include "backends/eager/eager.hpp"

#include "backends/eager/curves.hpp"
#include "backends/eager/kernels.hpp"
#include "backends/interpreter/kernels.hpp"
#include "backends/program.hpp"
#include "tensor/instruction_set.hpp"
#include "tensor/parallel.hpp"

namespace pw {
namespace eager {

void over_rows(const Array& result, const std::function<void(std::int64_t, std::int64_t)>& work) {
  constexpr std::int64_t kWorthAThread = 1 << 17;
  const std::int64_t rows = result.extents.empty() ? 1 : result.extents[0];
  const std::int64_t width = rows == 0 ? 1 : result.count() / rows;
  parallel_for(rows, 1 + kWorthAThread / (width + 1), work);
}

const Curves& curves() {
  static const Curves best = for_this_machine<Curves()>(PW_VARIANTS(curves))();
  return best;
}

KernelTable kernels() {
  static const std::vector<KernelEntry> table = [] {
    std::vector<KernelEntry> all;
    for (KernelTable part :
         {pointwise(), reductions(), gathers(), indexing(), scans(), products(), attention(),
          scaled_attention(), convolutions(), windows(), interpreter_latent<float>()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return table;
}

}  // namespace eager

namespace {

class Eager final : public Backend {
 public:
  [[nodiscard]] std::string name() const override { return "eager"; }
  [[nodiscard]] Result<std::unique_ptr<Executable>> compile(const Graph& piece) override {
    return compile_program(piece,
                           {name(), eager::kernels(), [](DType declared) { return declared; }});
  }
};

}  // namespace

bool has_kernel(const Op& op) { return runs_op(eager::kernels(), op); }

std::unique_ptr<Backend> make_eager() { return std::make_unique<Eager>(); }

BackendKind eager_backend() {
  return {.name = "eager",
          .what = "runs op by op with Eigen and loops",
          .can = {.ranks = true},
          .make = [](const BackendOptions&) { return make_eager(); },
          .runs = has_kernel,
          .own_whole = true};
}

}  // namespace pw
