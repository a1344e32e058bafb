#include "pipeline/run/generation.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/try.hpp"

namespace pw {
namespace {

constexpr std::int64_t kMostTokens = 1 << 24;  // of a sequence
constexpr std::int64_t kMostInLaunch = 4096;
constexpr std::size_t kMostEnds = 64;  // see StepLoop

tl::unexpected<Diagnostics> refuse(const std::string& why, const std::string& help) {
  return fail(error_in("generation", "PW1471", why, help));
}

/// A launch of several steps reads the inputs of its first one in all of them, except those that
/// the graph writes.
Status check_constant_inputs(const ExecutionRequest& request, const Graph& graph) {
  const Context& context = graph.context();
  const Weights weights(graph, request.engine.seed);
  for (ValueId input : graph.inputs()) {
    if (graph.type(input) == Types::unknown()) continue;
    const Shape& shape = context.types[graph.type(input)].shape;
    const bool fixed = std::all_of(shape.begin(), shape.end(),
                                   [&](DimId dim) { return context.dims.value(dim).has_value(); });
    const auto& written = graph.written_inputs();
    if (fixed || std::find(written.begin(), written.end(), input) != written.end()) continue;
    const std::string name(graph.value_name(input));
    if (weights.role(name) != InputRole::seed)
      return refuse(fmt::format("input {} differs from step to step, and no step writes it", name),
                    "omit --steps-in-launch");
  }
  return {};
}

}  // namespace

Status check_generation(const ExecutionRequest& request, const Graph& graph,
                        const std::vector<PlannedStep>& steps) {
  PW_TRY(check_number("the number of generated steps", request.generate, 0, kMostTokens));
  PW_TRY(check_number("steps in a launch", request.engine.steps_in_launch, 0, kMostInLaunch));
  if (request.generate == 0) {
    if (request.engine.steps_in_launch > 0 || !request.ends.empty())
      return refuse("no steps are generated", "add --steps and --generate-steps");
    return {};
  }
  PW_TRY(check_generates(graph));
  if (request.steps.empty())
    return refuse("there are no sequences to continue",
                  "begin them with --steps: a file with the line `0:1` begins sequence 0");
  PW_TRY(check_numbers("an end token", request.ends, 0, std::int64_t{1} << 32, false));
  if (request.ends.size() > kMostEnds)
    return refuse(fmt::format("there are {} end tokens", request.ends.size()),
                  fmt::format("give at most {}", kMostEnds));
  const Step first = continuation(steps);
  if (first.sequences.empty())
    return refuse("all sequences of the steps have ended", "remove `ID.` from the file of --steps");
  for (const auto& s : first.sequences)
    if (s.past > kMostTokens - request.generate)
      return refuse(fmt::format("sequence {} would have more than {} tokens", s.id, kMostTokens),
                    "generate fewer steps");
  return request.engine.steps_in_launch > 0 ? check_constant_inputs(request, graph) : Status();
}

std::vector<PlannedStep> with_generated(const ExecutionRequest& request,
                                        std::vector<PlannedStep> steps) {
  if (request.generate == 0) return steps;
  PlannedStep first;
  first.step = continuation(steps);
  first.number = steps.size();
  steps.push_back(std::move(first));
  return steps;
}

Table generated_table(const GeneratedTokens& generated) {
  Table table({"sequence", "generated tokens"});
  for (std::size_t i = 0; i < generated.sequences.size(); ++i)
    table.add({generated.sequences[i], list_cell(generated.tokens[i], " ")});
  return table;
}

std::string generation_summary(const GeneratedTokens& generated) {
  return fmt::format("generated tokens of {} in {} and {}",
                     counted(generated.sequences.size(), "sequence"),
                     counted(static_cast<std::size_t>(generated.steps), "step"),
                     counted(static_cast<std::size_t>(generated.launches), "launch"));
}

}  // namespace pw
