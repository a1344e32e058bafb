#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>

#include "base/environment.hpp"
#include "base/io/file.hpp"
#include "base/io/file_kind.hpp"
#include "base/io/standard_output.hpp"
#include "base/printable.hpp"
#include "base/try.hpp"
#include "cli/commands.hpp"
#include "cli/settings.hpp"
#include "dsl/used_file.hpp"
#include "graph/text/graph_json.hpp"
#include "serve/answering.hpp"
#include "serve/gate.hpp"
#include "serve/share.hpp"
#include "serve/site.hpp"

namespace pw::cli {
namespace {

struct ServeArgs {
  std::string file, rules, pipeline;
  std::vector<std::string> symbols;
  int port = 0;
  std::int64_t seconds = 10;
  bool no_open = false, answer = false;
};

/// Returns a file's name as it appears in the page and in share files.
std::string file_name(const std::string& path) {
  const std::string name = printable(std::filesystem::path(path).filename().string());
  return is_file_name(name) ? name : "graph";
}

tl::unexpected<Diagnostics> too_large(const std::string& path, std::size_t bytes,
                                      std::size_t most) {
  return fail(
      error_in(path, "PW1603",
               fmt::format("the file has {} bytes, but the page accepts at most {}", bytes, most)));
}

/// Returns a text graph unchanged, and an archive or a model as graph.json.
Result<SharedGraph> shared_graph(const std::string& path, std::string content) {
  SharedGraph out{file_name(path), {}, std::move(content)};
  if (!is_text(out.text)) {
    GraphSource source;
    source.path = path;
    const auto context = std::make_shared<Context>();
    out.text = graph_to_json(PW_TRY(read_graph(context, out.text, source)).graph);
    out.name += ".json";
  }
  if (out.text.size() > kMostGraphBytes) return too_large(path, out.text.size(), kMostGraphBytes);
  return out;
}

/// Returns the text of a rule file; for a library name, a text with a `use` of it.
Result<std::string> rule_text(const std::string& given) {
  std::error_code unknown;
  if (!std::filesystem::exists(given, unknown) && embedded_file(given) != nullptr)
    return fmt::format("use \"{}\"\n", given);
  std::string text = PW_TRY(read_text_file(given, "rules"));
  if (text.size() > kMostRuleBytes) return too_large(given, text.size(), kMostRuleBytes);
  if (!is_text(text)) return fail(error_in(given, "PW0005", "this is not a text file"));
  return text;
}

/// Returns the initial content of the page.
Result<Share> first_share(const ServeArgs& args) {
  Share out;
  if (args.file.empty() && args.rules.empty()) out = example_share();
  if (!args.file.empty()) {
    std::string content = PW_TRY(read_file(args.file));
    if (args.file.ends_with(".share") || stated_format(content) == kShareFormat)
      out = PW_TRY(share_from_json(content, args.file));
    else
      out.graph = PW_TRY(shared_graph(args.file, std::move(content)));
  }
  if (!args.rules.empty()) out.rules = PW_TRY(rule_text(args.rules));
  if (!args.pipeline.empty()) out.pipeline = args.pipeline;
  if (!args.symbols.empty() && out.graph) out.graph->symbols = args.symbols;
  return out;
}

[[noreturn]] void no_port(const Session& session, int port, int why) {
  if (why == EADDRINUSE)
    session.die({error_at({}, "PW1601", fmt::format("port {} is in use by another program", port),
                          "leave out --port to use a free one")});
  session.die(
      {error_at({}, "PW1601", fmt::format("port {} is not available: {}", port, std::strerror(why)),
                port < 1024 ? "ports below 1024 are reserved for the system" : "")});
}

/// Opens a browser without a shell, and only if there is a display.
void open_browser(const std::string& address) {
  if (environment("DISPLAY").empty() && environment("WAYLAND_DISPLAY").empty()) return;
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    ::posix_spawn_file_actions_addopen(&files, stream, "/dev/null", O_RDWR, 0);
  ::posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
  std::string program = "xdg-open", shown = address;
  char* arguments[] = {program.data(), shown.data(), nullptr};
  pid_t process = 0;
  ::posix_spawnp(&process, program.c_str(), &files, nullptr, arguments, environ);
  ::posix_spawn_file_actions_destroy(&files);
}

/// Serves until SIGINT, SIGTERM or SIGHUP, which stop it cleanly.
void serve_until_interrupted(HttpServer& server, Site& site, const std::function<void()>& ready) {
  sigset_t ends;
  ::sigemptyset(&ends);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&ends, signal);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  std::thread serving([&] { server.serve(); });
  ready();
  int signal = 0;
  ::sigwait(&ends, &signal);
  site.stop();
  server.stop();
  serving.join();
}

void run_serve(const Options& options, const ServeArgs& args) {
  if (args.answer) throw Exit{answer_one(args.seconds)};
  Session session(options);
  session.refuse_json("it serves a web page");
  Gate gate{0, random_word(), kMostShareBytes + (std::size_t{1} << 20)};
  Site site(share_to_json(session.need(first_share(args))), gate.token,
            std::chrono::seconds(args.seconds));
  HttpService service;
  service.refuse = [&](const HttpRequest& request) { return gate.refuse(request); };
  service.answer = [&](const HttpRequest& request) { return site.answer(request); };
  service.most_bytes = gate.most_body;
  const auto server = session.need(make_http_server(std::move(service)));
  if (const int why = server->bind(args.port); why != 0) no_port(session, args.port, why);
  gate.port = server->port();
  serve_until_interrupted(*server, site, [&] {
    print_out(gate.address() + "\n");
    push_standard_output();
    session.say("open this address in a browser on this machine; press Ctrl-C to stop the server");
    if (!args.no_open)
      open_browser(fmt::format("http://127.0.0.1:{}{}", gate.port, site.start_path()));
  });
  session.say("the server has stopped");
}

}  // namespace

void add_serve_command(CLI::App& app, const Options& options) {
  auto args = std::make_shared<ServeArgs>();
  auto* sub = app.add_subcommand(
      "serve", "Serve a local web page that shows the effect of rules on a graph as you type");
  sub->add_option("file", args->file,
                  std::string(kGraphFiles) + "; or a share file that the page saved");
  add_setting(*sub, "-r,--rules", args->rules, "FILE",
              "a rule file (.pwr), or a name of the built-in library, such as llm");
  add_setting(*sub, "-p,--pipeline", args->pipeline,
              "the pipeline, pass or rule to run; without it, the first that the rules declare");
  add_setting(*sub, "--symbol", args->symbols, "NAME=DIMS",
              "make input dims of a dump symbolic: n=arg0_1.0");
  add_setting(*sub, "--port", args->port, CLI::Range(0, 65535),
              "port on 127.0.0.1; 0: any free port")
      ->type_name("PORT");
  add_setting(*sub, "--time-limit", args->seconds, CLI::Range(1, 3600),
              "time limit of checking, rewriting and drawing, in seconds")
      ->type_name("SECONDS");
  add_switch(*sub, "--no-open", args->no_open, "do not open a browser");
  sub->add_flag("--answer", args->answer)->group("");  // started by the server itself
  sub->footer(
      "The page can be reached only from this machine, by the printed address. The server writes\n"
      "nothing to disk: the page saves share files through the browser.\n"
      "Examples:\n"
      "  pwr serve                                    start with an example\n"
      "  pwr serve model.json -r my_rules.pwr\n"
      "  pwr serve model.fx.txt --symbol n=arg0_1.0 -r llm -p o2\n"
      "  pwr serve bug.share --no-open --port 8080    rules and graph from somebody else");
  sub->callback([args, &options] { run_serve(options, *args); });
}

}  // namespace pw::cli
