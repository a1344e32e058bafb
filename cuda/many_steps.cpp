#include "cuda/many_steps.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/try.hpp"

namespace pw::cuda {
namespace {

class Continuation {
 public:
  Continuation(const Step& step, const std::vector<std::int64_t>& ends)
      : ends_(ends), who_(step.sequences.size()) {
    std::iota(who_.begin(), who_.end(), std::size_t{0});
    out_.tokens.resize(step.sequences.size());
    out_.next = step;
  }

  [[nodiscard]] const Step& next() const { return out_.next; }
  [[nodiscard]] std::int64_t steps() const { return out_.steps; }

  /// Adds what the next step, or several, have chosen.
  void add(const LoopTokens& chosen) {
    out_.steps += chosen.steps;
    std::vector<Sequence> sequences;
    std::vector<std::size_t> who;
    for (std::size_t i = 0; i < who_.size(); ++i) {
      const std::vector<std::int64_t>& fresh = chosen.chosen[i];
      std::vector<std::int64_t>& all = out_.tokens[who_[i]];
      all.insert(all.end(), fresh.begin(), fresh.end());
      if (std::count(ends_.begin(), ends_.end(), all.back()) != 0) continue;
      const Sequence& s = out_.next.sequences[i];
      const auto more = static_cast<std::int64_t>(fresh.size()) - 1;
      sequences.push_back({s.id, 1, s.past + s.new_tokens + more});
      who.push_back(who_[i]);
    }
    out_.next.sequences = std::move(sequences);
    who_ = std::move(who);
  }
  ManySteps take() { return std::move(out_); }

 private:
  const std::vector<std::int64_t>& ends_;
  std::vector<std::size_t> who_;  ///< by sequence of the next step: of the first one
  ManySteps out_;
};

}  // namespace

Result<ManySteps> run_many(Runtime& runtime, const Step& step, Weights& weights,
                           const LoopLimits& limits, const RunOptions& options) {
  const Graph& graph = runtime.source();
  if (graph.outputs().empty() ||
      graph.context().types[graph.type(graph.outputs()[0])].dtype != DType::i64)
    return fail(error_in("steps", "PW1254", "the graph's first output is not the next token",
                         "use a graph that chooses it, such as one of `pwr generate --lm-head`"));
  Continuation all(step, limits.ends);
  runtime.loop().allow();
  while (all.steps() < limits.steps && !all.next().sequences.empty() &&
         !runtime.loop().cancelled()) {
    const LoopLimits left{limits.steps - all.steps(), limits.ends};
    all.add(PW_TRY(runtime.run_some(all.next(), weights, left, options)));
  }
  return all.take();
}

}  // namespace pw::cuda
