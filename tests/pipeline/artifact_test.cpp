// Artifacts: a graph that was rewritten, planned and compiled once runs from one file without a
// compiler, computes the bits of the original run, and is refused where it does not fit.
#include "pipeline/run/artifact.hpp"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/io/file.hpp"
#include "codegen/toolchain.hpp"
#include "tests/catch.hpp"
#include "tests/pipeline/written.hpp"

using namespace pw;
using namespace pw::test;

namespace {

constexpr const char* kRangedGraph = R"(graph block {
  symbol n in 1..64 tokens
  in x: f32[n, 8], res: f32[n, 8]
  in weight w: f32[8]
  r = add(x, res)
  m = rms_norm(r, w){eps = 1e-5}
  y = relu(m)
  out y, r
}
)";

// Two ranges, and in the second a condition with a graph for all other steps.
constexpr const char* kRangedRules = R"(
rule twice { y = relu(x: T[n, d])  =>  z = relu(x)  y = maximum(z, 0) }
rule by_four { y = add(a: T[n, d], b: T[n, d])  assume n % 4 == 0  =>  z = add(b, a)  y = maximum(z, z) }
pipeline p { for tokens in ranges(4) { once { twice } once { by_four } } }
)";

RunRequest artifact_request(const std::string& backend) {
  RunRequest request;
  request.graph.path = written("artifact_block.pwg", kRangedGraph);
  request.rules = {{written("artifact_rules.pwr", kRangedRules)}, "p", {}};
  request.tokens = {1, 3, 8, 9};
  request.backend = backend;
  request.engine.driver = "host";
  request.plan.max_tokens = 16;
  request.plan.capture_sizes = {1, 2, 4, 8, 10, 16};
  request.check = true;
  request.keep = true;
  return request;
}

struct Outcome {
  std::vector<RunRecord> records;
  std::string error;
  std::size_t failed = 0;
};

Outcome outcome_of(const RunRequest& request) {
  Outcome out;
  const auto context = std::make_shared<Context>();
  const auto done =
      run_model(context, request, {}, [&](const RunRecord& record, const LoadedRules&) -> Status {
        out.records.push_back(record);
        return {};
      });
  if (!done) out.error = done.error().front().code + ": " + done.error().front().message;
  if (done) out.failed = done->failed;
  return out;
}

std::string artifact_of(const RunRequest& request, const std::string& name) {
  const std::string path = "build/" + name + ".pwx";
  const auto context = std::make_shared<Context>();
  const auto done = write_artifact(context, request, path, {});
  if (!done) FAIL(render(done.error(), context->sources));
  return path;
}

/// As a machine that has nothing on its path.
class NoCompiler {
 public:
  NoCompiler() : path_(value("PATH")), cxx_(value("CXX")) {
    ::setenv("PATH", "", 1);
    ::unsetenv("CXX");
  }
  NoCompiler(const NoCompiler&) = delete;
  NoCompiler& operator=(const NoCompiler&) = delete;
  ~NoCompiler() {
    if (path_) ::setenv("PATH", path_->c_str(), 1);
    if (cxx_) ::setenv("CXX", cxx_->c_str(), 1);
  }

 private:
  static std::optional<std::string> value(const char* name) {
    const char* text = std::getenv(name);
    return text == nullptr ? std::nullopt : std::optional<std::string>(text);
  }
  std::optional<std::string> path_, cxx_;
};

RunRequest of_artifact(const std::string& path) {
  RunRequest request;
  request.graph.path = path;
  request.tokens = {1, 3, 8, 9};
  request.check = request.keep = true;
  return request;
}

void check_same(const Outcome& got, const Outcome& wanted) {
  REQUIRE(got.error == "");
  REQUIRE(got.records.size() == wanted.records.size());
  for (std::size_t r = 0; r < got.records.size(); ++r) {
    CHECK(got.records[r].plan.capture.sizes == wanted.records[r].plan.capture.sizes);
    CHECK(got.records[r].plan.memory.arena_bytes == wanted.records[r].plan.memory.arena_bytes);
    CHECK(got.records[r].device == wanted.records[r].device);
    REQUIRE(got.records[r].steps.size() == wanted.records[r].steps.size());
    for (std::size_t s = 0; s < got.records[r].steps.size(); ++s) {
      const auto &x = got.records[r].steps[s].outputs, &y = wanted.records[r].steps[s].outputs;
      REQUIRE(x.size() == y.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        REQUIRE(x[i].extents() == y[i].extents());
        CHECK(std::memcmp(x[i].data(), y[i].data(), x[i].view().bytes()) == 0);
      }
    }
  }
}

/// The artifact with one thing of its manifest replaced, of the same length, and sealed again.
std::string changed(const std::string& path, const std::string& from, const std::string& to) {
  REQUIRE(from.size() == to.size());
  std::string bytes = read_file(path).value();
  const std::size_t at = bytes.find(from);
  REQUIRE(at != std::string::npos);
  return written("artifact_changed.pwx", sealed_artifact(bytes.replace(at, from.size(), to)));
}

std::string code_of_reading(const std::string& bytes) {
  const auto read = read_artifact(written("artifact_mutant.pwx", bytes));
  return read ? "" : read.error().front().code;
}

}  // namespace

TEST_CASE("artifact: it holds what is computed of weights alone", "[artifact]") {
  for (const char* backend : {"eager", "cpu"}) {
    INFO(backend);
    RunRequest request = artifact_request(backend);
    request.graph.path = written("artifact_gemma.pwg", R"(graph gemma {
  symbol n in 1..64 tokens
  in x: f32[n, 8]
  in weight w: f32[8]
  y = rms_norm(x, exp(w) + 1.0){eps = 1e-5}
  out y
}
)");
    request.rules = {};
    const Outcome wanted = outcome_of(request);
    REQUIRE(wanted.error == "");
    REQUIRE(wanted.records.at(0).at_load);
    const std::string path = artifact_of(request, std::string("artifact_gemma_") + backend);
    const NoCompiler alone;
    const Outcome got = outcome_of(of_artifact(path));
    CHECK(got.failed == 0);
    CHECK(got.records.at(0).at_load);
    check_same(got, wanted);
  }
}

TEST_CASE("artifact: it runs without a compiler, and gives the bits of its run", "[artifact]") {
  for (const char* backend : {"eager", "interpreter", "cpu", "cuda"}) {
    INFO(backend);
    const RunRequest request = artifact_request(backend);
    const Outcome wanted = outcome_of(request);
    REQUIRE(wanted.error == "");
    REQUIRE(wanted.records.size() >= 3);
    const std::string path = artifact_of(request, std::string("artifact_") + backend);
    const NoCompiler alone;
    CHECK(host_compiler().empty());
    const Outcome got = outcome_of(of_artifact(path));
    check_same(got, wanted);
    CHECK(got.failed == 0);
    for (const RunRecord& record : got.records) {
      CHECK(record.backend == backend);
      if (!record.cpu) continue;
      CHECK(record.cpu->compiled == 0);
      CHECK(record.cpu->nodes_on_eager() == 0);
      CHECK_FALSE(record.cpu->kernels.empty());
    }
  }
}

TEST_CASE("artifact: it is refused on another device than it was compiled for", "[artifact]") {
  if (host_compiler().empty()) return;
  const std::string path = artifact_of(artifact_request("cuda"), "artifact_cuda");
  CHECK(outcome_of(of_artifact(path)).error == "");
  const std::string other = changed(path, "\"arch\": \"sm_90\"", "\"arch\": \"sm_80\"");
  CHECK(outcome_of(of_artifact(other)).error ==
        "PW1219: it was compiled for sm_80, but this device is sm_90");
}

TEST_CASE("artifact: the same input gives the same bytes", "[artifact]") {
  const RunRequest request = artifact_request("cpu");
  const std::string one = artifact_of(request, "artifact_one"),
                    other = artifact_of(request, "artifact_other");
  CHECK(read_file(one).value() == read_file(other).value());
}

TEST_CASE("artifact: what has changed since is noticed", "[artifact]") {
  const RunRequest request = artifact_request("cpu");
  const std::string path = artifact_of(request, "artifact_stale");
  CHECK(outcome_of(of_artifact(path)).error == "");
  const auto error_of = [](const std::string& file) { return outcome_of(of_artifact(file)).error; };

  written("artifact_rules.pwr", std::string(kRangedRules) + "# changed\n");
  CHECK(error_of(path).find("PW1219: build/artifact_rules.pwr (rules) has changed") == 0);
  written("artifact_rules.pwr", kRangedRules);
  written("artifact_block.pwg", std::string(kRangedGraph) + "\n");
  CHECK(error_of(path).find("PW1219: build/artifact_block.pwg (graph) has changed") == 0);
  std::filesystem::remove("build/artifact_block.pwg");  // as on another machine
  std::filesystem::remove("build/artifact_rules.pwr");
  CHECK(error_of(path) == "");
  const std::string library = library_digest();
  std::string other = library;
  other[0] = other[0] == 'a' ? 'b' : 'a';
  CHECK(error_of(changed(path, library, other))
            .find("PW1219: it was compiled with other op bodies") == 0);
  if (const std::string here = processor(); !here.empty()) {
    const auto artifact = read_artifact(path);
    REQUIRE(artifact);
    CHECK((*artifact)->machine == here);
    (*artifact)->machine = "another one";
    const auto fits = check_artifact(**artifact, path);
    REQUIRE_FALSE(fits);
    CHECK(fits.error().front().message.find("another processor") != std::string::npos);
  }
}

TEST_CASE("artifact: a damaged or wrong file is refused", "[artifact]") {
  const std::string path = artifact_of(artifact_request("cpu"), "artifact_whole");
  const std::string bytes = read_file(path).value();
  const auto code_of = [](const std::string& text) {
    return outcome_of(of_artifact(written("artifact_bad.pwx", text))).error.substr(0, 6);
  };
  CHECK(code_of("") == "PW1218");
  CHECK(code_of(bytes.substr(0, bytes.size() / 2)) == "PW1218");
  CHECK(code_of(bytes) == "");
  CHECK(code_of(read_file(changed(path, "piecewise.artifact/2", "piecewise.artifact/9")).value()) ==
        "PW1218");
  RunRequest twice = of_artifact(path);
  twice.rules = {{"llm"}, "o2", {}};
  CHECK(outcome_of(twice).error.find("PW1218: an artifact is already rewritten") == 0);
  RunRequest set = of_artifact(path);
  set.graph.values = {"n=4"};
  CHECK(outcome_of(set).error.find("PW1218: the symbols of an artifact already have values") == 0);
  // Objects that do not match their keys, in a file that was sealed with them.
  std::string broken = bytes;
  const std::size_t elf = broken.find(
      "\x7f"
      "ELF");
  REQUIRE(elf != std::string::npos);
  broken[elf + 1] = 'X';
  CHECK(code_of(broken) == "PW1218");
  CHECK(code_of(sealed_artifact(broken)) == "PW1219");
}

TEST_CASE("artifact: no bit of it may differ", "[artifact]") {
  const std::string bytes =
      read_file(artifact_of(artifact_request("cpu"), "artifact_bits")).value();
  REQUIRE(code_of_reading(bytes) == "");
  const auto check_flip = [&](std::size_t at, int bit) {
    std::string mutant = bytes;
    mutant[at] = static_cast<char>(mutant[at] ^ 1 << bit);
    INFO("byte " << at << " bit " << bit);
    CHECK(code_of_reading(mutant) == "PW1218");
  };
  for (std::size_t at = 0; at < 8; ++at)  // the header's length
    for (int bit = 0; bit < 8; ++bit) check_flip(at, bit);
  constexpr std::size_t kFlips = 1500;  // of the header, the manifest and every part
  for (std::size_t i = 0; i < kFlips; ++i)
    check_flip(i * bytes.size() / kFlips, static_cast<int>(i % 8));
  for (std::size_t at = bytes.size() - 64; at < bytes.size(); ++at) check_flip(at, 5);  // its seal
  for (std::size_t i = 0; i < 100; ++i) {
    INFO("cut off " << i);
    CHECK(code_of_reading(bytes.substr(0, i * bytes.size() / 100)) == "PW1218");
  }
  CHECK(code_of_reading(bytes.substr(0, bytes.size() - 1)) == "PW1218");
  CHECK(code_of_reading(bytes + '\0') == "PW1218");
  CHECK(code_of_reading(bytes + bytes) == "PW1218");
}

TEST_CASE("artifact: names and keys of a manifest are digests", "[artifact]") {
  const std::string path = artifact_of(artifact_request("cpu"), "artifact_names");
  const auto artifact = read_artifact(path).value();
  REQUIRE_FALSE(artifact->objects->names().empty());
  const auto [name, key] = *artifact->objects->names().begin();
  for (const std::string& wrong : {std::string(64, 'x'), "A" + key.substr(1)}) {
    CHECK(
        outcome_of(of_artifact(changed(path, ": \"" + key, ": \"" + wrong))).error.find("PW1218") ==
        0);
    CHECK(outcome_of(of_artifact(changed(path, "\"" + name + "\"", "\"" + wrong + "\"")))
              .error.find("PW1218") == 0);
    CHECK(outcome_of(of_artifact(changed(path, "objects/" + key, "objects/" + wrong)))
              .error.find("PW1218") == 0);
  }
}

TEST_CASE("artifact: without its native code it runs on the backend that is requested",
          "[artifact]") {
  const RunRequest request = artifact_request("cpu");
  const std::string path = artifact_of(request, "artifact_graphs");
  for (const char* backend : {"eager", "cpu"}) {
    INFO(backend);
    RunRequest from_artifact = of_artifact(path);
    from_artifact.native = false;
    from_artifact.backend = backend;
    const Outcome got = outcome_of(from_artifact);
    RunRequest from_sources = request;
    from_sources.backend = backend;
    check_same(got, outcome_of(from_sources));
    CHECK(got.failed == 0);
    for (const RunRecord& record : got.records) CHECK(record.backend == backend);
  }
  // Nothing of its objects is needed, not even their processor.
  auto artifact = read_artifact(path).value();
  artifact->machine = "another one";
  CHECK(check_artifact(*artifact, path, false).has_value());
  CHECK_FALSE(check_artifact(*artifact, path, true).has_value());
}
