#include "viz/formats/svg.hpp"

#include <optional>

#include "base/parse_number.hpp"

namespace pw::viz {
namespace {

/// Returns 12 for "b12" and the prefix 'b'.
std::optional<std::size_t> number_of(std::string_view id, char prefix) {
  return id.starts_with(prefix) ? parse_number<std::size_t>(id.substr(1)) : std::nullopt;
}

std::string title_of(std::string_view id, const Scene& scene) {
  if (const auto i = number_of(id, 'b'); i && *i < scene.boxes.size())
    return scene.boxes[*i].tooltip;
  if (const auto i = number_of(id, 'e'); i && *i < scene.edges.size())
    return scene.edges[*i].tooltip;
  if (const auto i = number_of(id, 'c'); i && *i < scene.clusters.size())
    return scene.clusters[*i].tooltip;
  return scene.title;
}

}  // namespace

std::string xml_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string put_titles(std::string_view svg, const Scene& scene) {
  constexpr std::string_view kGroup = "<g id=\"", kOpen = "<title>", kClose = "</title>";
  std::string out;
  std::size_t done = 0;
  while (true) {
    const std::size_t group = svg.find(kGroup, done);
    if (group == std::string_view::npos) break;
    const std::size_t id = group + kGroup.size(), id_end = svg.find('"', id);
    const std::size_t title = svg.find(kOpen, id_end), title_end = svg.find(kClose, id_end);
    if (title_end == std::string_view::npos || title > title_end) break;
    out += svg.substr(done, title + kOpen.size() - done);
    out += xml_escaped(title_of(svg.substr(id, id_end - id), scene));
    done = title_end;
  }
  out += svg.substr(done);
  return out;
}

}  // namespace pw::viz
