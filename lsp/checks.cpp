#include "lsp/checks.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "pipeline/check/check.hpp"
#include "pipeline/explain.hpp"
#include "pipeline/judge/judge.hpp"
#include "verify/traits.hpp"

namespace pw::cli {
namespace {

/// No limit on near misses.
constexpr std::size_t kAllMisses = std::size_t{1} << 20;
constexpr std::size_t kShownMisses = 5;

class Placing {
 public:
  Placing(const SourceMap& sources, const SourceText& text) : sources_(sources), text_(text) {}

  /// Returns the range in the text, or for another file that of its `use`, or the beginning.
  FoundDiagnostic operator()(const Diagnostic& d) const {
    FoundDiagnostic out;
    out.severity = d.severity;
    out.code = d.code;
    out.help = d.help;
    out.message = d.message;
    if (!d.place.empty()) out.message = d.place + ": " + out.message;
    if (here(d.span)) {
      out.begin = d.span.begin;
      out.end = std::max(d.span.end, d.span.begin);
      if (!d.label.empty()) out.message += "\n" + d.label;
    } else if (d.span.valid()) {
      out.message = sources_.describe(d.span) + ": " + out.message;
      if (!text_.mentions.uses.empty()) {
        out.begin = text_.mentions.uses.front().begin;
        out.end = text_.mentions.uses.front().end;
      }
      out.related.push_back(related(d.span, d.message));
    }
    for (const std::string& note : d.notes) out.message += "\nnote: " + note;
    if (!d.help.empty()) out.message += "\nhelp: " + d.help;
    for (const Label& label : d.secondary)
      if (label.span.valid()) out.related.push_back(related(label.span, label.text));
    return out;
  }

  std::vector<FoundDiagnostic> all(const Diagnostics& diagnostics) const {
    std::vector<FoundDiagnostic> out;
    for (const Diagnostic& d : diagnostics) out.push_back((*this)(d));
    return out;
  }

 private:
  [[nodiscard]] bool here(Span span) const {
    return span.valid() && sources_.name(span.source) == text_.name;
  }
  [[nodiscard]] FoundDiagnostic::Related related(Span span, std::string text) const {
    return {sources_.name(span.source), sources_.position(span.source, span.begin),
            sources_.position(span.source, span.end), std::move(text)};
  }

  const SourceMap& sources_;
  const SourceText& text_;
};

void check_graph_text(const CheckJob& job, CheckedDocument& out) {
  const auto context = std::make_shared<Context>();
  Diagnostics found;
  if (auto library = load_op_library(context); !library)
    found = std::move(library.error());
  else if (auto graph = parse_graph(context, job.text->text, job.path); !graph)
    found = std::move(graph.error());
  out.found = Placing(context->sources, *job.text).all(found);
}

void note_types(const Draft& draft, CheckedDocument& out) {
  for (const InferredType& type : draft.types) {
    for (const std::uint32_t i : out.text->at(type.span.begin)) {
      const Mention& m = out.text->mentions.all[i];
      if (m.begin == type.span.begin && m.kind == MentionKind::name)
        out.types.emplace(type_key(*out.text, m), type.type);
    }
  }
}

std::string explained(const Explanation& found) {
  std::string out;
  for (std::size_t i = 0; i < found.groups.size() && i < kShownMisses; ++i) {
    const NearMiss& miss = found.groups[i].first;
    out += fmt::format("{} at {}: {}", miss.why.code, miss.at ? "%" + miss.at->name : "the rule",
                       miss.why.message);
    if (found.groups[i].count > 1)
      out += fmt::format("; the same at {} more", found.groups[i].count - 1);
    if (!miss.help.empty()) out += "\n  help: " + miss.help;
    out += "\n";
  }
  if (found.groups.size() > kShownMisses)
    out += fmt::format("and {} other reasons\n", found.groups.size() - kShownMisses);
  return out;
}

void count_rules(const CheckJob& job, const Draft& draft, AnalysedDocument& out) {
  const ContextPtr& context = draft.rules.context;
  out.graph = std::filesystem::path(job.graph).filename().string();
  GraphSource source;
  source.path = job.graph;
  const auto read = load_graph(context, source);
  const auto params = bind_params(draft.rules, {});
  if (!read || !params) {
    out.graph_problem = (read ? params.error() : read.error()).front().message;
    return;
  }
  ExplainOptions options;
  options.most = kAllMisses;
  for (const OutlineItem& item : job.text->mentions.items) {
    if (item.kind != Tok::rule || item.name.empty()) continue;
    std::string rule = item.name;
    if (item.group >= 0)
      rule = job.text->mentions.items[static_cast<std::size_t>(item.group)].name + "." + rule;
    if (draft.rules.resolve(rule).empty()) continue;
    const auto found = explain_rules(read->graph, draft.rules, rule, *params, options);
    if (!found) continue;
    RuleCounts& counts = out.counts[rule];
    counts.matches = found->matches;
    for (const NearMissGroup& group : found->groups) counts.near_misses += group.count;
    counts.text = explained(*found);
  }
}

}  // namespace

std::string type_key(const SourceText& text, const Mention& mention) {
  if (mention.scope == kNoScope) return mention.name;
  const std::vector<NameScope>& scopes = text.mentions.scopes;
  const std::uint32_t number = scopes[mention.scope].item;
  std::uint32_t first = mention.scope;
  while (first > 0 && scopes[first - 1].item == number) --first;
  const OutlineItem& item = text.mentions.items[number];
  std::string group;
  if (item.group >= 0) group = text.mentions.items[static_cast<std::size_t>(item.group)].name;
  return fmt::format("{} {}.{} {} {}", static_cast<int>(item.kind), group, item.name,
                     mention.scope - first, mention.name);
}

std::string lens_title(const RuleCounts& counts, const std::string& graph) {
  return fmt::format("{} {} · {} {} in {}", counts.matches,
                     counts.matches == 1 ? "match" : "matches", counts.near_misses,
                     counts.near_misses == 1 ? "near miss" : "near misses", graph);
}

CheckedDocument check_document(const CheckJob& job) {
  CheckedDocument out{job.uri, job.version, job.text, {}, {}, nullptr};
  if (job.path.ends_with(".pwg")) {
    check_graph_text(job, out);
    return out;
  }
  const auto context = std::make_shared<Context>();
  LoadOptions options;
  options.unsaved = &job.unsaved;
  auto draft = std::make_shared<Draft>(load_draft(context, {job.path}, options));
  bool sound = !has_errors(draft->diagnostics);
  if (sound)
    if (auto honest = refuse_false_traits(draft->rules); !honest) {
      draft->diagnostics = std::move(honest.error());
      sound = false;
    }
  out.found = Placing(context->sources, *job.text).all(draft->diagnostics);
  note_types(*draft, out);
  if (sound) out.draft = std::move(draft);
  return out;
}

std::vector<FoundDiagnostic> found_in(const SourceText& text, const SourceMap& sources,
                                      const Diagnostics& diagnostics) {
  return Placing(sources, text).all(diagnostics);
}

AnalysedDocument analyse_document(const CheckJob& job, Draft& draft) {
  AnalysedDocument out{job.uri, job.version, {}, {}, {}, {}};
  const Placing place(draft.rules.context->sources, *job.text);
  if (!job.graph.empty()) count_rules(job, draft, out);
  if (const auto params = bind_params(draft.rules, {})) {
    for (const Finding& finding : analyse(draft.rules, *params).findings)
      out.found.push_back(place(finding.diagnostic));
  }
  for (const ast::File& file : draft.rules.files)
    if (draft.rules.context->sources.name(file.source) == job.text->name)
      for (const Diagnostic& failing : failing_tests(draft.rules, {file.source}))
        out.found.push_back(place(failing));
  return out;
}

JudgedDocument judge_document(const CheckJob& job, Draft& draft) {
  JudgedDocument out{job.uri, job.version, {}, {}};
  const RuleSet& rules = draft.rules;
  const SourceMap& sources = rules.context->sources;
  auto params = bind_params(rules, {});
  if (!params || rules.rules.size() > kMostProved) return out;
  const LoadedRules loaded{rules, std::move(*params)};
  RuleJudge judge(loaded, {});
  Diagnostics warnings;
  for (std::size_t i = 0; i < rules.rules.size(); ++i) {
    const Rule& rule = rules.rules[RuleId(i)];
    const bool here =
        rule.name_span.valid() && sources.name(rule.name_span.source) == job.text->name;
    if (!here || rule.frontier) continue;
    const RuleJudgement judgement = judge.judge(RuleId(i));
    const std::string words = judgement.print();
    out.verdicts.emplace(rule.name, words.substr(0, words.find('\n')));
    const bool page = job.path.starts_with("<");  // of pwr serve: no file to name
    for (Diagnostic& warning :
         verdict_warnings(rules, RuleId(i), judgement, page ? "FILE" : job.path))
      warnings.push_back(std::move(warning));
  }
  out.found = Placing(sources, *job.text).all(warnings);
  return out;
}

}  // namespace pw::cli
