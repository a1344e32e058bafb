#include <fmt/format.h>

#include "base/counted.hpp"
#include "cli/commands.hpp"
#include "cli/settings.hpp"
#include "pipeline/report/op_list.hpp"

namespace pw::cli {
namespace {

struct OpsArgs {
  RuleOptions rules;
  OpRequest wanted;
  std::string format;
};

/// Describes the ops that the names mean; a foreign name without an op, by its translation.
std::string answers(const Context& context, const OpRequest& wanted,
                    const std::vector<OpLine>& lines) {
  std::string out;
  bool op = false;
  for (const std::string& name : wanted.names) {
    const std::string text = foreign_text(context, name);
    out += text;
    op = op || text.empty();
  }
  for (const OpLine& line : lines)
    if (op) out += op_text(context, line);
  return out;
}

void run_ops(const Options& options, const OpsArgs& args) {
  Session session(options);
  load(session, args.rules, true);
  const Context& context = *session.context;
  const std::vector<OpLine> lines = session.need(list_ops(context, args.wanted));
  const std::string format = !args.format.empty() ? args.format : options.format;
  if (format == "md") {
    print_out(op_page(context, lines));
  } else if (format == "json" || format == "csv") {
    print_out(op_table(lines, true).print(format));
  } else if (!args.wanted.names.empty()) {
    print_out(answers(context, args.wanted, lines));
  } else {
    print_out(op_table(lines, false).print("table"));
    session.say(counted(lines.size(), "op"));
  }
}

}  // namespace

void add_ops_command(CLI::App& app, const Options& options) {
  auto args = std::make_shared<OpsArgs>();
  auto* sub = app.add_subcommand(
      "ops",
      "List ops: signature, meaning, names in PyTorch and vLLM, and which backends run them");
  sub->add_option("names", args->wanted.names, "ops, by native or foreign name; default: all");
  args->rules.add_to(*sub, false);
  sub->add_option("--format", args->format,
                  "output format: text, json, csv, or md for the page docs/ops.md")
      ->check(CLI::IsMember({"text", "json", "csv", "md"}))
      ->configurable();
  add_setting(*sub, "--backend", args->wanted.backend, "NAME",
              "only list ops that this backend runs");
  add_switch(*sub, "--splitting", args->wanted.splitting,
             "only list ops at which a graph is split");
  sub->footer(
      "Examples:\n"
      "  pwr ops                              all of the library\n"
      "  pwr ops rms_norm aten.relu.default   one op, by its name or a foreign one\n"
      "  pwr ops --backend cuda --format json\n"
      "  pwr ops --splitting                  where graphs are split\n"
      "  pwr ops -r my.pwr my_op              with your own declarations");
  sub->callback([args, &options] { run_ops(options, *args); });
}

}  // namespace pw::cli
