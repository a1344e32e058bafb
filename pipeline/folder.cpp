#include "pipeline/folder.hpp"

#include <filesystem>

#include <fmt/format.h>

#include "base/characters.hpp"
#include "base/io/file.hpp"
#include "base/io/standard_output.hpp"
#include "base/printable.hpp"
#include "base/try.hpp"
#include "codegen/cache/digest.hpp"
#include "dsl/graph_formats.hpp"
#include "engines/run_given.hpp"
#include "graph/text/graph_binary.hpp"
#include "graph/text/text.hpp"
#include "tensor/safetensors.hpp"

namespace pw {
namespace {

/// Returns a pass name as part of a file name; long names end in a digest to stay distinct.
std::string file_name(const std::string& pass) {
  constexpr std::size_t kMostBytes = 60, kDigest = 8;
  std::string name;
  for (char c : pass) name += is_in_name(c) || c == '-' ? c : '_';
  if (name.size() <= kMostBytes) return name;
  return name.substr(0, kMostBytes - kDigest - 1) + "-" + sha256(pass).substr(0, kDigest);
}

}  // namespace

Status make_folder(const std::string& path) {
  if (names_stream(path))
    return fail(error_in(path, "PW1410", "this is not a folder, but several files must be written",
                         "name a folder; it is created if it does not exist"));
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return fail(error_in(path, "PW0001", "cannot create the folder: " + error.message()));
  return {};
}

Result<SavedGraph> save_graph(const Graph& graph, const std::string& path, bool as_json) {
  if (const GraphFormat* format = format_to_write(path)) {
    const WrittenGraph written = PW_TRY(format->write(graph));
    PW_TRY(write_file(path, written.bytes));
    return SavedGraph{"", written.custom};
  }
  if (path.ends_with(".pwb"))
    PW_TRY(write_file(path, graph_to_binary(graph)));
  else if (as_json)
    PW_TRY(write_file(path, printable_json(graph_to_json(graph))));
  else
    PW_TRY(write_file(path, path.ends_with(".json") ? graph_to_json(graph) : print_pwg(graph)));
  return SavedGraph{};
}

Result<SavedGraph> save_model(const Graph& graph, const std::string& path, bool as_json) {
  SavedGraph out = PW_TRY(save_graph(graph, path, as_json));
  if (!graph.contents || graph.contents->empty() || format_to_write(path) != nullptr ||
      names_stream(path))
    return out;
  const GivenInputs tensors = contents_of_inputs(graph);
  std::vector<std::pair<std::string, TensorView>> named;
  for (const auto& [name, tensor] : tensors) named.emplace_back(name, tensor.view());
  out.weights = std::filesystem::path(path).replace_extension(".weights.safetensors").string();
  PW_TRY(write_file(out.weights, safetensors_text(std::move(named))));
  return out;
}

Result<Trace> Trace::make(std::string folder) {
  PW_TRY(make_folder(folder));
  return Trace(std::move(folder));
}

Status Trace::add(const std::string& pass, const Graph& graph) {
  PW_TRY(save_graph(graph, fmt::format("{}/{:02}-{}.pwg", folder_, count_++, file_name(pass))));
  return {};
}

Status Trace::finish(const RewriteReport& report, const Graph& graph, const RuleSet& rules) const {
  return write_file(folder_ + "/journal.jsonl",
                    journal_to_json_lines(report.journal, graph, rules));
}

}  // namespace pw
