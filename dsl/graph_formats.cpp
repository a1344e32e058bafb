#include "dsl/graph_formats.hpp"

#include <algorithm>

#include "base/io/file.hpp"
#include "base/io/file_kind.hpp"
#include "base/try.hpp"
#include "graph/captured/captured_graph.hpp"
#include "graph/text/graph_binary.hpp"

namespace pw {
namespace {

bool looks_like_json(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  return first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
}

Result<ReadGraph> wrapped(Result<Graph> graph) {
  if (!graph) return forward(graph);
  return ReadGraph{std::move(*graph), {}};
}

Result<ReadGraph> read_json(const ContextPtr& context, const std::string& text,
                            const FxOptions& options) {
  const std::string format = stated_format(text);
  if (format.starts_with("piecewise.") && !format.starts_with("piecewise.graph/"))
    return fail(error_in(options.file, "PW0481", "this is a JSON document of the format " + format,
                         "a graph's `format` is piecewise.graph/1"));
  return wrapped(graph_from_json(context, text, options.file, parse_op, options.progress));
}

Result<ReadGraph> read_binary(const ContextPtr& context, const std::string& bytes,
                              const FxOptions& options) {
  return wrapped(graph_from_binary(context, bytes, options.file, parse_op, options.progress));
}

Result<ReadGraph> read_captured(const ContextPtr& context, const std::string& text,
                                const FxOptions& options) {
  return wrapped(graph_of(context, PW_TRY(captured_from_json(text, options.file))));
}

std::string format_names() {
  std::string out;
  for (const GraphFormat& format : graph_formats())
    out += (out.empty() ? "" : ", ") + std::string(format.name);
  return out;
}

Result<ReadGraph> read_pwg(const ContextPtr& context, const std::string& text,
                           const FxOptions& options) {
  if (const std::string known = known_as(text); !known.empty())
    return fail(error_in(options.file, "PW0481", "this is " + known,
                         "graphs are read as " + format_names()));
  return wrapped(parse_graph(context, text, options.file));
}

}  // namespace

GraphFormat binary_format() { return {".pwb", looks_like_binary_graph, read_binary}; }
GraphFormat captured_format() {
  return {"a captured CUDA graph", looks_like_captured, read_captured};
}
GraphFormat json_format() { return {"graph.json", looks_like_json, read_json}; }
GraphFormat pwg_format() {
  return {".pwg", [](std::string_view) { return true; }, read_pwg};
}

#if PW_HAVE_IMPORT
#define PW_IMPORTED_FORMAT(name) PW_GRAPH_FORMAT(name)
#else
#define PW_IMPORTED_FORMAT(name)
#endif
#define PW_GRAPH_FORMAT(name) GraphFormat name##_format();
#include "dsl/graph_formats.def"
#undef PW_GRAPH_FORMAT

const std::vector<GraphFormat>& graph_formats() {
  static const std::vector<GraphFormat> formats{
#define PW_GRAPH_FORMAT(name) name##_format(),
#include "dsl/graph_formats.def"
#undef PW_GRAPH_FORMAT
  };
  return formats;
}

const GraphFormat* format_with_tensors(std::string_view bytes) {
  for (const GraphFormat& format : graph_formats())
    if (format.tensors != nullptr && format.recognise(bytes)) return &format;
  return nullptr;
}

const GraphFormat* format_to_write(std::string_view path) {
  for (const GraphFormat& format : graph_formats())
    if (format.write != nullptr && path.ends_with(format.extension)) return &format;
  return nullptr;
}

Result<ReadGraph> read_graph(const ContextPtr& context, const std::string& text,
                             const FxOptions& options) {
  PW_TRY(load_op_library(context));
  const std::vector<GraphFormat>& formats = graph_formats();
  const auto found = std::find_if(formats.begin(), formats.end(), [&](const GraphFormat& format) {
    return format.recognise(text);
  });
  return found->read(context, text, options);
}

Result<Graph> load_graph(const ContextPtr& context, const std::string& path) {
  auto text = PW_TRY(read_file(path));
  FxOptions options;
  options.file = path;
  auto read = PW_TRY(read_graph(context, text, options));
  return std::move(read.graph);
}

}  // namespace pw
