#include "pipeline/trust.hpp"

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include "cli/commands.hpp"
#include "cli/config_file.hpp"
#include "cli/config_value.hpp"

namespace pw::cli {
namespace {

struct TrustArgs {
  std::string folder;
  bool list = false, remove = false;
};

std::string config_in(const std::string& folder) {
  return folder + (folder.ends_with('/') ? "" : "/") + kConfigName;
}

void run_add(const Session& session, const CLI::App& program, const std::string& folder) {
  const std::string path = config_in(folder);
  const auto text = read_config(path);
  if (!text)
    session.die({error_in(folder, "PW1505", "this folder has no piecewise.toml to trust",
                          "name the folder that contains it: `pwr trust .`")},
                kUsage);
  const auto options =
      session.need(values_that_need_trust(program, session.context->sources, *text, path), kUsage);
  const TrustedFolder entry = session.need(add_trust(folder, *text));
  print_out(trust_table({entry}).print(session.options.format));
  session.say(options.empty()
                  ? "it sets no option that needs trust"
                  : fmt::format("until it changes, it sets {}", fmt::join(options, ", ")));
}

void run_remove(const Session& session, const std::string& folder) {
  const auto removed = session.need(remove_trust(folder));
  print_out(trust_table(removed).print(session.options.format));
  if (!removed.empty()) return;
  session.say("the folder is not trusted: " + folder);
  throw Exit{kNegative};
}

void run_trust(const CLI::App& program, const Options& options, const TrustArgs& args) {
  const Session session(options);
  if (args.list) return print_out(trust_table(trusted_folders()).print(options.format));
  if (args.folder.empty()) throw CLI::RequiredError("folder");
  if (args.remove) return run_remove(session, args.folder);
  run_add(session, program, args.folder);
}

}  // namespace

void add_trust_command(CLI::App& app, const Options& options) {
  auto args = std::make_shared<TrustArgs>();
  auto* sub = app.add_subcommand("trust",
                                 "Allow a folder's piecewise.toml to set every option, including "
                                 "plugins, commands and outputs");
  CLI::Option* folder =
      sub->add_option("folder", args->folder, "the folder that contains the piecewise.toml")
          ->type_name("DIR");
  CLI::Option* remove = sub->add_flag("--remove", args->remove, "stop trusting the folder");
  sub->add_flag("--list", args->list, "list the trusted folders and whether their files changed")
      ->excludes(folder)
      ->excludes(remove);
  sub->footer(
      "A piecewise.toml that was discovered, not named with --config, must not set options that "
      "load code, start programs or write files, unless its folder is trusted. Read the file "
      "first: it can run anything with your permissions. Trust applies to the current contents of "
      "the file and ends when the file changes; files that it names may change.\n"
      "The list is stored under $XDG_STATE_HOME, or ~/.local/state.\n"
      "Examples:\n"
      "  pwr trust .\n"
      "  pwr trust --list\n"
      "  pwr trust --remove path/to/project");
  sub->callback([args, &app, &options] { run_trust(app, options, *args); });
}

}  // namespace pw::cli
