// Exports Session and the loading of graphs and rules.
#include "cli/session.hpp"

#include <algorithm>
#include <cstdlib>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "base/file.hpp"
#include "base/printable.hpp"
#include "base/standard_output.hpp"
#include "graph/graph_json.hpp"
#include "verify/traits.hpp"

namespace pw::cli {
namespace {

std::string_view trimmed(std::string_view text) {
  std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}

void say_report(const Session& session, const FxReport& report, bool all) {
  session.say("this is " + report.form);
  for (const std::string& line : report.notes) session.say("note: " + line);
  for (const auto& [target, count] : report.opaque)
    session.say(fmt::format("opaque: {} × {}: kept as it is, with the types the dump states",
                            target, count));
  for (const auto& [reason, count] : report.reasons)
    session.say(fmt::format("no row: {} × {}", reason, count));
  int dropped = 0;
  for (const auto& [target, count] : report.dropped) {
    dropped += count;
    if (all) session.say(fmt::format("left out: {} × {}: it computes nothing", target, count));
  }
  if (dropped > 0 && !all)
    session.say(
        fmt::format("left out: {} calls that compute nothing; `pwr import` lists them", dropped));
  std::map<std::string_view, std::string> guessed;
  for (const auto& [input, kind] : report.guessed) {
    std::string& list = guessed[name(kind)];
    list += (list.empty() ? "" : " ") + input;
  }
  for (const auto& [kind, list] : guessed)
    if (all) session.say(fmt::format("guessed to be {}: {}", kind, list));
  if (all)
    for (const std::string& line : report.substitutions) session.say("symbol: " + line);
  else if (!report.substitutions.empty())
    session.say(fmt::format(
        "symbol: {} shape literals of the dump became symbolic; `pwr import` lists them",
        report.substitutions.size()));
}

}  // namespace

Session::Session(const Options& given) : options(given) {}

bool Session::color() const {
  if (options.color == "always") return true;
  if (options.color == "never" || std::getenv("NO_COLOR")) return false;
  return ::isatty(STDERR_FILENO) != 0;
}

void Session::say(const std::string& line) const {
  if (options.quiet) return;
  push_standard_output();  // in the order in which things were said, also when both go to one pipe
  end_progress();
  print_error(printable_lines(line) + "\n");
}

void Session::end_progress() const {
  if (progress_shown_) print_error("\r\x1b[K");
  progress_shown_ = false;
}

void Session::progress(const std::string& line) const {
  if (options.quiet || ::isatty(STDERR_FILENO) == 0) return;
  print_error("\r\x1b[K" + printable(line));
  progress_shown_ = true;
}

void Session::report(const Diagnostics& diagnostics) const {
  if (diagnostics.empty()) return;
  end_progress();
  print_error(render(diagnostics, context->sources, {color(), 20}));
}

void Session::die(const Diagnostics& diagnostics, int code) const {
  report(diagnostics);
  throw Exit{code, diagnostics.empty() ? "" : diagnostics.front().message,
             render(diagnostics, context->sources)};
}

void Session::die(const std::string& message, const std::string& help, int code) const {
  die(Diagnostics{error_at({}, "", message, help)}, code);
}

void GraphOptions::add_to(CLI::App& app, bool required) {
  auto* graph =
      app.add_option("graph", path, "graph.json, .pwg, or a PyTorch FX dump; - is standard input");
  if (required) graph->required();
  app.add_option("--symbol", symbols,
                 "make input dims of a dump symbolic: n=arg0_1.0,arg6_1.0 (input.axis)")
      ->type_name("NAME=DIMS");
  app.add_option("--graph", number, "of a dump with several graphs, such as a log: which, from 1")
      ->type_name("N");
  app.add_option("--input", inputs, "an input of a dump that changes from call to call")
      ->type_name("NAME");
  app.add_option("--weight", weights, "an input of a dump that is a weight")->type_name("NAME");
  app.add_option("--buffer", buffers, "an input of a dump that is a buffer")->type_name("NAME");
}

Result<std::pair<std::string, std::vector<std::pair<std::string, int>>>> parse_symbol(
    const std::string& text) {
  auto bad = [&](const std::string& why) {
    return fail(error_in("--symbol " + text, "PW1401", why,
                         "write it like n=arg0_1.0,arg6_1.0: the symbol, then input.axis for each "
                         "dim that becomes it"));
  };
  std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return bad("there is no `=` after a name");
  std::pair<std::string, std::vector<std::pair<std::string, int>>> out{text.substr(0, equals), {}};
  if (!std::all_of(out.first.begin(), out.first.end(),
                   [](unsigned char c) { return std::isalnum(c) || c == '_'; }) ||
      std::isdigit(static_cast<unsigned char>(out.first[0])))
    return bad("`" + out.first + "` is not a name");
  std::size_t at = equals + 1;
  while (at <= text.size()) {
    std::size_t comma = std::min(text.find(',', at), text.size());
    std::string item = text.substr(at, comma - at);
    std::size_t dot = item.rfind('.');
    bool digits = dot != std::string::npos && dot > 0 && dot + 1 < item.size() &&
                  item.size() - dot < 4 &&
                  std::all_of(
                      item.begin() + static_cast<std::ptrdiff_t>(dot) + 1, item.end(),
                      [](unsigned char c) { return std::isdigit(c) != 0; });
    if (!digits) return bad("`" + item + "` is not input.axis");
    out.second.emplace_back(item.substr(0, dot), std::stoi(item.substr(dot + 1)));
    at = comma + 1;
  }
  return out;
}

namespace {

Graph read_graph(const Session& session, const GraphOptions& options, bool list_substitutions) {
  session.need(load_op_library(session.context));
  std::string text = session.need(read_file(options.path));
  if (!looks_like_fx(text)) {
    if (!options.symbols.empty())
      session.die("--symbol is for FX dumps; `" + options.path + "` states its symbols itself", "",
                  kUsage);
    if (trimmed(text).substr(0, 1) == "{")
      return session.need(graph_from_json(session.context, text, options.path, parse_op));
    if (const std::string known = known_as(text); !known.empty())
      session.die(std::string("`") + options.path + "` is " + known,
                  "pwr reads .pwg, graph.json, and the text of torch.fx graphs", kInvalidInput);
    return session.need(parse_graph(session.context, text, options.path));
  }
  FxOptions fx;
  fx.file = options.path;
  for (const std::string& symbol : options.symbols)
    fx.symbols.push_back(session.need(parse_symbol(symbol), kUsage));
  fx.graph = options.number;
  for (const std::string& input : options.inputs) fx.kinds[input] = InputKind::input;
  for (const std::string& weight : options.weights) fx.kinds[weight] = InputKind::weight;
  for (const std::string& buffer : options.buffers) fx.kinds[buffer] = InputKind::buffer;
  FxImport import = session.need(import_fx(session.context, text, fx));
  say_report(session, import.report, list_substitutions);
  return std::move(import.graph);
}

}  // namespace

Graph load(const Session& session, const GraphOptions& options, bool list_substitutions) {
  Graph graph = read_graph(session, options, list_substitutions);
  session.need(refuse_false_traits(graph));
  return graph;
}

void RuleOptions::add_to(CLI::App& app, bool pipeline_too) {
  app.add_option(
         "-r,--rules", rules,
         "a rule file (.pwr); a bare name such as llm is looked up in the built-in library; "
         "repeatable")
      ->type_name("FILE");
  if (pipeline_too)
    app.add_option("-p,--pipeline", pipeline, "the pipeline, pass or rule to run, such as o2");
  app.add_option("-D,--define", definitions, "set a param of the rules: -D tp=2")
      ->type_name("NAME=VALUE");
}

Result<std::pair<std::string, std::string>> parse_definition(const std::string& text) {
  std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return fail(error_in("-D " + text, "PW1403", "expected name=value", "for example -D tp=2"));
  return std::pair{text.substr(0, equals), text.substr(equals + 1)};
}

LoadedRules load(const Session& session, const RuleOptions& options, bool believe) {
  RuleSet set = session.need(load_rules(session.context, options.rules));
  session.report(set.warnings);
  if (!believe) session.need(refuse_false_traits(set));
  std::vector<std::pair<std::string, std::string>> definitions;
  for (const std::string& text : options.definitions)
    definitions.push_back(session.need(parse_definition(text), kUsage));
  Env params = session.need(bind_params(set, definitions));
  return {std::move(set), std::move(params)};
}

Result<std::vector<std::int64_t>> parse_numbers(const std::string& text, std::int64_t least,
                                                std::int64_t most) {
  std::vector<std::int64_t> out;
  std::size_t at = 0;
  while (at <= text.size()) {
    std::size_t comma = std::min(text.find(',', at), text.size());
    std::string item = text.substr(at, comma - at);
    bool digits =
        !item.empty() && item.size() < 18 &&
        std::all_of(item.begin(), item.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    std::int64_t value = digits ? std::stoll(item) : -1;
    if (!digits || value < least || value > most)
      return fail(
          error_in("`" + text + "`", "PW1402",
                   fmt::format("`{}` is not a whole number from {} to {}", item, least, most),
                   "write numbers with commas between them: 1,7,16,300"));
    out.push_back(value);
    at = comma + 1;
  }
  return out;
}

}  // namespace pw::cli
