#include "pipeline/report/op_list.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/try.hpp"
#include "dsl/graph_formats.hpp"
#include "engines/step_engine.hpp"
#include "graph/foreign.hpp"
#include "graph/text/text.hpp"
#include "pipeline/run/op_runs.hpp"

namespace pw {
namespace {

std::string traits_of(const Op& op) {
  std::vector<std::string> out;
  const auto add = [&](bool holds, std::string_view word) {
    if (holds) out.emplace_back(word);
  };
  add(op.traits.commutative, "commutative");
  add(op.traits.associative, "associative");
  add(op.traits.view, "view");
  add(op.traits.collective, "collective");
  add(op.traits.effect, "effect");
  add(op.traits.rowwise, "rowwise");
  add(op.traits.pointwise, "pointwise");
  add(op.traits.capturable != Capturable::never, name(op.traits.capturable));
  return fmt::format("{}", fmt::join(out, " "));
}

std::map<std::string, std::set<std::string>> foreign_names(const ForeignOps* foreign) {
  std::map<std::string, std::set<std::string>> out;
  for (const GraphFormat& format : graph_formats())
    if (format.foreign_names != nullptr)
      for (const auto& [op, names] : format.foreign_names(foreign))
        out[op].insert(names.begin(), names.end());
  return out;
}

std::vector<OpLine> op_lines(const Context& context) {
  const auto foreign = foreign_names(context.foreign.get());
  std::vector<OpRuns> runs;
  const EngineList engines = builtin_engines();
  for (const StepEngineKind& engine : engines) runs.emplace_back(context, engine.runs);
  std::vector<OpLine> out;
  for (const std::string& name : context.ops.names()) {
    const OpId id = context.ops.find(name);
    const Op& op = context.ops[id];
    // The library has only those dump-only ops at which graphs are split.
    if (op.imported && !op.traits.splitting) continue;
    OpLine line;
    line.name = name;
    line.signature = print_signature(op, context.attributes).substr(3);  // without "op "
    line.traits = traits_of(op);
    line.splits = op.traits.splitting;
    for (std::size_t i = 0; i < engines.size(); ++i)
      if (runs[i].op(id)) line.backends.push_back(engines[i].name);
    line.meaning = op.has_body() ? "body" : !line.backends.empty() ? "native" : "none";
    if (auto it = foreign.find(name); it != foreign.end())
      line.foreign.assign(it->second.begin(), it->second.end());
    out.push_back(std::move(line));
  }
  return out;
}

std::string one_line(std::string_view text) {
  std::string out;
  for (char c : text) {
    const bool space = c == ' ' || c == '\n' || c == '\t';
    if (!space || (!out.empty() && out.back() != ' ')) out += space ? ' ' : c;
  }
  return out;
}

std::string comma_list(const std::vector<std::string>& list) {
  return fmt::format("{}", fmt::join(list, ", "));
}

/// Returns true if a name of PyTorch has no dump form that is more exact: `torch.relu`, `view`.
bool is_loose(std::string_view wanted) {
  return !wanted.starts_with("aten.") && !wanted.starts_with("torch.ops.");
}

/// Finds an op by its own name or a foreign one.
bool is_called(const OpLine& line, const std::string& wanted) {
  const std::string_view target = foreign_target(wanted), plain = torch_name(wanted);
  if (wanted == line.name || (is_loose(wanted) && plain == line.name)) return true;
  return std::any_of(line.foreign.begin(), line.foreign.end(), [&](const std::string& name) {
    return name == target || (is_loose(wanted) && torch_name(name) == plain);
  });
}

/// Returns the targets of foreign items that a name means, if no op has it.
std::vector<std::string> foreign_targets(const Context& context, const std::string& wanted) {
  const std::string plain(torch_name(wanted));
  if (!context.foreign || context.ops.find(wanted).valid() ||
      (is_loose(wanted) && context.ops.find(plain).valid()))
    return {};
  if (context.foreign->find(wanted) != nullptr) return {std::string(foreign_target(wanted))};
  return is_loose(wanted) ? context.foreign->called(plain) : std::vector<std::string>();
}

Status check_names(const Context& context, const std::vector<OpLine>& lines,
                   const OpRequest& request) {
  const EngineList engines = builtin_engines();
  if (!request.backend.empty() && find_engine(engines, request.backend) == nullptr)
    return fail(error_at({}, "PW1425", "there is no backend `" + request.backend + "`",
                         "backends are " + engine_names(engines)));
  for (const std::string& wanted : request.names) {
    if (std::any_of(lines.begin(), lines.end(),
                    [&](const OpLine& line) { return is_called(line, wanted); }) ||
        !foreign_targets(context, wanted).empty())
      continue;
    const std::string near = nearest(torch_name(wanted), context.ops.names());
    return fail(
        error_at({}, "PW1440", "there is no op `" + wanted + "`",
                 near.empty() ? "`pwr ops` lists all ops" : "did you mean `" + near + "`?"));
  }
  return {};
}

bool is_wanted(const OpLine& line, const OpRequest& request) {
  const auto is = [&](const std::string& wanted) { return is_called(line, wanted); };
  if (!request.names.empty() && std::none_of(request.names.begin(), request.names.end(), is))
    return false;
  if (request.splitting && !line.splits) return false;
  return request.backend.empty() || std::find(line.backends.begin(), line.backends.end(),
                                              request.backend) != line.backends.end();
}

}  // namespace

Result<std::vector<OpLine>> list_ops(const Context& context, const OpRequest& request) {
  std::vector<OpLine> lines = op_lines(context);
  PW_TRY(check_names(context, lines, request));
  std::erase_if(lines, [&](const OpLine& line) { return !is_wanted(line, request); });
  return lines;
}

Table op_table(const std::vector<OpLine>& lines, bool whole) {
  Table table(whole ? std::vector<Column>{"op", "signature", "meaning", "traits", "splits",
                                          "backends", "foreign"}
                    : std::vector<Column>{"op", "meaning", "splits", "backends", "foreign"});
  for (const OpLine& line : lines) {
    std::vector<Cell> row{line.name};
    if (whole) row.push_back(line.signature);
    row.push_back(line.meaning);
    if (whole) row.push_back(line.traits);
    row.insert(row.end(),
               {yes_cell(line.splits), list_cell(line.backends), list_cell(line.foreign)});
    table.add(std::move(row));
  }
  return table;
}

std::string op_text(const Context& context, const OpLine& line) {
  std::string out = "op " + line.signature + "\n";
  out += "  meaning:  " + line.meaning + "\n";
  if (!line.traits.empty()) out += "  traits:   " + line.traits + "\n";
  if (line.splits) out += "  splits:   a graph is cut here\n";
  out +=
      "  runs on:  " + (line.backends.empty() ? "nothing yet" : comma_list(line.backends)) + "\n";
  for (const std::string& target : line.foreign) {
    const auto* items = context.foreign ? context.foreign->find(target) : nullptr;
    if (!items) out += "  " + target + "\n";
    for (std::size_t i = 0; items && i < items->size(); ++i)
      if ((*items)[i]->op == line.name) out += "  " + one_line((*items)[i]->text) + "\n";
  }
  return out;
}

std::string foreign_text(const Context& context, const std::string& name) {
  std::string out;
  for (const std::string& target : foreign_targets(context, name)) {
    out += "`" + target + "` is not an op here. Dumps that call it are read as\n";
    for (const auto& item : *context.foreign->find(target)) out += item->text + "\n";
  }
  return out;
}

std::string op_page(const Context& context, const std::vector<OpLine>& lines) {
  std::string out =
      "# Ops\n\n"
      "This page lists every op of the library. `pwr ops --format md` generates it; `-r my.pwr` "
      "adds your own ops. A *body* defines an op by simpler ones (`pwr ops NAME` and `rules/ops/` "
      "show it). A *native* op is defined by the kernels of the backends. [Foreign "
      "ops](#foreign-ops) maps targets of PyTorch and vLLM to ops.\n\n"
      "| op | meaning | traits | runs on | named elsewhere |\n|---|---|---|---|---|\n";
  const std::size_t all = builtin_engines().size();
  for (const OpLine& line : lines)
    out +=
        fmt::format("| `{}` | {} | {}{}{} | {} | {} |\n", line.signature, line.meaning,
                    line.splits ? "**splits**" : "", line.splits && !line.traits.empty() ? " " : "",
                    line.traits, line.backends.size() == all ? "all" : comma_list(line.backends),
                    comma_list(line.foreign));
  out +=
      "\n## Foreign ops\n\n"
      "These are the lines of `rules/import/`. Write your own in the same form "
      "([language.md](language.md#foreign-ops)). The first line whose arguments, types, and guard "
      "match applies.\n\n```\n";
  if (context.foreign)
    for (const auto& [target, items] : context.foreign->by_target)
      for (const auto& item : items) out += one_line(item->text) + "\n";
  out +=
      "```\n\nThe following targets need more than an expression and are implemented in C++:\n\n";
  std::set<std::string> converted;
  for (const auto& [op, targets] : foreign_names(nullptr))
    converted.insert(targets.begin(), targets.end());
  std::string code;
  for (const std::string& target : converted) code += (code.empty() ? "`" : ", `") + target + "`";
  return out + code + "\n";
}

}  // namespace pw
