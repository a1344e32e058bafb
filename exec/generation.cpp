#include "exec/generation.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "base/try.hpp"

namespace pw {
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
  void add(const ChosenTokens& chosen) {
    out_.steps += chosen.steps;
    ++out_.launches;
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
  Generation take() { return std::move(out_); }

 private:
  const std::vector<std::int64_t>& ends_;
  std::vector<std::size_t> who_;  ///< by sequence of the next step: of the first one
  Generation out_;
};

tl::unexpected<Diagnostics> refuse(const std::string& why) {
  return fail(error_in("generation", "PW1471", why,
                       "use a graph that chooses tokens, such as one of `pwr generate --lm-head "
                       "greedy`"));
}

}  // namespace

Status check_generates(const Graph& graph) {
  const Context& context = graph.context();
  const auto per_row = [&](ValueId v) {
    if (graph.type(v) == Types::unknown()) return false;
    const Type& type = context.types[graph.type(v)];
    return type.dtype == DType::i64 && type.shape.size() == 1 &&
           !context.dims.value(type.shape[0]).has_value();
  };
  if (graph.returned_count() == 0 || !per_row(graph.outputs()[0]))
    return refuse("the first output of the graph is not a token for each row");
  const std::vector<ValueId>& written = graph.written_inputs();
  if (!std::any_of(written.begin(), written.end(), per_row))
    return refuse("the graph does not write its next inputs");
  return {};
}

Result<Generation> generate(const Graph& graph, const Step& step, const GenerationLimits& limits,
                            const RunSome& run_some) {
  PW_TRY(check_generates(graph));
  Continuation all(step, limits.ends);
  while (all.steps() < limits.steps && !all.next().sequences.empty()) {
    const ChosenTokens chosen =
        PW_TRY(run_some(all.next(), {limits.steps - all.steps(), limits.ends}));
    if (chosen.steps == 0) break;
    all.add(chosen);
  }
  return all.take();
}

ChosenTokens take_chosen(const Graph& graph, const Step& step, Weights& weights,
                         const std::vector<Tensor>& outputs) {
  weights.write_back(graph, outputs, step);
  ChosenTokens out{1, {}};
  std::int64_t row = 0;
  for (const Sequence& s : step.sequences) {
    row += s.new_tokens;
    out.chosen.push_back({reinterpret_cast<const std::int64_t*>(outputs[0].data())[row - 1]});
  }
  return out;
}

Step continuation(const std::vector<PlannedStep>& steps) {
  std::map<std::int64_t, std::int64_t> past;
  for (const PlannedStep& planned : steps) {
    for (const Sequence& s : planned.step.sequences) past[s.id] = s.past + s.new_tokens;
    for (const std::int64_t id : planned.ended) past.erase(id);
  }
  Step out;
  for (const auto& [id, tokens] : past) out.sequences.push_back({id, 1, tokens});
  return out;
}

}  // namespace pw
