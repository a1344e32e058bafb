#include "pipeline/extract.hpp"

#include <chrono>

#include <fmt/format.h>

#include "base/io/file.hpp"
#include "base/try.hpp"
#include "pipeline/gap.hpp"
#include "pipeline/variants.hpp"
#include "rewriter/extract/cbc.hpp"

namespace pw {
namespace {

constexpr std::size_t kMostEGraphBytes = std::size_t{1} << 30;

}  // namespace

Result<Extracted> extract_file(const std::string& path, const ExtractRequest& request) {
  const std::string text = PW_TRY(read_file(path, kMostEGraphBytes));
  return extract_problem(path, PW_TRY(extract::read_egraph(text, path)), request);
}

Result<Extracted> extract_problem(const std::string& name, extract::NamedProblem egraph,
                                  const ExtractRequest& request) {
  const bool cbc = request.solver == "cbc";
  if (cbc && !extract::has_cbc())
    return fail(error_in(
        "solver", "PW1452", "CBC is missing, or pwr was built without its header",
        "leave out --solver, or install coinor-libcbc3 to run, coinor-libcbc-dev to build"));
  const auto start = std::chrono::steady_clock::now();
  extract::Limits limits;
  limits.steps = request.steps;
  auto answer = cbc ? extract::solve_with_cbc(egraph.problem, request.seconds)
                    : extract::solve(egraph.problem, {}, limits);
  if (!answer)
    return fail(error_in(name + " at /root_eclasses", "PW1435",
                         "a root can only be computed from itself",
                         "each class needs a node whose children can be computed without it"));
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  return Extracted{name, std::move(egraph), std::move(*answer), spent.count()};
}

Result<extract::NamedProblem> saturated_egraph(const Graph& graph, const LoadedRules& rules,
                                               const std::string& pipeline, const Log& log) {
  Graph copy = graph;
  std::optional<extract::NamedProblem> out;
  RewriteOptions options;
  options.after_saturation = [&](const extract::NamedProblem& found) { out = found; };
  PW_TRY(rewrite(copy, rules, pipeline, options, log));
  if (!out)
    return fail(error_in("pipeline", "PW1436", "`" + pipeline + "` does not run `saturate`",
                         "name a pass that has it: `pass s = saturate { … }`"));
  return std::move(*out);
}

Answer extract_answer(const std::vector<Extracted>& found) {
  Table table({"file", "classes", "nodes", "cost", "bound", "gap", "exact", "parts",
               Column("like parts"), Column("time", "time_s")});
  for (const Extracted& one : found) {
    const auto number = [](double value) {
      return real_cell(value, fmt::format("{:.10g}", value));
    };
    table.add({one.name, one.egraph.problem.classes.size(), one.egraph.problem.nodes.size(),
               number(one.answer.cost), number(one.answer.bound),
               gap_cell(one.answer.cost, one.answer.bound), yes_cell(one.answer.exact, "no"),
               one.answer.parts, one.answer.like_parts, seconds_cell(one.seconds)});
  }
  Answer answer;
  answer.add("extractions", std::move(table));
  return answer;
}

}  // namespace pw
