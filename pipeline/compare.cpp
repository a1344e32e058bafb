#include "pipeline/compare.hpp"

#include <algorithm>

#include "base/io/file_kind.hpp"
#include "base/try.hpp"
#include "splitter/plan_text.hpp"

namespace pw {
namespace {

Result<PlanDocument> read_plan(const std::string& path) {
  return plan_from_json(PW_TRY(read_text_file(path, "a plan.json", "piecewise.plan/1")), path);
}

}  // namespace

GraphDiff compare_graphs(const Graph& before, const Graph& after, bool fold) {
  return diff_graphs(before, after, match_graphs(before, after), fold);
}

Table change_table(const GraphDiff& diff, std::size_t most) {
  Table table({"change", "times", "op", "first", "what", "where"});
  const std::size_t count = most == 0 ? diff.changes.size() : std::min(most, diff.changes.size());
  for (std::size_t i = 0; i < count; ++i) {
    const GraphChange& c = diff.changes[i];
    table.add({std::string(name(c.kind)), c.count, c.thing, c.first, c.what, c.where});
  }
  return table;
}

Answer diff_answer(const GraphDiff& diff, std::size_t most) {
  Answer out;
  out.add("rows", change_table(diff, most));
  out.add("matched", Cell(diff.matched));
  out.add("changed", Cell(diff.changed));
  out.add("removed", Cell(diff.removed));
  out.add("added", Cell(diff.added));
  return out;
}

Result<std::vector<std::string>> compare_plans(const std::string& before,
                                               const std::string& after) {
  const PlanDocument a = PW_TRY(read_plan(before));
  const PlanDocument b = PW_TRY(read_plan(after));
  return differences(a, b);
}

}  // namespace pw
