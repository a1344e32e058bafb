#include "pipeline/run/artifact.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/io/file.hpp"
#include "base/try.hpp"
#include "base/version.hpp"
#include "codegen/cache/digest.hpp"
#include "codegen/toolchain.hpp"
#include "dsl/embedded_rules.hpp"
#include "graph/text/graph_json.hpp"
#include "graph/text/type_text.hpp"
#include "pipeline/run/run_steps.hpp"
#include "pipeline/symbol_values.hpp"
#include "tensor/safetensors.hpp"

namespace pw {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDivides = "%", kManifest = "manifest.json", kOriginal = "original.json";
/// The last part by name, hence last in the file: the digest of all bytes before it.
constexpr std::string_view kSeal = "whole.sha256";
constexpr std::size_t kMostArtifact = std::size_t{1} << 40;

std::string object_name(const std::string& key) { return "objects/" + key; }
std::string at_load_name(std::size_t i) { return fmt::format("variants/{}/at_load.json", i); }
std::string graph_name(std::size_t i) { return fmt::format("variants/{}/graph.json", i); }
std::string plan_name(std::size_t i) { return fmt::format("variants/{}/plan.json", i); }

ArtifactVariant::Condition text_of(const Condition& condition, const Dims& dims) {
  const std::string op(condition.divides ? kDivides
                                         : kCompares[static_cast<std::size_t>(condition.op)]);
  if (!condition.a.valid()) return {op, "", "", condition.text};  // which no step satisfies
  return {op, dims.print(condition.a), dims.print(condition.b), condition.text};
}

Result<Condition> condition_of(const ArtifactVariant::Condition& text, Dims& dims,
                               const std::string& path) {
  Condition out;
  out.text = text.text;
  out.divides = text.op == kDivides;
  const auto* op = std::find(kCompares.begin(), kCompares.end(), text.op);
  if (op != kCompares.end()) out.op = static_cast<Compare>(op - kCompares.begin());
  if (text.a.empty()) return out;
  const auto a = parse_dim(dims, text.a), b = parse_dim(dims, text.b);
  if (!a || !b || (op == kCompares.end() && !out.divides))
    return fail(error_in(path, "PW1218", "one of its conditions cannot be read: " + text.text, ""));
  out.a = *a;
  out.b = *b;
  return out;
}

Status write_file_of(const Artifact& artifact, const std::string& path) {
  std::vector<std::pair<std::string, std::string>> parts{
      {std::string(kManifest), manifest_to_json(artifact)},
      {std::string(kOriginal), artifact.original}};
  for (std::size_t i = 0; i < artifact.variants.size(); ++i) {
    parts.emplace_back(graph_name(i), artifact.variants[i].graph);
    parts.emplace_back(plan_name(i), artifact.variants[i].plan);
    if (!artifact.variants[i].at_load.empty())
      parts.emplace_back(at_load_name(i), artifact.variants[i].at_load);
  }
  for (const auto& [key, payload] : artifact.objects->by_key())
    parts.emplace_back(object_name(key), payload);
  parts.emplace_back(kSeal, std::string(kDigestLength, '0'));
  std::vector<std::pair<std::string, TensorView>> views;
  for (auto& [name, text] : parts)
    views.emplace_back(name, TensorView{DType::u8,
                                        {static_cast<std::int64_t>(text.size())},
                                        reinterpret_cast<std::byte*>(text.data())});
  return write_file(path, sealed_artifact(safetensors_text(std::move(views))));
}

tl::unexpected<Diagnostics> no_artifact(const std::string& path, std::string why) {
  return fail(error_in(path, "PW1218", std::move(why),
                       "copy it again, or recreate it with `pwr compile -o model.pwx`"));
}

bool is_sealed(std::string_view bytes) {
  if (bytes.size() < kDigestLength) return false;
  const std::string_view before = bytes.substr(0, bytes.size() - kDigestLength);
  return bytes.substr(before.size()) == sha256(before);
}

/// The parts of an artifact's file. A file with a wrong checksum is rejected as a whole.
class Parts {
 public:
  static Result<Parts> open(const std::string& path) {
    Parts out;
    out.path_ = path;
    out.bytes_ = PW_TRY(read_file(path, kMostArtifact));
    if (!is_sealed(out.bytes_))
      return no_artifact(
          path, "it is not an artifact, or is damaged: its bytes do not match their checksum");
    out.header_ = PW_TRY(parse_safetensors(out.bytes_, path));
    return out;
  }
  [[nodiscard]] const std::vector<StoredTensor>& all() const { return header_.tensors; }
  [[nodiscard]] std::string text(const StoredTensor& part) const {
    return bytes_.substr(header_.data + part.begin, part.end - part.begin);
  }
  /// Returns the text of a part; empty if there is none.
  [[nodiscard]] std::string optional_text(const std::string& name) const {
    const auto found = std::ranges::find(all(), name, &StoredTensor::name);
    return found == all().end() ? std::string() : text(*found);
  }
  [[nodiscard]] Result<std::string> text(const std::string& name) const {
    const auto found = std::ranges::find(all(), name, &StoredTensor::name);
    if (found == all().end()) return no_artifact(path_, "it is not an artifact: it lacks " + name);
    return text(*found);
  }

 private:
  std::string path_, bytes_;
  SafetensorsHeader header_;
};

Result<std::vector<std::string>> splitting_names(const ContextPtr& context,
                                                 const LoadedRules& rules,
                                                 const PlanRequest& plan) {
  SplitOptions options;
  options.at = plan.at;
  std::vector<std::string> out;
  for (const OpId op : PW_TRY(splitting_ops(context, &rules.set, rules.params, options)))
    out.push_back(context->ops[op].name);
  return out;
}

/// Returns the ops that occur in the graph: rules declare more, which another process lacks.
std::vector<std::string> present(const std::vector<std::string>& ops, const Graph& graph) {
  std::set<std::string> there;
  for (const NodeId node : graph.order()) there.insert(graph.op_of(node).name);
  std::vector<std::string> out;
  for (const std::string& op : ops)
    if (there.contains(op)) out.push_back(op);
  return out;
}

void say_artifact(const Artifact& artifact, const Log& log) {
  log.say(fmt::format("compiled by version {} for {}{}, {}", artifact.version, artifact.backend,
                      artifact.arch.empty() ? "" : " " + artifact.arch,
                      counted(artifact.objects->by_key().size(), "object")));
  const std::string here = Toolchain::find().identity;
  if (!here.empty() && !artifact.compiler.empty() && here != artifact.compiler)
    log.say("note: it was compiled by another compiler: " + artifact.compiler + "; here is " +
            here);
}

/// Makes the run use the backend and kernels of the artifact, without a compiler.
void use_objects(const Artifact& artifact, RunRequest& request) {
  request.backend = artifact.backend;
  request.engine.driver = artifact.driver;
  request.engine.schedules = artifact.schedules;
  CacheOptions sealed;
  sealed.sealed = artifact.objects;
  request.engine.cache = std::make_shared<CompileCache>(sealed);
}

tl::unexpected<Diagnostics> unfit(const std::string& path, std::string why, std::string help) {
  return fail(error_in(path, "PW1219", std::move(why), std::move(help)));
}

}  // namespace

std::string sealed_artifact(std::string bytes) {
  bytes.resize(bytes.size() - std::min(bytes.size(), kDigestLength));
  return bytes += sha256(bytes);
}

std::string library_digest() {
  KeyParts parts;
  for (const EmbeddedFile& file : embedded_rules()) parts.add(file.path, file.text);
  return parts.digest();
}

Status write_artifact(const ContextPtr& context, const RunRequest& given, const std::string& path,
                      const Log& log) {
  RunRequest request = given;
  request.hash_files = true;
  CacheOptions keep = CacheOptions::from_environment();
  keep.collected = std::make_shared<CompiledObjects>();
  request.engine.cache = std::make_shared<CompileCache>(keep);

  const LoadedRules rules = PW_TRY(load_rules(context, request.rules, log));
  const auto engine = PW_TRY(open_engine(request.engines, request.backend, request.engine));
  Graph graph = PW_TRY(load_logged_graph(context, request.graph, log));
  name_tokens(graph, log);
  std::vector<GraphVariant> variants =
      PW_TRY(make_variants(graph, rules, request.rules.pipeline, log));

  Artifact artifact;
  artifact.version = version();
  artifact.library = library_digest();
  artifact.backend = request.backend;
  artifact.driver = request.engine.driver;
  artifact.schedules = request.engine.schedules;
  artifact.strict = request.engine.strict;
  artifact.fuse = request.engine.fuse;
  artifact.fold = request.plan.fold;
  artifact.files = PW_TRY(read_files(request, rules, *context));
  artifact.original = graph_to_json(graph);
  const std::vector<std::string> split_at = PW_TRY(splitting_names(context, rules, request.plan));
  Weights weights(graph, request.engine.seed);
  for (GraphVariant& variant : variants) {
    RunRecord record;
    PW_TRY(cut_and_plan(request, rules, variant, record, log));
    ArtifactVariant& out = artifact.variants.emplace_back();
    out.name = variant.name;
    out.range = variant.result.range;
    out.otherwise = variant.result.otherwise;
    for (const Condition& condition : variant.result.conditions)
      out.conditions.push_back(text_of(condition, context->dims));
    out.graph = graph_to_json(variant.result.graph);
    out.plan = plan_to_json(record.plan, *record.pieces);
    if (variant.at_load) {
      out.at_load = graph_to_json(*variant.at_load);
      PW_TRY(compute_at_load(*engine, record, std::span(&weights, 1), nullptr, log));
    }
    out.split_at = present(split_at, variant.result.graph);
    (void)PW_TRY(build_executable(*engine, variant.result.graph, record, weights, log));
    artifact.arch = record.arch;
  }
  (void)engine->whole().compile(graph);  // with the data for a check of the numbers
  artifact.objects = keep.collected;
  const bool compiled = !artifact.objects->by_key().empty();
  if (compiled) artifact.compiler = Toolchain::find().identity;
  if (compiled && request.backend == "cpu") artifact.machine = processor();
  PW_TRY(write_file_of(artifact, path));
  log.say(fmt::format("{}: {}, {}", path, counted(artifact.variants.size(), "graph"),
                      counted(artifact.objects->by_key().size(), "compiled object")));
  return {};
}

bool is_artifact(const std::string& path) {
  return path.ends_with(".pwx") && fs::is_regular_file(path);
}

Result<std::shared_ptr<Artifact>> read_artifact(const std::string& path) {
  const Parts parts = PW_TRY(Parts::open(path));
  auto out = PW_TRY(manifest_from_json(PW_TRY(parts.text(std::string(kManifest))), path));
  out->original = PW_TRY(parts.text(std::string(kOriginal)));
  for (std::size_t i = 0; i < out->variants.size(); ++i) {
    out->variants[i].graph = PW_TRY(parts.text(graph_name(i)));
    out->variants[i].plan = PW_TRY(parts.text(plan_name(i)));
    out->variants[i].at_load = parts.optional_text(at_load_name(i));
  }
  const std::string objects = object_name("");
  for (const StoredTensor& part : parts.all()) {
    if (!part.name.starts_with(objects)) continue;
    const std::string key = part.name.substr(objects.size());
    if (!is_digest(key)) return no_artifact(path, part.name + " is not named by a digest");
    out->objects->add(key, parts.text(part));
  }
  return out;
}

Status check_artifact(const Artifact& artifact, const std::string& path, bool native) {
  const std::string again = "recompile it with this program on this machine";
  if (artifact.version != version())
    return unfit(
        path, fmt::format("it was compiled by version {}, this is {}", artifact.version, version()),
        again);
  if (artifact.library != library_digest())
    return unfit(path, "it was compiled with other op bodies or rules than those of this program",
                 again);
  if (native && !artifact.machine.empty() && artifact.machine != processor())
    return unfit(path,
                 fmt::format("it was compiled for another processor:\n{}\nthis is\n{}",
                             artifact.machine, processor()),
                 again);
  for (const RunRecord::File& file : artifact.files) {
    if (!fs::is_regular_file(file.name)) continue;  // built in, or not on this machine
    if (sha256(PW_TRY(read_file(file.name))) != file.sha256)
      return unfit(path,
                   fmt::format("{} ({}) has changed since it was compiled", file.name, file.what),
                   "recompile it, or run it on a machine without that file");
  }
  return {};
}

Result<RunRequest> with_artifact(const ContextPtr& context, const RunRequest& request,
                                 const Log& log) {
  const std::string path = request.graph.path;
  if (!is_artifact(path)) return request;
  const bool rules = !request.rules.rules.empty() || request.rules.loaded != nullptr;
  if (rules || !request.rules.pipeline.empty() || !request.planned.empty() || request.prove)
    return fail(error_in(path, "PW1218", "an artifact is already rewritten and planned",
                         "leave out rules, pipeline, plan and --prove; prove the original graph"));
  if (!request.graph.values.empty() || !request.graph.tokens.empty())
    return fail(error_in(path, "PW1218", "the symbols of an artifact already have values",
                         "use --set and --tokens-symbol when you compile it"));
  const std::shared_ptr<Artifact> artifact = PW_TRY(read_artifact(path));
  PW_TRY(check_artifact(*artifact, path, request.native));
  say_artifact(*artifact, log);
  PW_TRY(load_op_library(context));
  const auto parsed = [&](const std::string& text, const std::string& part) {
    return graph_from_json(context, text, path + "/" + part, parse_op);
  };
  auto prepared = std::make_shared<PreparedRun>(
      PreparedRun{artifact, PW_TRY(parsed(artifact->original, std::string(kOriginal))), {}, {}});
  for (std::size_t i = 0; i < artifact->variants.size(); ++i) {
    const ArtifactVariant& variant = artifact->variants[i];
    Graph graph = PW_TRY(parsed(variant.graph, graph_name(i)));
    prepared->plans.push_back(PW_TRY(plan_from_json(variant.plan, path + "/" + plan_name(i))));
    std::vector<Condition> conditions;
    for (const ArtifactVariant::Condition& c : variant.conditions)
      conditions.push_back(PW_TRY(condition_of(c, context->dims, path)));
    std::vector<Version> versions{{"compiled", graph}};
    prepared->variants.push_back(
        {variant.name,
         {variant.range, std::move(conditions), variant.otherwise, std::move(graph), {}},
         std::move(versions),
         declared_tokens(prepared->graph)});
    if (!variant.at_load.empty())
      prepared->variants.back().at_load = PW_TRY(parsed(variant.at_load, at_load_name(i)));
  }
  RunRequest out = request;
  out.engine.strict = artifact->strict;
  out.engine.fuse = artifact->fuse;
  out.plan.fold = artifact->fold;
  if (request.native)
    use_objects(*artifact, out);
  else
    log.say("its compiled objects are not used: its graphs run on " + out.backend);
  out.prepared = std::move(prepared);
  return out;
}

Result<std::unique_ptr<StepEngine>> open_engine_of(const ExecutionRequest& request) {
  auto engine = PW_TRY(open_engine(request.engines, request.backend, request.engine));
  if (!request.prepared || !request.native) return engine;
  const std::string made = request.prepared->artifact->arch, here = engine->arch();
  if (made != here)
    return unfit(request.graph.path,
                 fmt::format("it was compiled for {}, but this device is {}", made, here),
                 "recompile it on this machine");
  return engine;
}

}  // namespace pw
