// Lays out the union of all versions once, in a self-contained page.
#include <fmt/format.h>

#include "viz/formats/report.hpp"
#include "viz/formats/svg.hpp"
#include "viz/label.hpp"
#include "viz/page.hpp"

namespace pw {
namespace {

/// Puts sections of a report first: they summarize the run.
std::string report_tabs(const Report& report) {
  std::string out;
  for (std::size_t i = 0; i < report.sections.size(); ++i) {
    const ReportSection& section = report.sections[i];
    out += "<section role=\"tabpanel\" class=\"report\" id=\"report-" + std::to_string(i) +
           "\" data-title=\"" + viz::xml_escaped(section.title) + "\">" + section_html(section) +
           "</section>\n";
  }
  return out;
}

std::string verdict(const Report& report) {
  if (report.verdict.empty()) return {};
  const char* mark = !report.good ? "bad\">✗ " : report.ran ? "good\">✓ " : "neutral\">– ";
  std::string out =
      std::string("<p class=\"verdict ") + mark + viz::xml_escaped(report.verdict) + "</p>";
  if (report.failure.empty() && report.next.empty()) return out;
  out += "<div class=\"failure\">";
  if (!report.failure.empty()) out += "<pre>" + viz::xml_escaped(report.failure) + "</pre>";
  if (!report.next.empty())
    out += "<pre class=\"command\">" + viz::xml_escaped(report.next) + "</pre>";
  return out + "</div>";
}

/// Adds an empty panel for each view of views.def that is a tab and has its data.
std::string view_panels(const VizInput& input) {
  constexpr bool nothing = true;
  const bool journal = input.journal != nullptr || input.named_journal != nullptr;
  const bool misses = input.misses != nullptr;
  const bool pieces = input.pieces != nullptr, plan = input.plan != nullptr;
  std::string out;
  // Hidden until its tab is opened, which fills it.
  const auto add = [&](std::string_view id, std::string_view title, bool present) {
    if (present && !title.empty())
      out += fmt::format(
          "<section role=\"tabpanel\" id=\"{}\" data-title=\"{}\" hidden></section>\n", id, title);
  };
#define PW_VIEW(name, title, needs) add(#name, title, needs);
#include "viz/views.def"
#undef PW_VIEW
  return out;
}

std::string page(const std::string& title, const VizInput& input, const std::string& data) {
  std::string out = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  // Names of the graph cannot make this page load anything.
  out +=
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; "
      "script-src 'unsafe-inline'; img-src data:\">\n";
  out += "<title>" + viz::xml_escaped(title) + "</title>\n<style>" + std::string(viz::kPageStyle) +
         "</style>\n</head>\n";
  out += "<body>\n<header><h1></h1><p id=\"caption\" role=\"status\"></p>" +
         (input.report != nullptr ? verdict(*input.report) : std::string()) +
         "</header>\n<p id=\"announcement\" role=\"status\" class=\"unseen\"></p>\n";
  out += "<nav role=\"tablist\"></nav>\n";
  if (input.report != nullptr) out += report_tabs(*input.report);
  out += view_panels(input);
  out += "<script type=\"application/json\" id=\"data\">" + data + "</script>\n";
  out += "<script>" + std::string(viz::kPageScript) + "</script>\n</body>\n</html>\n";
  return out;
}

}  // namespace

Result<std::string> render_html(const VizInput& input, const VizOptions& options) {
  if (input.versions.empty())
    return fail(error_in("the picture", "PW0902", "there is no graph to draw"));
  std::vector<const Version*> versions;
  for (const Version& version : input.versions) versions.push_back(&version);
  const viz::UnionGraph graph = viz::unite(std::move(versions), input.related);
  if (graph.nodes.size() > options.most_page_nodes)
    return fail(
        error_in("the picture", "PW0906",
                 "a page of " + std::to_string(graph.nodes.size()) +
                     " nodes exceeds the limit of a browser: at most " +
                     std::to_string(options.most_page_nodes),
                 "`--view overview -o x.svg` draws its groups; .txt and .md have no limit"));
  const viz::Links links = viz::link(graph, input.related, options.progress);
  const viz::Folding folding = viz::fold(graph, links, input, options.collapse);
  const viz::Placement placement = viz::place(graph, links, folding, options.progress);
  const viz::Timeline timeline = viz::make_timeline(input, graph, links);
  return page(viz::clean(input.versions.back().graph.name), input,
              viz::page_data_json({input, options, graph, links, folding, placement, timeline}));
}

}  // namespace pw
