// An artifact: a model's graphs, rewritten, planned and compiled, in one file that runs without a
// compiler. It is a safetensors file of byte tensors: manifest.json, graphs and plans as JSON,
// the compiled objects by their keys, and a seal. The seal is the SHA-256 of all bytes before it,
// so a damaged file is rejected as a whole. The objects are native code from the file's author.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/cache/objects.hpp"
#include "pipeline/run/run.hpp"
#include "splitter/plan_text.hpp"

namespace pw {

/// The plan for one variant, with its graph.
struct ArtifactVariant {
  std::string name;  ///< see GraphVariant
  TokenRange range;
  bool otherwise = false;
  /// A condition from `assume`: `a op b`, or `a % b == 0`, as dims print.
  struct Condition {
    std::string op, a, b, text;
  };
  std::vector<Condition> conditions;
  std::string graph, plan;            ///< JSON
  std::string at_load;                ///< JSON; empty if there are no weight-only computations
  std::vector<std::string> split_at;  ///< all ops that it is cut at
};

struct Artifact {
  std::string version;  ///< version of the program that created it
  std::string library;  ///< SHA-256 of the program's op and rule library
  std::string backend, driver, schedules, arch;
  bool strict = false, fuse = true, fold = true;
  std::string machine;   ///< processor that the objects were compiled for; empty for any
  std::string compiler;  ///< compiler of the objects; empty if there are none
  std::vector<RunRecord::File> files;  ///< source files
  std::string original;                ///< the graph before any rewriting, JSON
  std::vector<ArtifactVariant> variants;
  std::shared_ptr<CompiledObjects> objects = std::make_shared<CompiledObjects>();
};

/// Returns the bytes of an artifact's file with the seal in the last bytes.
[[nodiscard]] std::string sealed_artifact(std::string bytes);

/// Returns the SHA-256 of the program's op and rule library.
[[nodiscard]] std::string library_digest();

[[nodiscard]] std::string manifest_to_json(const Artifact& artifact);
/// Parses everything except graphs, plans, and objects. Fails with PW1218.
Result<std::shared_ptr<Artifact>> manifest_from_json(std::string_view text,
                                                     const std::string& file);

/// Rewrites, splits, plans, and compiles as a run of the request would, and writes the result. Does
/// not run the steps.
Status write_artifact(const ContextPtr& context, const RunRequest& request, const std::string& path,
                      const Log& log);
/// Returns true if the file begins like an artifact.
[[nodiscard]] bool is_artifact(const std::string& path);
/// Fails with PW1218 if the file is not an artifact or is damaged.
Result<std::shared_ptr<Artifact>> read_artifact(const std::string& path);
/// Fails with PW1219 if the artifact cannot run here or is out of date: another program, op
/// library, or processor, or a changed source file. `native`: its compiled objects will run;
/// otherwise any processor is accepted.
Status check_artifact(const Artifact& artifact, const std::string& path, bool native = true);

/// The parts of a run that an artifact supplies.
struct PreparedRun {
  std::shared_ptr<const Artifact> artifact;
  Graph graph;
  std::vector<GraphVariant> variants;
  std::vector<PlanDocument> plans;  ///< of the variants
};
/// Returns the request with the artifact's prepared parts if its graph is an artifact, otherwise
/// unchanged. With `native` it also takes the artifact's backend and objects. Fails with PW1218 if
/// the request has rules or plans as well.
Result<RunRequest> with_artifact(const ContextPtr& context, const RunRequest& request,
                                 const Log& log);
/// Opens the engine of a request. Fails with PW1219 if an artifact was compiled for another device.
Result<std::unique_ptr<StepEngine>> open_engine_of(const ExecutionRequest& request);

}  // namespace pw
