// Exports render_html: the union of all versions, laid out once, in a page that needs nothing else.
#include "viz/dot.hpp"
#include "viz/graphviz.hpp"
#include "viz/page.hpp"
#include "viz/report.hpp"
#include "viz/svg.hpp"

namespace pw {
namespace {

/// What can be said of a page whose layout took too long: everything but the picture.
std::string without_picture(const Diagnostics& errors) {
  std::string text = "<p class=\"problem\">No picture: ";
  for (const Diagnostic& error : errors) text += viz::xml_escaped(error.message) + ". ";
  return text + "The table below has every box.</p>";
}

/// Sections of a report come first: who opens the page wants to know what happened.
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
  return std::string("<p class=\"verdict ") + (report.good ? "good\">✓ " : "bad\">✗ ") +
         viz::xml_escaped(report.verdict) + "</p>";
}

std::string page(const std::string& title, const Report* report, const std::string& picture,
                 const std::string& data) {
  std::string out = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  // Whatever the graph's names hold, this page loads nothing.
  out +=
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; "
      "script-src 'unsafe-inline'; img-src data:\">\n";
  out += "<title>" + viz::xml_escaped(title) + "</title>\n<style>" + std::string(viz::kPageStyle) +
         "</style>\n</head>\n";
  out += "<body>\n<header><h1></h1><p id=\"caption\"></p>" +
         (report != nullptr ? verdict(*report) : std::string()) + "</header>\n";
  out += "<nav role=\"tablist\"></nav>\n";
  if (report != nullptr) out += report_tabs(*report);
  out += "<section role=\"tabpanel\" id=\"graph\" data-title=\"Graph\"><main><div id=\"picture\">" +
         picture + "</div>\n<aside id=\"side\"></aside></main></section>\n";
  out +=
      "<section role=\"tabpanel\" id=\"boxes\" data-title=\"Table\"><div "
      "id=\"table\"></div></section>\n";
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
  const viz::Folding folding = viz::fold(graph, input, options.collapse);
  const viz::Scene scene = viz::make_scene(graph, folding, options.most_boxes, false);
  const viz::Timeline timeline = viz::make_timeline(input, graph, scene);
  auto svg = viz::lay_out(viz::to_dot(scene, false), "svg", options.deadline_ms);
  const std::string picture =
      svg ? viz::svg_element(viz::put_titles(*svg, scene), true) : without_picture(svg.error());
  return page(scene.title, input.report, picture,
              viz::page_data_json(input, graph, scene, timeline));
}

}  // namespace pw
