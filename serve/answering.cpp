#include "serve/answering.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/exit_code.hpp"
#include "base/hash.hpp"
#include "base/io/file_kind.hpp"
#include "base/io/own_folders.hpp"
#include "base/io/standard_output.hpp"
#include "dsl/used_file.hpp"
#include "lsp/checks.hpp"
#include "lsp/frames.hpp"
#include "pipeline/report/diagnostics.hpp"
#include "pipeline/report/pictures.hpp"
#include "serve/ask.hpp"

namespace pw::cli {
namespace {

// The address sanitizer reserves terabytes of addresses, and a check of types reads through pipes.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PW_ALL_ADDRESSES 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(PW_ALL_ADDRESSES)
constexpr rlim_t kMostMemory = RLIM_INFINITY, kMostFiles = 64;
#else
constexpr rlim_t kMostMemory = rlim_t{4} << 30, kMostFiles = 0;
#endif
constexpr std::size_t kMostRewrites = 20'000;
constexpr std::string_view kRulesName = "<page>/rules.pwr";
static_assert(kRulesName.starts_with(kNoFile));

void limit(decltype(RLIMIT_CPU) what, rlim_t most) {
  const rlimit both{most, most};
  ::setrlimit(what, &both);
}

void give_up_rights(std::int64_t seconds) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  limit(RLIMIT_NOFILE, kMostFiles);  // opens no file from here on
  limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_AS, kMostMemory);
  limit(RLIMIT_CPU, static_cast<rlim_t>(seconds) + 1);
}

/// Returns "rules:4:3: …", or the file of the library.
std::string related_line(const FoundDiagnostic::Related& related) {
  const std::string file = related.file == kRulesName ? "rules" : related.file;
  return fmt::format("{}:{}:{}: {}", file, related.begin.line, related.begin.column, related.text);
}

PageProblem shown(const FoundDiagnostic& found, const SourceText& text) {
  const TextPlace begin = text.lines.place(found.begin, ColumnUnit::utf16);
  const TextPlace end = text.lines.place(std::max(found.begin, found.end), ColumnUnit::utf16);
  PageProblem out{std::string(name(found.severity)),
                  found.code,
                  found.message,
                  found.help,
                  "rules",
                  "",
                  begin.line,
                  begin.column,
                  end.line,
                  end.column,
                  {}};
  for (const FoundDiagnostic::Related& related : found.related)
    out.related.push_back(related_line(related));
  return out;
}

PageProblem shown(const Diagnostic& diagnostic, const SourceMap& sources, std::string where) {
  const PlacedDiagnostic d = placed(diagnostic, sources);
  std::string place = d.place.file.empty() ? d.inside : d.place.file;
  if (d.place.line > 0) place += fmt::format(":{}:{}", d.place.line, d.place.column);
  std::string message = d.message;
  if (!d.label.empty()) message += "\n" + d.label;
  for (const std::string& note : d.notes) message += "\nnote: " + note;
  if (!d.help.empty()) message += "\nhelp: " + d.help;
  return {std::string(name(d.severity)),
          d.code,
          message,
          d.help,
          std::move(where),
          place,
          0,
          0,
          0,
          0,
          {}};
}

/// Returns the items of the text that can be run, pipelines first; otherwise those of used files.
std::vector<PageAnswer::Strategy> strategies_of(const SourceText& text, const RuleSet& rules) {
  std::vector<PageAnswer::Strategy> out;
  const auto add = [&](Tok kind, const char* word) {
    for (const OutlineItem& item : text.mentions.items)
      if (item.kind == kind && !item.name.empty() && item.group < 0 &&
          rules.strategy(item.name) != nullptr)
        out.push_back({item.name, word});
  };
  add(Tok::pipeline, "pipeline");
  add(Tok::pass, "pass");
  add(Tok::rule, "rule");
  for (const auto& [pipeline, strategy] : rules.pipelines)
    if (std::none_of(out.begin(), out.end(), [&](const auto& s) { return s.name == pipeline; }))
      out.push_back({pipeline, "used pipeline"});
  return out;
}

/// Answers a request of kind run.
class Runner {
 public:
  Runner(const Ask& ask, const std::string& graph)
      : ask_(ask),
        graph_(graph),
        text_(std::make_shared<SourceText>(std::string(kRulesName), ask.share.rules)) {}

  /// Returns the picture; empty if there is none, or if the page already has it.
  std::string run(PageAnswer& answer) {
    const CheckJob job{
        "", std::string(kRulesName), 0, text_, {{real_path(kRulesName).string(), text_->text}}, ""};
    CheckedDocument checked = check_document(job);
    add(answer, checked.found);
    if (!checked.draft) return {};
    answer.strategies = strategies_of(*text_, checked.draft->rules);
    add(answer, analyse_document(job, *checked.draft).found);
    if (!ask_.share.graph) return {};
    return draw(checked.draft->rules, answer);
  }

 private:
  std::string draw(const RuleSet& rules, PageAnswer& answer) {
    const SourceMap& sources = rules.context->sources;
    GraphSource source;
    source.path = ask_.share.graph->name;
    source.symbols = ask_.share.graph->symbols;
    const auto read = read_graph(rules.context, graph_, source);
    if (!read) {
      for (const Diagnostic& d : read.error())
        answer.problems.push_back(shown(d, sources, "graph"));
      return {};
    }
    Log log;
    log.say = [&](const std::string& line) { answer.log.push_back(line); };
    say_import(*read, log);
    answer.ran = ask_.share.pipeline;
    if (answer.ran.empty() && !answer.strategies.empty() &&
        answer.strategies.front().kind != "used pipeline")
      answer.ran = answer.strategies.front().name;
    PictureRequest request;
    request.files = {std::string(kNoFile) + "graph"};
    request.graph.loaded = std::make_shared<const Graph>(read->graph);
    request.rules.loaded = std::make_shared<const RuleSet>(rules);
    request.rules.pipeline = answer.ran;
    request.most_rewrites = kMostRewrites;
    request.format = "html";
    log.warn = [&](const Diagnostics& warnings) { add_run(answer, warnings, sources); };
    auto picture = draw_picture(rules.context, request, log);
    if (!picture) {
      add_run(answer, picture.error(), sources);
      return {};
    }
    answer.picture = fmt::format("{:016x}", hash_text(*picture));
    return answer.picture == ask_.picture ? std::string() : std::move(*picture);
  }

  void add(PageAnswer& answer, const std::vector<FoundDiagnostic>& found) {
    for (const FoundDiagnostic& one : found) {
      PageProblem problem = shown(one, *text_);
      const auto same = [&](const PageProblem& p) {
        return p.line == problem.line && p.column == problem.column && p.message == problem.message;
      };
      if (std::none_of(answer.problems.begin(), answer.problems.end(), same))
        answer.problems.push_back(std::move(problem));
    }
  }
  /// Adds diagnostics of a run, in the rules if they have a location there.
  void add_run(PageAnswer& answer, const Diagnostics& diagnostics, const SourceMap& sources) {
    for (const Diagnostic& d : diagnostics) {
      if (d.span.valid() && sources.name(d.span.source) == kRulesName)
        add(answer, found_in(*text_, sources, {d}));
      else
        answer.problems.push_back(shown(d, sources, "run"));
    }
  }

  const Ask& ask_;
  const std::string& graph_;
  SourceTextPtr text_;
};

void refuse_file(PageAnswer& answer, const std::string& why, const std::string& help) {
  answer.problems.push_back({"error", "PW1603", why, help, "graph", "", 0, 0, 0, 0, {}});
}

void open_share(const Ask& ask, const std::string& content, PageAnswer& answer) {
  auto share = share_from_json(content, ask.file);
  if (share) {
    answer.opened = "share";
    answer.share = std::move(*share);
    return;
  }
  for (const Diagnostic& d : share.error())
    answer.problems.push_back(shown(d, SourceMap(), "graph"));
}

void open_graph(const Ask& ask, const std::string& content, PageAnswer& answer) {
  const auto context = std::make_shared<Context>();
  GraphSource source;
  source.path = ask.file;
  const auto read = read_graph(context, content, source);
  if (read) {
    answer.opened = "graph";
    return;
  }
  for (const Diagnostic& d : read.error())
    answer.problems.push_back(shown(d, context->sources, "graph"));
}

void open_file(const Ask& ask, const std::string& content, PageAnswer& answer) {
  if (!is_text(content)) {
    const std::string kind = file_kind(content);
    return refuse_file(
        answer, ask.file + " is " + (kind.empty() ? "not a text file" : kind),
        "the page opens dumps, graph.json, .pwg, rules and share files; convert others with `pwr "
        "import FILE -o model.json`");
  }
  const bool rules = ask.file.ends_with(".pwr");
  if (ask.file.ends_with(".share") || stated_format(content).starts_with("piecewise.share/"))
    return open_share(ask, content, answer);
  if (content.size() > (rules ? kMostRuleBytes : kMostGraphBytes))
    return refuse_file(answer,
                       fmt::format("{} has {} bytes, but the page accepts at most {}", ask.file,
                                   content.size(), rules ? kMostRuleBytes : kMostGraphBytes),
                       "pwviz draws larger ones");
  if (!rules) return open_graph(ask, content, answer);
  answer.opened = "rules";
  answer.share = Share{content, "", std::nullopt};
}

/// Reads the request and the graph.
std::optional<std::pair<std::string, std::string>> read_question() {
  FrameReader reader;
  std::vector<std::string> frames;
  char buffer[1 << 16];
  while (frames.size() < 2) {
    const std::size_t got = std::fread(buffer, 1, sizeof buffer, stdin);
    if (got == 0) return {};
    reader.feed({buffer, got});
    while (auto frame = reader.next()) frames.push_back(std::move(frame->content));
  }
  return std::pair(std::move(frames[0]), std::move(frames[1]));
}

std::string answer_ask(Ask& ask, std::string& graph, PageAnswer& answer) {
  if (ask.kind == Ask::Kind::run) return Runner(ask, graph).run(answer);
  if (ask.kind == Ask::Kind::open) {
    open_file(ask, graph, answer);
    return {};
  }
  if (ask.share.graph) ask.share.graph->text = std::move(graph);
  answer.document = share_to_json(ask.share);
  return {};
}

}  // namespace

int answer_one(std::int64_t seconds) {
  auto question = read_question();
  if (!question) return kInvalidInput;
  give_up_rights(seconds);
  PageAnswer answer;
  std::string picture;
  auto ask = ask_from_json(question->first);
  if (ask)
    picture = answer_ask(*ask, question->second, answer);
  else
    for (const Diagnostic& d : ask.error()) answer.problems.push_back(shown(d, SourceMap(), "run"));
  write_standard_output(framed(answer_to_json(answer)) + framed(picture));
  return kOk;
}

}  // namespace pw::cli
