// Exports IncrementalRun.
#include "rewriter/incremental.hpp"

#include "rewriter/driver.hpp"
#include "rewriter/run_memory.hpp"

namespace pw {

IncrementalRun::IncrementalRun(RewriteOptions options)
    : options_(std::move(options)), memory_(std::make_unique<RunMemory>()) {}
IncrementalRun::~IncrementalRun() = default;

std::size_t IncrementalRun::asked() const { return memory_->asked; }
std::size_t IncrementalRun::recalled() const { return memory_->recalled; }

Result<IncrementalRun::Rewritten> IncrementalRun::run(std::shared_ptr<const Graph> input,
                                                      std::shared_ptr<const RuleSet> rules,
                                                      std::string_view pipeline,
                                                      const Env& params) {
  Result<const Strategy*> strategy = find_strategy(*rules, pipeline);
  if (!strategy) return forward(strategy);
  if (pipeline_ != pipeline) memory_->forget();
  if (rules_ != rules) memory_->new_rules();
  pipeline_ = pipeline;
  rules_ = rules;
  const auto once = [&]() -> Result<Rewritten> {
    memory_->begin(input);
    Graph graph = *input;
    auto report = run_remembering(graph, *rules, **strategy, params, options_, *memory_);
    if (!report) return forward(report);
    return Rewritten{std::move(graph), std::move(*report)};
  };
  Result<Rewritten> done = once();
  if (done && !memory_->doubtful) return done;
  memory_->forget();  // a warning names the node that a run from scratch comes to first
  if (done) done = once();
  return done;
}

}  // namespace pw
