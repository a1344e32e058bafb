// Writes columns of numbers and a table of texts: a hundred thousand nodes take a few megabytes.
#include <nlohmann/json.hpp>

#include "viz/formats/page_writer.hpp"
#include "viz/label.hpp"
#include "viz/overlay.hpp"

namespace pw::viz {
namespace {

using Json = nlohmann::ordered_json;

void put_overlay(PageWriter& page, const PageParts& in) {
  const Overlay* overlay = in.options.overlay;
  if (overlay == nullptr) return;
  Json nodes = Json::array(), numbers = Json::array();
  for (const auto& [at, number] : numbers_of(in.graph, *overlay)) {
    nodes.push_back(at);
    numbers.push_back(number);
  }
  page.put("overlay", dump(Json{{"title", clean(overlay->title)},
                                {"given", overlay->numbers.size()},
                                {"nodes", nodes},
                                {"numbers", numbers}}));
}

std::string escape_for_script(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '<')
      out += "\\u003c";
    else if (c == '>')
      out += "\\u003e";
    else if (c == '&')
      out += "\\u0026";
    else if (json.compare(i, 3, "\xe2\x80\xa8") == 0 || json.compare(i, 3, "\xe2\x80\xa9") == 0) {
      out += json[i + 2] == '\xa8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else
      out += c;
  }
  return out;
}

}  // namespace

std::string page_data_json(const PageParts& parts) {
  PageWriter page;
  ValueNumbers references(parts.graph, parts.links, page);
  page.put("title", dump(Json(clean(parts.graph.versions.back()->graph.name))));
  page.put("folding", dump(Json(parts.folding.reason)));
  page.put("most", std::to_string(parts.options.most_boxes));
  page.put("view", dump(Json(std::string(name(parts.options.view)))));
  if (parts.options.version) page.put("version", std::to_string(*parts.options.version));
  put_timeline(page, parts);
  put_graph(page, references, parts);
  put_places(page, parts);
  put_rules(page, references, parts);
  put_pieces_and_plan(page, parts);
  put_overlay(page, parts);
  page.put("templates", dump(Json(page.texts().templates())));
  page.put("texts", print(page.texts().codes()));
  return escape_for_script(page.finish());
}

}  // namespace pw::viz
