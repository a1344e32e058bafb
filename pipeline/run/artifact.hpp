// An artifact: a model's graphs, rewritten, planned and compiled, in one file that runs where no
// compiler is. It is a safetensors file of byte tensors: manifest.json, graphs and plans as JSON,
// the compiled objects by their keys, and a seal: the SHA-256 of all bytes before it, so that a
// damaged file is refused as a whole. The objects are native code of whoever wrote the file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/cache/objects.hpp"
#include "pipeline/run/run.hpp"
#include "splitter/plan_text.hpp"

namespace pw {

/// What a plan was made for, and what became of it.
struct ArtifactVariant {
  std::string name;  ///< see GraphVariant
  TokenRange range;
  bool otherwise = false;
  /// Of `assume`: `a op b`, or `a % b == 0`, as dims print.
  struct Condition {
    std::string op, a, b, text;
  };
  std::vector<Condition> conditions;
  std::string graph, plan;            ///< JSON
  std::string at_load;                ///< JSON; empty: nothing is computed of weights alone
  std::vector<std::string> split_at;  ///< all ops that it is cut at
};

struct Artifact {
  std::string version;  ///< of the program that made it
  std::string library;  ///< SHA-256 of the program's op and rule library
  std::string backend, driver, schedules, arch;
  bool strict = false, fuse = true, fold = true;
  std::string machine;   ///< the processor that objects were compiled for; empty: for any
  std::string compiler;  ///< that compiled them; empty: none did
  std::vector<RunRecord::File> files;  ///< that it was made of
  std::string original;                ///< the graph before any rewriting, JSON
  std::vector<ArtifactVariant> variants;
  std::shared_ptr<CompiledObjects> objects = std::make_shared<CompiledObjects>();
};

/// Returns the bytes of an artifact's file with their seal in place of the last ones.
[[nodiscard]] std::string sealed_artifact(std::string bytes);

/// SHA-256 over the op and rule library inside of the program.
[[nodiscard]] std::string library_digest();

[[nodiscard]] std::string manifest_to_json(const Artifact& artifact);
/// All but graphs, plans and objects. PW1218 with what is missing or wrong.
Result<std::shared_ptr<Artifact>> manifest_from_json(std::string_view text,
                                                     const std::string& file);

/// Rewrites, cuts, plans and compiles as a run of the request would, and writes what came of it.
/// The steps of the request are not run.
Status write_artifact(const ContextPtr& context, const RunRequest& request, const std::string& path,
                      const Log& log);
/// Whether the file begins as one does.
[[nodiscard]] bool is_artifact(const std::string& path);
/// PW1218 where the file is none, or is damaged.
Result<std::shared_ptr<Artifact>> read_artifact(const std::string& path);
/// PW1219 where it cannot run here, or is not what its sources say today: another program, op
/// library or processor, or a file it was made of that has changed where it lies. `native`: its
/// compiled objects are to run; without, any processor will do.
Status check_artifact(const Artifact& artifact, const std::string& path, bool native = true);

/// What a run takes of an artifact instead of making it.
struct PreparedRun {
  std::shared_ptr<const Artifact> artifact;
  Graph graph;
  std::vector<GraphVariant> variants;
  std::vector<PlanDocument> plans;  ///< of the variants
};
/// The request with what was prepared, where its graph is an artifact, and with the artifact's
/// backend and objects unless it is not `native`; else as it is. PW1218 where it asks for rules or
/// plans besides.
Result<RunRequest> with_artifact(const ContextPtr& context, const RunRequest& request,
                                 const Log& log);
/// Opens the engine of a request. PW1219 where an artifact was compiled for another device than the
/// engine's.
Result<std::unique_ptr<StepEngine>> open_engine_of(const ExecutionRequest& request);

}  // namespace pw
