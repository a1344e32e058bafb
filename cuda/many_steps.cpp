#include "cuda/many_steps.hpp"

namespace pw::cuda {

Result<Generation> run_many(Runtime& runtime, const Step& step, Weights& weights,
                            const GenerationLimits& limits, const RunOptions& options) {
  runtime.loop().allow();
  return generate(runtime.source(), step, limits,
                  [&](const Step& next, const GenerationLimits& left) -> Result<ChosenTokens> {
                    if (runtime.loop().cancelled()) return ChosenTokens{};
                    return runtime.run_some(next, weights, left, options);
                  });
}

}  // namespace pw::cuda
