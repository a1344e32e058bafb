// Folders that several files are written into.
#pragma once

#include <string>

#include "base/diagnostic.hpp"
#include "graph/graph.hpp"
#include "rewriter/rewriter.hpp"

namespace pw {

/// Makes the folder and those above it. PW0001 where it cannot, PW1410 where the path is a stream.
Status make_folder(const std::string& path);

/// What was written, besides the graph itself.
struct SavedGraph {
  std::string weights;              ///< a safetensors file; empty: none
  std::vector<std::string> custom;  ///< of an ONNX model: ops that ONNX has not
};
/// A graph by the extension of the path: .json, .onnx, or .pwg (also for "-"). `as_json`:
/// graph.json for a terminal, whatever the extension.
Result<SavedGraph> save_graph(const Graph& graph, const std::string& path, bool as_json = false);
/// The same, and the contents of its weights, where the file that it was read from had them, as
/// safetensors beside it.
Result<SavedGraph> save_model(const Graph& graph, const std::string& path, bool as_json = false);

/// Writes 00-input.pwg, 01-PASS.pwg, … and journal.jsonl into a folder.
class Trace {
 public:
  static Result<Trace> make(std::string folder);
  Status add(const std::string& pass, const Graph& graph);
  Status finish(const RewriteReport& report, const Graph& graph, const RuleSet& rules) const;
  [[nodiscard]] int graphs() const { return count_; }

 private:
  explicit Trace(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_;
  int count_ = 0;
};

}  // namespace pw
