// The program pwviz: pictures of graphs, of their changes by a pipeline, and of their pieces.
#include <fmt/ranges.h>
#include <unistd.h>

#include "base/io/file.hpp"
#include "base/io/standard_output.hpp"
#include "base/version.hpp"
#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "cli/config_file.hpp"
#include "cli/guard.hpp"
#include "cli/help/documentation.hpp"
#include "cli/planning.hpp"
#include "cli/settings.hpp"
#include "pipeline/report/pictures.hpp"

namespace pw::cli {
namespace {

struct VizArgs {
  GraphOptions graph;
  RuleOptions rules;
  PlanArgs plan;
  PictureRequest picture;  ///< the request's other fields
  std::string collapse = "auto", view = "auto";
};

void run_pwviz(const Options& options, const VizArgs& args) {
  Session session(options);
  PictureRequest request = args.picture;
  request.graph = args.graph;
  request.rules = args.rules;
  if (request.split) request.plan = args.plan.request(session);
  request.viz.collapse = *collapse_named(args.collapse);
  request.viz.view = *view_named(args.view);
  const bool to_stream = request.output.empty() || names_standard_output(request.output);
  if (to_stream && (request.format == "png" || request.format == "pdf") &&
      ::isatty(STDOUT_FILENO) != 0)
    session.die("a ." + request.format + " picture cannot be written to a terminal",
                "name a file with -o", kUsage);
  // The outline goes to standard output, messages to standard error: both matter.
  request.viz.color = session.color() && request.output.empty() &&
                      (options.color == "always" || ::isatty(STDOUT_FILENO) != 0);
  const std::string picture = session.need(draw_picture(session.context, request, session.log()));
  if (request.output.empty() && request.format.empty())
    print_rendered(picture);
  else
    session.need(write_file(request.output.empty() ? "-" : request.output, picture));
}

/// Adds the options for the graphs to draw and the rules.
void add_input_options(CLI::App& app, VizArgs& args) {
  app.add_option(
         "files", args.picture.files,
         std::string(kGraphFiles) +
             "; several to compare them; or a folder written by pwr opt --trace, or its journal")
      ->required();
  app.add_option("-o,--output", args.picture.output,
                 "output file, in the format of its extension: .svg .png .pdf .dot .html .txt .md, "
                 "or .me.json and .sync.json for Model Explorer; default: a text outline");
  app.add_option("--format", args.picture.format,
                 "format of the picture, regardless of the extension; for -o -, or without -o")
      ->check(
          CLI::IsMember({"svg", "png", "pdf", "dot", "html", "txt", "md", "me.json", "sync.json"}))
      ->type_name("FORM")
      ->configurable();
  add_setting(app, "--symbol", args.graph.symbols, "NAME=DIMS",
              "make input dims of a dump symbolic: n=arg0_1.0");
  add_type_option(app, args.graph.types);
  args.rules.add_to(app);
}

/// Adds the options for what a picture shows, and how.
void add_view_options(CLI::App& app, VizArgs& args) {
  add_setting(app, "--pass", args.picture.pass, "PASS",
              "show the graph after this pass (its name or number; input is the first)");
  add_setting(app, "--view", args.view, CLI::IsMember(view_names()),
              fmt::format("initial view of a page: {}; overview, all and changes (cropped to "
                          "what changed) also apply to other formats",
                          fmt::join(view_names(), ", ")));
  add_setting(
      app, "--overlay", args.picture.overlay, "FILE",
      "color nodes by numbers: a JSON object that maps names of nodes or values to numbers");
  add_setting(app, "--collapse", args.collapse, CLI::IsMember({"auto", "none", "pieces", "layers"}),
              "what to collapse into one box: auto, none, pieces, layers");
  add_setting(app, "--most-boxes", args.picture.viz.most_boxes, CLI::Range(1, 100000),
              "fold whole pieces or layers above this number of boxes");
  add_switch(app, "--times", args.picture.times,
             "include the times of passes in the page, which is otherwise reproducible");
  add_switch(app, "!--no-split", args.picture.split,
             "do not split the graph at attention-like ops");
}

int run(int argc, char** argv) {
  CLI::App app(
      "Draw graphs: before and after each pass, split into pieces, folded where they repeat.",
      "pwviz");
  refuse_found_values(app);
  Options options;
  VizArgs args;
  add_input_options(app, args);
  add_view_options(app, args);
  args.picture.split = true;
  args.plan.add_to(app);
  add_common_options(app, options);
  app.set_version_flag("--version", std::string("pwviz ") + version());
  add_config_options(app, options, false);
  add_documentation_options(app);
  app.footer(
      "Examples:\n"
      "  pwviz model.json                            an outline in the terminal\n"
      "  pwviz model.json -o model.svg               the pieces as clusters\n"
      "  pwviz model.json -r llm -p o2 -o o2.html    each pass of o2, one page\n"
      "  pwviz model.json -r llm -p o2 --pass norm_quant -o norm_quant.png\n"
      "  pwviz trace/ -r llm -o trace.html           a run recorded by pwr opt --trace\n"
      "  pwviz model.json --overlay times.json -o times.html\n"
      "  pwviz before.json after.json -o diff.svg\n"
      "  pwviz model.json --format svg -o - | rsvg-convert > model.png");
  return run_command_line(app, options, argc, argv, [&] { run_pwviz(options, args); });
}

}  // namespace
}  // namespace pw::cli

int main(int argc, char** argv) {
  return pw::cli::guarded(argc, argv, [&] { return pw::cli::run(argc, argv); });
}
