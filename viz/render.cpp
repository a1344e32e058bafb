#include <algorithm>

#include "base/try.hpp"
#include "viz/formats/dot.hpp"
#include "viz/formats/graphviz.hpp"
#include "viz/formats/markdown.hpp"
#include "viz/formats/svg.hpp"
#include "viz/outline.hpp"
#include "viz/overlay.hpp"
#include "viz/viz.hpp"

namespace pw {
namespace {

struct Drawing {
  viz::UnionGraph graph;
  viz::Scene scene;
};

tl::unexpected<Diagnostics> no_picture(std::string message, std::string help = "") {
  return fail(error_in("the picture", "PW0902", std::move(message), std::move(help)));
}

/// Draws the chosen version, alone or with the version that it is compared with.
Result<Drawing> draw(const VizInput& input, const VizOptions& options) {
  if (input.versions.empty()) return no_picture("there is no graph to draw");
  const std::size_t count = input.versions.size();
  const std::size_t version = options.version.value_or(count - 1);
  const std::size_t against = options.against.value_or(version);
  if (version >= count || against >= count)
    return no_picture("there is no version " + std::to_string(std::max(version, against)),
                      "the versions are 0.." + std::to_string(count - 1));
  std::vector<const Version*> versions;
  if (against != version) versions.push_back(&input.versions[against]);
  versions.push_back(&input.versions[version]);
  Drawing drawing;
  drawing.graph = viz::unite(versions, input.related);
  const viz::Folding folding =
      viz::fold(drawing.graph, viz::link(drawing.graph, input.related, options.progress), input,
                options.view == View::all ? Collapse::none : options.collapse);
  const viz::SceneForm form{versions.size() > 1, options.view == View::overview,
                            options.view == View::changes};
  drawing.scene = viz::make_scene(drawing.graph, folding, options.most_boxes, form);
  if (options.overlay != nullptr) viz::shade_boxes(drawing.scene, drawing.graph, *options.overlay);
  const std::string& pass = input.versions[version].pass;
  if (!pass.empty() && count > 1)
    drawing.scene.title += versions.size() == 1
                               ? " · after " + pass
                               : " · " + input.versions[against].pass + " → " + pass;
  return drawing;
}

/// Uses Graphviz's dot for small pictures that are neither very tall nor very wide, within the
/// deadline; otherwise the built-in layout, which Graphviz only draws.
Result<std::string> render_with(const VizInput& input, const VizOptions& options,
                                const char* format) {
  constexpr std::size_t kDotBoxes = 300;
  constexpr int kDrawing_ms = 60'000;
  auto drawing = PW_TRY(draw(input, options));
  viz::Scene& scene = drawing.scene;
  const bool titles = std::string_view(format) == "svg";
  const auto finish = [&](Result<std::string> picture) -> Result<std::string> {
    if (!picture || !titles) return picture;
    return viz::put_titles(*picture, scene);
  };
  const viz::ScenePlaces places = viz::place_scene(scene);
  const bool reshaped = places.columns || places.folded;  // which dot does not do
  std::string reason;
  if (scene.boxes.size() <= kDotBoxes && !reshaped) {
    auto picture = viz::lay_out(viz::to_dot(scene, false), format, options.deadline_ms);
    if (picture || picture.error().front().code != viz::kTooSlow) return finish(picture);
    reason = ", since dot took longer than " + std::to_string(options.deadline_ms) + " ms";
  }
  scene.caption += (places.columns ? "; laid out in columns" : "; laid out in layers") + reason;
  if (places.stubs > 0)
    scene.caption += "; of " + viz::grouped_digits(places.stubs) +
                     (places.stubs == 1 ? " edge" : " edges") + " from far above" +
                     (places.columns ? " or another column" : "") +
                     " only the ends, whose titles name them";
  return finish(viz::lay_out(viz::to_dot(scene, false, &places), format, kDrawing_ms, "nop2"));
}

}  // namespace

std::optional<Collapse> collapse_named(std::string_view name) {
  if (name == "auto") return Collapse::automatic;
  if (name == "none") return Collapse::none;
  if (name == "pieces") return Collapse::pieces;
  if (name == "layers") return Collapse::layers;
  return std::nullopt;
}

Result<std::string> render_dot(const VizInput& input, const VizOptions& options) {
  auto drawing = PW_TRY(draw(input, options));
  return viz::to_dot(drawing.scene);
}

Result<std::string> render_outline(const VizInput& input, const VizOptions& options) {
  auto drawing = PW_TRY(draw(input, options));
  return viz::to_outline(drawing.graph, drawing.scene, options.color);
}

Result<std::string> render_markdown(const VizInput& input, const VizOptions& options) {
  auto drawing = PW_TRY(draw(input, options));
  return viz::to_markdown(drawing.graph, drawing.scene);
}

Result<std::string> render_svg(const VizInput& input, const VizOptions& options) {
  return render_with(input, options, "svg");
}
Result<std::string> render_png(const VizInput& input, const VizOptions& options) {
  return render_with(input, options, "png");
}
Result<std::string> render_pdf(const VizInput& input, const VizOptions& options) {
  return render_with(input, options, "pdf");
}

}  // namespace pw
