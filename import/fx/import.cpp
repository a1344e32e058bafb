#include <algorithm>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/io/file_kind.hpp"
#include "base/try.hpp"
#include "import/fx/convert.hpp"
#include "import/fx/text/form.hpp"
#include "import/fx/types.hpp"

namespace pw {
namespace {

constexpr std::size_t kMaxListed = 40;

Diagnostics no_graph(std::string_view text, SourceId source) {
  const std::string known = known_as(text);
  std::string message =
      known.empty() ? "this text has no torch.fx graph" : "this is " + known + ", not an FX dump";
  return {
      error_at({source, 0, 1}, "PW0501", std::move(message),
               "dumps are written by print_readable(), str(graph), torch.export or TORCH_LOGS")};
}

std::string line_of(const std::vector<fx::GraphText>& graphs, std::size_t i) {
  const fx::GraphText& g = graphs[i];
  const char* kind = g.kind == fx::GraphText::Kind::listing ? "str(graph)"
                     : g.kind == fx::GraphText::Kind::table ? "a table"
                                                            : "code";
  return fmt::format("{}: {}, about {}", i + 1, g.title.empty() ? kind : g.title,
                     counted(g.statements, "node"));
}

Result<std::size_t> choose(const std::vector<fx::GraphText>& graphs, std::size_t wanted,
                           SourceId source) {
  if (wanted > graphs.size())
    return fail(error_in(fmt::format("--graph {}", wanted), "PW0506",
                         "this text has " + counted(graphs.size(), "graph")));
  if (wanted > 0) return wanted - 1;
  if (graphs.size() == 1) return std::size_t{0};
  std::string list;
  for (std::size_t i = 0; i < graphs.size() && i < kMaxListed; ++i)
    list += (i > 0 ? "; " : "") + line_of(graphs, i);
  if (graphs.size() > kMaxListed) list += "; …";
  const auto at =
      static_cast<std::uint32_t>(graphs[1].parts.empty() ? 0 : graphs[1].parts.front().first);
  return fail(Span{source, at, at + 1}, "PW0504",
              fmt::format("this text has {} graphs; choose one with --graph N", graphs.size()),
              list);
}

/// Returns true if the text states the module of a call.
bool states_groups(const fx::Module& module) {
  const std::vector<fx::Statement>& all = module.forward.statements;
  return std::ranges::any_of(all, [](const fx::Statement& s) { return !s.group.empty(); }) ||
         std::ranges::any_of(module.children, states_groups);
}

}  // namespace

Result<FxImport> import_fx(const ContextPtr& context, std::string_view given,
                           const FxOptions& options) {
  const SourceId source = context->sources.add(options.file.empty() ? "<fx>" : options.file,
                                               std::string(given.substr(0, fx::kMaxText + 1)));
  const std::string_view text = context->sources.text(source);
  if (text.size() > fx::kMaxText)
    return fail(Span{source, 0, 1}, "PW0503", "the dump is larger than 64 MiB");
  const std::vector<fx::GraphText> graphs = fx::find_graphs(text);
  if (graphs.empty()) return tl::unexpected<Diagnostics>(no_graph(text, source));
  std::size_t chosen = PW_TRY(choose(graphs, options.graph, source));
  const fx::GraphText& graph = graphs[chosen];
  const std::string body = fx::only(text, graph);

  fx::Module module;
  if (graph.kind == fx::GraphText::Kind::code) {
    fx::Module parsed = PW_TRY(fx::parse(body, source, options.one_by_one));
    module = std::move(parsed);
  } else {
    fx::Function parsed =
        PW_TRY(graph.kind == fx::GraphText::Kind::listing ? fx::parse_listing(body, source)
                                                          : fx::parse_table(body, source));
    module.forward = std::move(parsed);
  }
  const std::size_t pieces = module.children.size();
  const bool grouped = states_groups(module);
  fx::Function function = PW_TRY(fx::inline_modules(std::move(module)));
  if (!grouped) fx::infer_groups(function, graph.signature);
  fx::flatten_inputs(function);
  fx::spell_out(function);
  fx::name_first_results(function);
  std::string form = fx::describe(graph, pieces, function);
  PW_TRY(fx::take_given_types(*context, options, function));
  const std::size_t loaded = fx::take_load_args(text, function);
  if (graphs.size() > 1) form += fmt::format(" ({} of {})", chosen + 1, graphs.size());
  if (graph.logged) form += ", from a log";
  Result<FxImport> out = fx::Converter(context, options, function, graph.signature).convert();
  if (!out) return out;
  out->report.form = std::move(form);
  if (loaded > 0)
    out->report.notes.push_back(
        fmt::format("{} inputs have the types and sizes that `load_args` states", loaded));
  return out;
}

Result<FxImport> import_fx(const ContextPtr& context, fx::Function function,
                           const FxOptions& options, std::string form) {
  fx::spell_out(function);
  fx::name_first_results(function);
  PW_TRY(fx::take_given_types(*context, options, function));
  Result<FxImport> out = fx::Converter(context, options, function, "").convert();
  if (out) out->report.form = std::move(form);
  return out;
}

}  // namespace pw
