#include "pipeline/load.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "backends/collectives.hpp"
#include "base/characters.hpp"
#include "base/counted.hpp"
#include "base/io/file.hpp"
#include "base/try.hpp"
#include "pipeline/symbol_values.hpp"
#include "verify/traits.hpp"

namespace pw {
namespace {

std::vector<std::string> guess_lines(const FxReport& report) {
  std::map<std::string_view, std::string> lists;
  for (const auto& [input, kind] : report.guessed) {
    std::string& list = lists[name(kind)];
    list += (list.empty() ? "" : " ") + input;
  }
  std::vector<std::string> out;
  for (const auto& [kind, list] : lists)
    out.push_back(fmt::format("guessed to be {}: {}", kind, list));
  return out;
}

std::vector<std::string> dropped_lines(const FxReport& report, bool all) {
  std::vector<std::string> out;
  int dropped = 0;
  for (const auto& [target, count] : report.dropped) {
    dropped += count;
    out.push_back(fmt::format("left out: {} × {}: it computes nothing", target, count));
  }
  for (const auto& [op, count] : report.unread) {
    dropped += count;
    out.push_back(fmt::format("left out: {} × {}: no output reads it", op, count));
  }
  if (all || dropped == 0) return out;
  return {fmt::format("left out: {} without an effect; `pwr import` lists them",
                      counted(static_cast<std::size_t>(dropped), "call"))};
}

std::vector<std::string> unchecked_lines(const FxReport& report, bool all) {
  std::vector<std::string> out;
  for (const std::string& line : report.unchecked)
    out.push_back("not checked: the program may refuse its inputs here: " + line);
  if (all || out.size() < 2) return out;
  return {
      fmt::format("not checked: {} conditions under which the program refuses its inputs; "
                  "`pwr import` lists them",
                  out.size())};
}

std::vector<std::string> checked_lines(const FxReport& report, bool all) {
  std::vector<std::string> out;
  for (const SizeCondition& condition : report.checked)
    out.push_back("checked by runs: " + condition.text);
  if (all || out.size() < 2) return out;
  return {fmt::format("checked by runs: {} conditions on its sizes; `pwr import` lists them",
                      out.size())};
}

/// Describes the import of a dump. `all`: also each symbol, guess, and omitted call.
std::vector<std::string> import_lines(const FxReport& report, bool all) {
  std::vector<std::string> out{"this is " + report.form};
  const auto add = [&](const std::vector<std::string>& lines) {
    out.insert(out.end(), lines.begin(), lines.end());
  };
  for (const std::string& line : report.notes) out.push_back("note: " + line);
  for (const auto& [target, count] : report.opaque)
    out.push_back(fmt::format(
        "opaque: {} × {}: kept unchanged, with the types that the dump states", target, count));
  for (const auto& [reason, count] : report.reasons)
    out.push_back(fmt::format("no row: {} × {}", reason, count));
  add(checked_lines(report, all));
  add(unchecked_lines(report, all));
  add(dropped_lines(report, all));
  if (all) add(guess_lines(report));
  if (all)
    for (const std::string& line : report.substitutions) out.push_back("symbol: " + line);
  else if (!report.substitutions.empty())
    out.push_back(fmt::format(
        "symbol: {} shape literals of the dump became symbolic; `pwr import` lists them",
        report.substitutions.size()));
  return out;
}

Result<FxOptions> fx_options(const GraphSource& source) {
  FxOptions fx;
  fx.file = source.path;
  fx.graph = source.number;
  for (const std::string& symbol : source.symbols)
    fx.symbols.push_back(PW_TRY(parse_symbol(symbol)));
  for (const std::string& type : source.types) fx.types.insert(PW_TRY(parse_stated_type(type)));
  for (const std::string& input : source.inputs) fx.kinds[input] = InputKind::input;
  for (const std::string& weight : source.weights) fx.kinds[weight] = InputKind::weight;
  for (const std::string& buffer : source.buffers) fx.kinds[buffer] = InputKind::buffer;
  fx.progress = source.progress;
  return fx;
}

/// Returns the groups that collectives of the graph name.
std::set<std::string> groups_of(const Graph& graph) {
  std::set<std::string> out;
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n)) {
    const Op& op = graph.op_of(n);
    const std::string* group = group_name(graph, n);
    if (group != nullptr && (op.traits.collective || find_collective(op.primitive) != nullptr))
      out.insert(*group);
  }
  return out;
}

Status declare_replicated(Graph& graph, const std::vector<std::string>& names) {
  if (names.empty()) return {};
  std::set<std::string_view> missing(names.begin(), names.end());
  const bool all = missing.erase("all") > 0;
  const std::set<std::string> groups = groups_of(graph);
  for (ValueId input : graph.inputs()) {
    if (missing.erase(graph.value_name(input)) == 0 && !all) continue;
    for (const std::string& group : groups) graph.declare_replicated(input, group);
  }
  if (missing.empty()) return {};
  return fail(error_in("replicated", "PW1409",
                       fmt::format("the graph has no input `{}`", *missing.begin()),
                       "--replicated requires input names, or `all`"));
}

}  // namespace

Result<ReadGraph> load_graph(const ContextPtr& context, const GraphSource& source) {
  if (source.loaded != nullptr) {
    ReadGraph read{*source.loaded, std::nullopt};
    PW_TRY(declare_replicated(read.graph, source.replicated));
    PW_TRY(set_symbols(read.graph, source.values, source.tokens));
    return read;
  }
  return read_graph(context, PW_TRY(read_file(source.path)), source);
}

Result<ReadGraph> read_graph(const ContextPtr& context, const std::string& text,
                             const GraphSource& source) {
  ReadGraph read = PW_TRY(read_graph(context, text, PW_TRY(fx_options(source))));
  if (!read.dump && !source.symbols.empty())
    return fail(error_in(source.path, "PW1401",
                         "--symbol is for FX dumps, but this graph declares its symbols itself"));
  if (!read.dump && !source.types.empty())
    return fail(error_in(source.path, "PW1401",
                         "--type is for FX dumps, but this graph states its types itself"));
  PW_TRY(refuse_false_traits(read.graph));
  PW_TRY(declare_replicated(read.graph, source.replicated));
  PW_TRY(set_symbols(read.graph, source.values, source.tokens));
  return read;
}

void say_import(const ReadGraph& read, const Log& log, bool all) {
  if (!read.dump) return;
  for (const std::string& line : import_lines(*read.dump, all)) log.say(line);
}

Result<Graph> load_logged_graph(const ContextPtr& context, const GraphSource& source,
                                const Log& log, bool all) {
  GraphSource with_progress = source;
  with_progress.progress = progress_to(log, source.path);
  if (source.loaded == nullptr) log.progress({"reading " + source.path});
  ReadGraph read = PW_TRY(load_graph(context, with_progress));
  say_import(read, log, all);
  return std::move(read.graph);
}

Result<LoadedRules> load_rules(const ContextPtr& context, const RuleSource& source, const Log& log,
                               bool believe) {
  RuleSet set =
      source.loaded != nullptr ? *source.loaded : PW_TRY(load_rules(context, source.rules));
  log.warn(set.warnings);
  if (!believe) PW_TRY(refuse_false_traits(set));
  std::vector<std::pair<std::string, std::string>> definitions;
  for (const std::string& text : source.definitions)
    definitions.push_back(PW_TRY(parse_definition(text)));
  Env params = PW_TRY(bind_params(set, definitions));
  return LoadedRules{std::move(set), std::move(params)};
}

Result<std::pair<std::string, std::vector<std::pair<std::string, int>>>> parse_symbol(
    const std::string& text) {
  auto bad = [&](const std::string& why) {
    return fail(error_in("--symbol " + text, "PW1401", why,
                         "write it like n=arg0_1.0,arg6_1.0: the symbol, then input.axis for each "
                         "of its dims"));
  };
  std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return bad("there is no `=` after a name");
  std::pair<std::string, std::vector<std::pair<std::string, int>>> out{text.substr(0, equals), {}};
  if (!is_name(out.first)) return bad("`" + out.first + "` is not a name");
  std::size_t at = equals + 1;
  while (at <= text.size()) {
    std::size_t comma = std::min(text.find(',', at), text.size());
    std::string item = text.substr(at, comma - at);
    std::size_t dot = item.rfind('.');
    bool digits = dot != std::string::npos && dot > 0 && dot + 1 < item.size() &&
                  item.size() - dot < 4 && are_digits(std::string_view(item).substr(dot + 1));
    if (!digits) return bad("`" + item + "` is not input.axis");
    out.second.emplace_back(item.substr(0, dot), std::stoi(item.substr(dot + 1)));
    at = comma + 1;
  }
  return out;
}

Result<std::pair<std::string, std::string>> parse_stated_type(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    return fail(error_in("--type " + text, "PW1401", "there is no `=` between a name and a type",
                         "write it like x=bf16[n,64]"));
  return std::pair{text.substr(0, equals), text.substr(equals + 1)};
}

Result<std::pair<std::string, std::string>> parse_definition(const std::string& text) {
  std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return fail(
        error_in("-D " + text, "PW1403", "this is not NAME=VALUE", "write it like -D tp=2"));
  return std::pair{text.substr(0, equals), text.substr(equals + 1)};
}

Status check_number(std::string_view what, std::int64_t number, std::int64_t least,
                    std::int64_t most) {
  if (least <= number && number <= most) return {};
  return fail(error_at(
      {}, "PW1402",
      fmt::format("{} is {}, but must be an integer from {} to {}", what, number, least, most)));
}

Status check_numbers(std::string_view what, const std::vector<std::int64_t>& numbers,
                     std::int64_t least, std::int64_t most, bool some) {
  if (some && numbers.empty())
    return fail(error_at({}, "PW1402", fmt::format("{} is an empty list", what)));
  for (const std::int64_t number : numbers) PW_TRY(check_number(what, number, least, most));
  return {};
}

Result<std::vector<std::int64_t>> parse_numbers(const std::string& text, std::int64_t least,
                                                std::int64_t most) {
  std::vector<std::int64_t> out;
  std::size_t at = 0;
  while (at <= text.size()) {
    std::size_t comma = std::min(text.find(',', at), text.size());
    std::string item = text.substr(at, comma - at);
    bool digits = item.size() < 18 && are_digits(item);
    std::int64_t value = digits ? std::stoll(item) : -1;
    if (!digits || value < least || value > most)
      return fail(error_in("`" + text + "`", "PW1402",
                           fmt::format("`{}` is not an integer from {} to {}", item, least, most),
                           "separate numbers with commas: 1,7,16,300"));
    out.push_back(value);
    at = comma + 1;
  }
  return out;
}

}  // namespace pw
