#include "viz/viz.hpp"

namespace pw {

Result<std::string> render_as(const std::string& path, const VizInput& input,
                              const VizOptions& options) {
  if (path.ends_with(".me.json")) return render_model_explorer(input, options);
  if (path.ends_with(".sync.json")) return render_model_explorer_sync(input, options);
  const std::size_t dot = path.rfind('.');
  const std::string extension = dot == std::string::npos ? "" : path.substr(dot + 1);
  if (extension == "dot" || extension == "gv") return render_dot(input, options);
  if (extension == "svg") return render_svg(input, options);
  if (extension == "png") return render_png(input, options);
  if (extension == "pdf") return render_pdf(input, options);
  if (extension == "txt") return render_outline(input, options);
  if (extension == "md") return render_markdown(input, options);
  if (extension == "html" || extension == "htm") return render_html(input, options);
  return fail(error_in(
      "the picture", "PW0903", "unknown picture format `" + path + "`",
      "the extensions are .dot .gv .svg .png .pdf .html .htm .txt .md .me.json .sync.json"));
}

}  // namespace pw
