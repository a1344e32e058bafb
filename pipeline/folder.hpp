// Folders that several files are written into.
#pragma once

#include <string>

#include "base/diagnostic.hpp"
#include "graph/graph.hpp"
#include "rewriter/rewriter.hpp"

namespace pw {

/// Creates the folder and its parents. Fails with PW0001 if that is impossible, PW1410 if the path
/// is a stream.
Status make_folder(const std::string& path);

/// The files written in addition to the graph itself.
struct SavedGraph {
  std::string weights;              ///< a safetensors file; empty: none
  std::vector<std::string> custom;  ///< for an ONNX model: ops that ONNX lacks
};
/// Saves a graph in the format of the extension: .json, .onnx, or .pwg (also for "-"). `as_json`
/// forces graph.json, for terminals.
Result<SavedGraph> save_graph(const Graph& graph, const std::string& path, bool as_json = false);
/// Saves a graph, and next to it as safetensors the contents of its weights if its source file had
/// them.
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
