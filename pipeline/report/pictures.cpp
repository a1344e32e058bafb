#include "pipeline/report/pictures.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/io/file.hpp"
#include "base/io/file_kind.hpp"
#include "base/io/standard_output.hpp"
#include "base/try.hpp"
#include "pipeline/explain.hpp"
#include "viz/named_journal.hpp"

namespace pw {
namespace {

tl::unexpected<Diagnostics> no_graphs(const std::string& why, const std::string& help = {}) {
  return fail(error_at({}, "PW1431", why, help));
}

/// Returns the graphs of a folder (or of the folder of a journal), ordered by name, or the file
/// itself.
Result<std::vector<std::string>> graph_files(const std::string& given) {
  const bool journal = std::filesystem::path(given).extension() == ".jsonl";
  std::string path = journal ? std::filesystem::path(given).parent_path().string() : given;
  if (journal && path.empty()) path = ".";
  if (journal && !std::filesystem::exists(given))
    return no_graphs("there is no journal `" + given + "`",
                     "`pwr opt --trace DIR` writes DIR/journal.jsonl");
  if (!journal && !std::filesystem::is_directory(path)) return std::vector<std::string>{path};
  std::vector<std::string> out;
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator(path, unreadable))
    if (entry.path().extension() == ".pwg" || entry.path().extension() == ".json" ||
        entry.path().extension() == ".pwb")
      out.push_back(entry.path().string());
  std::sort(out.begin(), out.end());
  if (unreadable)
    return no_graphs("cannot read the folder `" + path + "`: " + unreadable.message());
  if (out.empty())
    return no_graphs("the folder `" + path + "` contains no graph (.pwg, .json, .pwb)",
                     "`pwr opt --trace DIR` writes such a folder");
  return out;
}

/// Returns the journal in the folder of a trace, if there is one.
std::string journal_beside(const std::vector<std::string>& files) {
  if (files.size() < 2) return {};
  const auto path = std::filesystem::path(files.front()).parent_path() / "journal.jsonl";
  return std::filesystem::exists(path) ? path.string() : std::string();
}

/// "03-norm_quant.pwg" of a trace → "norm_quant".
std::string pass_in_name(const std::string& file, bool trace) {
  const std::string stem = std::filesystem::path(file).stem().string();
  const std::size_t dash = stem.find('-');
  const bool numbered =
      dash != std::string::npos && dash > 0 && stem.find_first_not_of("0123456789") == dash;
  return trace && numbered ? stem.substr(dash + 1) : stem;
}

Result<std::optional<std::size_t>> version_after(const std::vector<Version>& versions,
                                                 const std::string& pass) {
  if (pass.empty()) return std::optional<std::size_t>();
  std::vector<std::string> names;
  for (std::size_t i = 0; i < versions.size(); ++i) {
    if (versions[i].pass == pass || std::to_string(i) == pass) return std::optional(i);
    names.push_back(versions[i].pass);
  }
  return fail(error_at({}, "PW1425", fmt::format("there is no pass `{}`", pass),
                       fmt::format("there are: {}", fmt::join(names, ", "))));
}

/// The contents of a picture, with everything that they refer to.
class Picture {
 public:
  Picture(const ContextPtr& context, const PictureRequest& request, const Log& log)
      : context_(context), request_(request), log_(log) {}

  Result<std::string> draw() {
    PW_TRY(load());
    if (!request_.rules.pipeline.empty()) PW_TRY(rewrite_the_graph());
    VizOptions viz = PW_TRY(options());
    const bool last = !viz.version || *viz.version + 1 == input_.versions.size();
    if (request_.split && last) PW_TRY(cut_and_plan_last());
    log_.progress({"drawing"});
    if (wants_page() && !request_.rules.pipeline.empty()) {
      misses_ = near_misses_of(input_.versions.back().graph, *rules_, input_.versions);
      input_.misses = &misses_;
    }
    if (!request_.format.empty()) return render_as("picture." + request_.format, input_, viz);
    const bool text = request_.output.empty() || names_stream(request_.output);
    return text ? render_outline(input_, viz) : render_as(request_.output, input_, viz);
  }

 private:
  Status load() {
    std::vector<std::string> files;
    for (const std::string& path : request_.files)
      for (std::string& file : PW_TRY(graph_files(path))) files.push_back(std::move(file));
    rules_ = PW_TRY(load_rules(context_, request_.rules, log_));
    const std::string journal = request_.files.size() == 1 ? journal_beside(files) : "";
    for (const std::string& file : files) {
      GraphSource one = request_.graph;
      one.path = file;
      input_.versions.push_back(
          {pass_in_name(file, !journal.empty()), PW_TRY(load_logged_graph(context_, one, log_))});
    }
    input_.related = files.size() == 1;
    if (journal.empty()) return {};
    named_ = PW_TRY(named_journal_from_json(PW_TRY(read_file(journal)), journal));
    input_.named_journal = &named_;
    input_.rules = &rules_->set;
    return {};
  }

  Status rewrite_the_graph() {
    const std::size_t graphs = input_.versions.size();
    if (graphs != 1)
      return fail(
          error_at({}, "PW1427", "-p rewrites one graph, but there are " + std::to_string(graphs)));
    Graph graph = std::move(input_.versions.front().graph);
    input_.versions.clear();
    RewriteOptions watched;
    watched.limits.rewrites = request_.most_rewrites;
    watched.stats = wants_page();
    watched.after_pass = [&](const std::string& pass, const Graph& g) {
      input_.versions.push_back({pass, g});
    };
    report_ = PW_TRY(rewrite(graph, *rules_, request_.rules.pipeline, watched, log_));
    if (!request_.times) report_.journal = without_times(report_.journal);
    input_.journal = &report_.journal;
    if (wants_page()) input_.tried = &report_.passes;
    input_.rules = &rules_->set;
    return {};
  }

  [[nodiscard]] std::string type() const {
    const std::string type = request_.format.empty()
                                 ? std::filesystem::path(request_.output).extension().string()
                                 : "." + request_.format;
    return type.empty() ? "an outline" : type;
  }
  [[nodiscard]] bool wants_page() const { return type() == ".html" || type() == ".htm"; }
  [[nodiscard]] bool is_text() const {
    const bool outline = request_.output.empty() || names_stream(request_.output);
    return (outline && request_.format.empty()) || type() == ".txt" || type() == ".md" ||
           type() == ".json";
  }

  Result<VizOptions> options() {
    VizOptions viz = request_.viz;
    viz.progress = progress_to(log_, "the picture");
    if (!request_.overlay.empty()) {
      overlay_ = PW_TRY(overlay_from_json(
          PW_TRY(read_text_file(request_.overlay, "a JSON object of numbers")), request_.overlay));
      overlay_.title = std::filesystem::path(request_.overlay).stem().string();
      if (is_text()) log_.say("the overlay is omitted: " + type() + " has no colors");
      viz.overlay = &overlay_;
    }
    viz.version = PW_TRY(version_after(input_.versions, request_.pass));
    if (input_.versions.size() > 1 && viz.version.value_or(1) > 0) viz.against = 0;
    return viz;
  }

  Status cut_and_plan_last() {
    const Graph& last = input_.versions.back().graph;
    pieces_ = PW_TRY(cut_graph(last, *rules_, request_.plan));
    input_.pieces = &*pieces_;
    if (!last.facts.tokens().empty()) {
      plan_ = PW_TRY(plan_graph(*pieces_, last, *rules_, request_.plan, log_));
      input_.plan = &*plan_;
    }
    log_.say(split_summary(*pieces_));
    return {};
  }

  const ContextPtr& context_;
  const PictureRequest& request_;
  const Log& log_;
  VizInput input_;
  std::optional<LoadedRules> rules_;
  std::vector<NamedRewrite> named_;
  RewriteReport report_;
  PageMisses misses_;
  Overlay overlay_;
  std::optional<StitchedGraph> pieces_;
  std::optional<Plan> plan_;
};

}  // namespace

Result<std::string> draw_picture(const ContextPtr& context, const PictureRequest& request,
                                 const Log& log) {
  return Picture(context, request, log).draw();
}

}  // namespace pw
