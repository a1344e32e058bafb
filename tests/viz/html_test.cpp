#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/viz/decoder.hpp"
#include "viz/formats/report.hpp"
#include "viz/formats/svg.hpp"
#include "viz/viz.hpp"

using namespace pw;
using pw::test::Decoder;

namespace {

nlohmann::json data_of(const std::string& html) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = html.find(open) + open.size();
  return nlohmann::json::parse(html.substr(begin, html.find("</script>", begin) - begin));
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

}  // namespace

TEST_CASE("html: one page with every version, its counts and the origin of each box", "[viz]") {
  Decoder d(4);
  const Graph before = d.graph;
  d.fuse();
  RuleSet rules;
  rules.context = d.context;
  Rule rule;
  rule.name = "add_rms";
  rule.name_span = {d.context->sources.add("norm.pwr", "\n\nrule add_rms"), 7, 14};
  rules.rules.push_back(rule);
  Journal journal;
  journal.add(PassBegin{"fuse", 0, before.node_count()});
  d.record_fusions(journal);
  journal.add(PassEnd{"fuse", 0, d.graph.node_count(), 0.25});
  journal.add(PassBegin{"idle", 0, 0});
  journal.add(PassEnd{"idle", 0, 0, 0});
  const StitchedGraph pieces = d.cut({"attention"});
  const auto plan = make_plan(pieces, d.graph, {});
  REQUIRE(plan.has_value());
  const auto html = render_html({{{"input", before}, {"fuse", d.graph}, {"idle", d.graph}},
                                 &pieces,
                                 &*plan,
                                 &journal,
                                 &rules});
  REQUIRE(html.has_value());
  CHECK(html->find("http://") == html->find("http://www.w3.org"));  // namespaces only
  const nlohmann::json data = data_of(*html);
  REQUIRE(data["steps"].size() == 3);
  CHECK(data["steps"][1]["added"] == 8);
  CHECK(data["steps"][1]["removed"] == 16);
  CHECK(data["steps"][1]["matches"] == 8);
  CHECK(data["steps"][1]["ms"] == 250.0);
  CHECK(data["steps"][1]["rules"] == "add_rms ×8");
  CHECK(data["steps"][1]["hidden"] == false);
  CHECK(data["steps"][2]["hidden"] == true);
  REQUIRE(data["rules"].size() == 1);
  CHECK(data["rules"][0]["name"] == "add_rms");
  CHECK(data["rules"][0]["file"] == "norm.pwr");
  CHECK(data["rules"][0]["line"] == 3);
  // Each: rule, version, two matched, one made, two gone, no bindings.
  const std::vector<int> rewrites = data["rewrites"];
  REQUIRE(rewrites.size() == 8 * 11);
  CHECK(rewrites[0] == 0);
  CHECK(rewrites[1] == 1);
  CHECK(rewrites[2] == 2);
  CHECK(rewrites[5] == 1);
  CHECK(rewrites[7] == 2);
  CHECK(rewrites[3] == rewrites[8]);  // the matched nodes are the removed ones
  CHECK(rewrites[10] == 0);
  CHECK(data["classes"].size() == 4);
  CHECK(data["plan"]["sizes"].size() == 51);
}

TEST_CASE("html: no name breaks out of the page", "[viz]") {
  const std::string evil =
      "</script><script>alert(1)</script><img src=x onerror=alert(2)>]]>'\"\xe2\x80\xa8";
  Decoder d(1);
  d.graph.name = evil;
  d.graph.add_output(d.in_group(evil, d.one(evil, {d.input(evil)})));
  const auto html = render_html({{{evil, d.graph}}});
  REQUIRE(html.has_value());
  CHECK(occurrences(*html, "<script") == 2);
  CHECK(occurrences(*html, "</script>") == 2);
  CHECK(html->find("<img") == std::string::npos);
  CHECK(data_of(*html)["title"] == evil);
}

TEST_CASE("html: every node is in the page, however much of it is folded", "[viz]") {
  Decoder d(30);
  for (const Collapse collapse : {Collapse::automatic, Collapse::none}) {
    const auto html = render_html({{{"input", d.graph}}}, {.collapse = collapse});
    REQUIRE(html.has_value());
    const nlohmann::json data = data_of(*html);
    CHECK(data["op"].size() == 332);
    CHECK(data["whole"].contains("unfolded") == (collapse == Collapse::automatic));
  }
}

TEST_CASE("html: a big model stays small", "[viz]") {
  Decoder d(1500);
  const auto html = render_html({{{"input", d.graph}}});
  REQUIRE(html.has_value());
  CHECK(html->size() < 3'000'000);
  CHECK(data_of(*html)["op"].size() == 16'502);
}

TEST_CASE("svg: titles are the tooltips", "[viz]") {
  Decoder d(2);
  const auto svg = render_svg({{{"input", d.graph}}});
  REQUIRE(svg.has_value());
  CHECK(svg->find("<title>b0</title>") == std::string::npos);
  CHECK(svg->find("used by rms_norm") != std::string::npos);
}

TEST_CASE("html: the sections of a report are tabs of the page", "[viz]") {
  Decoder d(1);
  Report report;
  report.verdict = "all outputs <agree>";
  report.sections = {
      {"Environment & command", {ReportTable{{"what", "value"}, {{"a<b", "12"}}, ""}}},
      {"Numbers", {ReportText{{"first"}}}}};
  VizInput input{{{"input", d.graph}}};
  input.report = &report;
  const auto html = render_html(input);
  REQUIRE(html.has_value());
  CHECK(html->find("✓ all outputs &lt;agree&gt;") != std::string::npos);
  CHECK(html->find("id=\"report-0\" data-title=\"Environment &amp; command\"") !=
        std::string::npos);
  CHECK(html->find("<td>a&lt;b</td><td class=\"n\">12</td>") != std::string::npos);
  CHECK(html->find("id=\"report-1\" data-title=\"Numbers\"") < html->find("id=\"graph\""));
}
