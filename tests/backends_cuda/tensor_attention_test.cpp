// Attention on tensor cores, run on the host: over pages, several sequences, prefills and decodes,
// with the bits of the interpreter that adds in the same order.
#include <vector>

#include <fmt/format.h>

#include "backends/interpreter/interpreter.hpp"
#include "base/hash.hpp"
#include "codegen/toolchain.hpp"
#include "cuda/device/host_driver.hpp"
#include "cuda/device/nvrtc.hpp"
#include "cuda/kernels/attention/attention.hpp"
#include "cuda/kernels/emitter.hpp"
#include "dsl/dsl.hpp"
#include "exec/runner.hpp"
#include "tensor/numerics.hpp"
#include "tests/backends_cuda/kernel_run.hpp"
#include "tests/catch.hpp"
#include "tests/ordered_attention.hpp"

using namespace pw;
using namespace pw::test;

namespace {

struct Heads {
  const char* dtype;
  int heads, groups, width;
  const char* divisor;
};

/// Shares of 1 to 16 heads a group, of which some do not divide 64; widths with and without a
/// whole number of 128 bytes.
constexpr Heads kHeads[] = {{"bf16", 4, 2, 16, "none"},   {"f16", 3, 1, 32, "none"},
                            {"bf16", 8, 2, 64, "none"},   {"f16", 5, 5, 48, "d"},
                            {"bf16", 16, 1, 128, "none"}, {"f16", 6, 2, 80, "none"},
                            {"bf16", 7, 1, 112, "d"},     {"f16", 8, 1, 128, "none"},
                            {"bf16", 12, 4, 96, "none"},  {"f16", 1, 1, 64, "none"}};

std::string text_of(const Heads& h) {
  return fmt::format(
      "graph g {{\n  symbol n in 1..4096 tokens\n  in q: {0}[n, {1}, {3}], k: {0}[n, {2}, {3}], v: "
      "{0}[n, {2}, {3}]{4}\n  y = unified_attention(q, k, v, {5}){{layer = \"a\"}}  out y\n}}\n",
      h.dtype, h.heads, h.groups, h.width, std::string_view(h.divisor) == "d" ? ", d: f32[1]" : "",
      h.divisor);
}

/// Parts of the keys, strands, and tiles of 32 to 128 rows; steps here have few rows.
const cuda::AttentionTiles kTiles{
    {{1, 1, {16, 4, 16}},
     {1, 1, {16, 8, 3}, 2},
     {1, 1, {32, 4, 1}},
     {4, 1, {64, 1, 1}},
     {3, 1, {16, 3, 1}, 2},
     {2, 1, {16, 2, 1}, 2},
     {2, 2, {32, 4, 1}},
     {4, 2, {16, 2, 1}, 2}},
    {{3, 0}, {5, 1}, {8, 2}, {11, 3}, {14, 4}, {18, 5}, {26, 6}, {1 << 30, 7}}};

/// Blocks of a few tokens of a sequence, by one warp of rows for each strand, in parts and not.
const cuda::AttentionTiles kTilesOfTokens{
    {{1, 1, {16, 4, 1}, 1, false, 2},
     {1, 1, {16, 4, 3}, 1, false, 3},
     {1, 2, {16, 4, 2}, 1, false, 8},
     {1, 1, {32, 4, 2}, 1, false, 4},
     {2, 2, {16, 4, 2}},
     {1, 2, {16, 8, 1}, 1, false, 7}},
    {{7, 0}, {11, 1}, {15, 2}, {20, 3}, {26, 4}, {1 << 30, 5}}};

/// Warpgroups, one to three.
const cuda::AttentionTiles kGroupedTiles{{{4, 1, {64, 1, 1}, 1, true},
                                          {8, 1, {64, 1, 1}, 1, true},
                                          {8, 1, {128, 1, 1}, 1, true},
                                          {12, 1, {64, 1, 1}, 1, true},
                                          {12, 1, {128, 1, 1}, 1, true}},
                                         {{6, 0}, {12, 1}, {18, 2}, {26, 3}, {1 << 30, 4}}};

/// A change of a kernel's text.
struct Change {
  std::string_view from, to = {};
};

/// One layer of attention on the emulated device.
class Device {
 public:
  /// `change`: text of the kernels, the last of its kind, and its replacement.
  Device(const Graph& graph, const std::string& arch, std::uint64_t seed,
         const cuda::AttentionTiles& tiles, const Change& change = {})
      : graph_(graph),
        driver_({seed}),
        attention_(driver_, [this](std::int64_t bytes, const std::string&) {
          return driver_.allocate(bytes);
        }) {
    const auto made = cuda::attention_kernels(graph, KvCache::kPageTokens, arch, &tiles);
    REQUIRE(made);
    kernels_ = *made;
    if (!change.from.empty()) {
      for (cuda::AttentionForm& form : kernels_.forms->all) {
        const std::size_t at = form.kernel.source.rfind(change.from);
        REQUIRE(at != std::string::npos);
        form.kernel.source.replace(at, change.from.size(), change.to);
      }
    }
    attention_.add(kernels_, "a");
    need(attention_.reserve(4, 8), graph.context());
    std::vector<cuda::Kernel> all{kernels_.put, kernels_.attend};
    if (kernels_.forms) {
      for (const cuda::AttentionForm& form : kernels_.forms->all) all.push_back(form.kernel);
    }
    need(driver_.load(all), graph.context());
  }
  [[nodiscard]] const cuda::AttentionKernels& kernels() const { return kernels_; }

  /// With rows of padding behind those of the step.
  Tensor run(const Step& step, const std::vector<Tensor>& inputs, std::int64_t padding) {
    Tensor out = need(tried(step, inputs, padding), graph_.context());
    for (const auto& [name, touched] : driver_.touched()) {
      INFO(name);
      REQUIRE(touched.foretold);
      CHECK(shown(*touched.foretold) == shown(touched.counted));
    }
    return out;
  }
  /// The same of kernels that may be refused.
  Result<Tensor> tried(const Step& step, const std::vector<Tensor>& inputs, std::int64_t padding) {
    const Context& context = graph_.context();
    const std::int64_t rows = step.tokens() + padding;
    std::vector<cuda::DeviceTensor> there;
    for (const Tensor& t : inputs) {
      Extents extents = t.extents();
      if (extents.size() == 3) extents[0] = rows;
      cuda::DeviceTensor tensor{t.dtype(), extents, 0};
      tensor.address = need(driver_.allocate(tensor.bytes()), context);
      need(driver_.fill(tensor.address, 0xff, tensor.bytes()), context);  // NaN
      need(driver_.write(tensor.address, t.data(), static_cast<std::int64_t>(t.view().bytes())),
           context);
      there.push_back(tensor);
    }
    cuda::DeviceTensor y = there[0];
    y.address = need(driver_.allocate(y.bytes()), context);
    need(attention_.begin(step, rows), context);
    driver_.forget_accesses();
    for (const cuda::LaunchNode& node : attention_.launches(kernels_, "a", there, y, 0))
      if (const auto done = driver_.launch(node); !done) return tl::unexpected(done.error());
    Tensor out(y.dtype, inputs[0].extents());
    need(driver_.read(out.data(), y.address, static_cast<std::int64_t>(out.view().bytes())),
         context);
    for (const cuda::DeviceTensor& t : there) driver_.release(t.address);
    driver_.release(y.address);
    return out;
  }

 private:
  const Graph& graph_;
  cuda::HostDriver driver_{cached()};
  cuda::DeviceAttention attention_;
  cuda::AttentionKernels kernels_;
};

/// Sequences that begin with some tokens and go on by a few at a time; now and then a long one.
class Traffic {
 public:
  explicit Traffic(std::uint64_t seed, std::uint64_t most = 90) : random_(seed), most_(most) {}
  Step next() {
    for (Sequence& s : running_) {
      s.past += s.new_tokens;
      s.new_tokens = random_.below(4) == 0 ? fresh(10) : 1;
    }
    std::erase_if(running_, [&](const Sequence&) { return random_.below(6) == 0; });
    while (running_.empty() || (running_.size() < 5 && random_.below(2) == 0))
      running_.push_back({next_++, fresh(random_.below(8) == 0 ? most_ : 12), 0});
    Step step;
    step.sequences = running_;
    return step;
  }

 private:
  std::int64_t fresh(std::uint64_t most) {
    return 1 + static_cast<std::int64_t>(random_.below(most));
  }
  Random random_;
  std::uint64_t most_;
  std::vector<Sequence> running_;
  std::int64_t next_ = 0;
};

/// Steps of a layer on the emulated device have the bits of the interpreter that adds in their
/// order; `of_tiles` counts those of each tile.
void check_steps(const Heads& h, const cuda::AttentionTiles& tiles, Traffic traffic, int steps,
                 std::vector<std::size_t>& of_tiles, std::uint64_t seed) {
  const ContextPtr context = library();
  const Graph graph = need(parse_graph(context, text_of(h), "test"), *context);
  Device device(graph, "sm_90", seed, tiles);
  REQUIRE(device.kernels().forms);
  const cuda::AttentionForms& forms = *device.kernels().forms;
  Weights weights(graph, seed);
  KvCache there, here;
  for (int i = 0; i < steps; ++i) {
    Step step = traffic.next();
    INFO(text_of(h) << "step " << i << " of " << step.tokens() << " tokens in "
                    << step.sequences.size() << " sequences");
    const std::int64_t rows = step.tokens() + i % 3;
    const cuda::AttentionForm& form = forms.of(rows, 0);
    ++of_tiles[static_cast<std::size_t>(&form - forms.all.data())];
    const std::vector<Tensor> inputs =
        need(input_tensors(graph, weights, {{"n", step.tokens()}}, step), *context);
    step.cache = &there;
    const Tensor got = device.run(step, inputs, i % 3);
    step.cache = &here;
    const auto interpreter = make_interpreter(form.tile.order);
    const auto wanted = need(run_whole(graph, *interpreter, weights, step), *context);
    CHECK(bits_apart({got}, wanted) == "");
  }
}

}  // namespace

namespace {

/// Runs random steps of each head on the tiles, all of which some steps choose.
void check_attention(int steps_of_each, std::size_t fewest, std::uint64_t seed) {
  INFO("seed " << seed);
  std::vector<std::size_t> steps(kTiles.all.size());
  for (const Heads& h : kHeads)
    check_steps(h, kTiles, Traffic(seed + static_cast<std::uint64_t>(h.width * h.heads)),
                steps_of_each, steps, seed);
  for (std::size_t of_form : steps) CHECK(of_form >= fewest);
}

}  // namespace

TEST_CASE("tensor cores: steps of attention have the bits of their order of sums",
          "[cuda][tensor][diff]") {
  if (!host_compiler().empty()) check_attention(6, 1, 1124);
}

TEST_CASE("tensor cores: 200 more steps of attention", "[.][slow][cuda][tensor][diff]") {
  if (!host_compiler().empty()) check_attention(20, 10, 1128);
}

namespace {

/// Runs random steps of a few tokens, of each head, on the tiles, all of which some steps choose.
void check_few_tokens(int steps_of_each, std::size_t fewest) {
  if (no_host_compiler()) return;
  constexpr std::uint64_t kSeed = 1127;
  INFO("seed " << kSeed);
  constexpr Heads kOfTokens[] = {{"bf16", 8, 2, 64, "none"},
                                 {"f16", 4, 1, 128, "d"},
                                 {"bf16", 6, 2, 80, "none"},
                                 {"f16", 5, 5, 48, "none"}};
  std::vector<std::size_t> steps(kTilesOfTokens.all.size());
  for (const Heads& h : kOfTokens)
    check_steps(h, kTilesOfTokens, Traffic(kSeed + static_cast<std::uint64_t>(h.width * h.heads)),
                steps_of_each, steps, kSeed);
  for (std::size_t of_form : steps) CHECK(of_form >= fewest);
}

}  // namespace

TEST_CASE("tensor cores: blocks of a few tokens have the bits of their order of sums",
          "[cuda][tensor][diff]") {
  check_few_tokens(8, 1);
}

TEST_CASE("tensor cores: 120 steps of blocks of a few tokens", "[.][slow][cuda][tensor][diff]") {
  check_few_tokens(30, 5);
}

TEST_CASE("tensor cores: attention by warpgroups has the bits of its order of sums",
          "[cuda][tensor][diff]") {
  if (no_host_compiler()) return;
  constexpr std::uint64_t kSeed = 1126;
  INFO("seed " << kSeed);
  // Prompts of more than two blocks of keys; shares that do not divide 64, too.
  constexpr Heads kOfGroups[] = {{"bf16", 8, 2, 64, "none"},
                                 {"f16", 3, 1, 128, "d"},
                                 {"bf16", 5, 5, 128, "none"},
                                 {"f16", 7, 1, 64, "none"}};
  std::vector<std::size_t> steps(kGroupedTiles.all.size());
  for (const Heads& h : kOfGroups)
    check_steps(h, kGroupedTiles,
                Traffic(kSeed + static_cast<std::uint64_t>(h.width * h.heads), 300), 15, steps,
                kSeed);
  for (std::size_t of_form : steps) CHECK(of_form >= 4);
}

/// Each removes or moves an operation that orders threads or asynchronous work. Turns order no
/// data.
constexpr Change kFaults[] = {
    {"\n    pw_show_to_products();"},
    {"\n    pw_arrive(barriers, last);"},
    {"\n        pw_wait<1>();"},
    {"\n  pw_wait<0>();"},
    {"\n  if (last >= 0) announce();"},
    {"\n      pw_await(barriers, free + which, number / 2 - 1);"},
    {"\n      pw_await(barriers, free + which, number / 2 - 1);",
     "if (free != pw_keys_free) pw_await(barriers, free + which, number / 2 - 1);"},
    {"\n      pw_await(barriers, free + which, number / 2 - 1);",
     "if (free == pw_keys_free) pw_await(barriers, free + which, number / 2 - 1);"},
    {"free + which, number / 2 - 1);", "free + which, number / 2);"},
    {"\n      if (round < rounds) pw_await(barriers, pw_keys_full + (number & 1), number / 2);"},
    {"\n      pw_await(barriers, pw_values_full + (number & 1), number / 2);"},
    {"\n    pw_arrive(barriers, last);",
     "\n    if (last < pw_values_full) pw_arrive(barriers, last);"},
    {"pw_keys_full + (number & 1), number / 2);", "pw_keys_full + (number & 1), number / 2 - 1);"},
    {"\n      pw_arrive(barriers, pw_group_turn + (team + 1 < teams ? team + 1 : 0));"},
    {"team == 0 ? turn - 1 : turn);", "turn);"},
    {"\n        free_keys(number);\n        weigh(round);", "\n        weigh(round);"},
    {"\n        pw_wait_for_products<1>();\n        free_keys(number);",
     "\n        free_keys(number);\n        pw_wait_for_products<1>();"},
    {"\n        weigh(round);\n        free_values(number - 1);",
     "\n        free_values(number - 1);\n        weigh(round);"},
    {"\n        pw_wait_for_products<1>();"},
    {"\n        pw_wait_for_products<0>();"},
    {"\n  __syncthreads();\n  // Registers", "\n  // Registers"},
};

TEST_CASE("tensor cores: without a barrier or a wait attention by warpgroups is refused or wrong",
          "[cuda][tensor]") {
  if (no_host_compiler()) return;
  constexpr std::uint64_t kSeed = 7;
  const cuda::AttentionTiles tiles{{{8, 1, {64, 1, 1}, 1, true}}, {{1 << 30, 0}}};
  const ContextPtr context = library();
  const Graph graph =
      need(parse_graph(context, text_of({"bf16", 4, 2, 64, "none"}), "test"), *context);
  Weights weights(graph, kSeed);
  // Several blocks of keys.
  Step step;
  step.sequences = {{0, 200, 0}};
  const std::vector<Tensor> inputs =
      need(input_tensors(graph, weights, {{"n", step.tokens()}}, step), *context);
  const auto result = [&](const Change& change) -> std::string {
    Device device(graph, "sm_90", kSeed, tiles, change);
    KvCache cache;
    step.cache = &cache;
    const auto out = device.tried(step, inputs, 0);
    if (!out) return out.error().front().code;
    return {reinterpret_cast<const char*>(out->data()), out->view().bytes()};
  };
  const std::string right = result({});
  CHECK(right.size() == 200 * 4 * 64 * 2);
  for (const Change& fault : kFaults) {
    INFO(fault.from << " -> " << fault.to);
    const bool same = result(fault) == right;
    CHECK_FALSE(same);
  }
}

TEST_CASE("tensor cores: attention by warpgroups compiles without spills, products overlapped",
          "[cuda][tensor]") {
  const cuda::Nvrtc nvrtc = cuda::Nvrtc::open();
  if (no_compiler(nvrtc)) return;
  const ContextPtr context = library();
  for (const Heads& h : {Heads{"bf16", 32, 8, 128, "none"}, Heads{"f16", 16, 16, 64, "none"}}) {
    const Graph graph = need(parse_graph(context, text_of(h), "test"), *context);
    cuda::AttentionTiles tiles;
    for (const cuda::AttentionTile& tile : cuda::attention_candidates(
             *cuda::tensor_machine("sm_90"), {1, 2048, 0, h.heads, h.groups, h.width}))
      if (tile.grouped) tiles.all.push_back(tile);
    const auto kernels = cuda::attention_kernels(graph, KvCache::kPageTokens, "sm_90", &tiles);
    REQUIRE(kernels);
    for (const cuda::AttentionForm& form : kernels->forms->all) {
      INFO(described(form.tile) << ", heads of " << h.width);
      const auto cubin =
          nvrtc.compile(cuda::source_file(form.kernel), form.kernel.name, {"sm_90", false});
      if (!cubin) FAIL(cubin.error().front().message);
      INFO(cubin->log);
      CHECK_FALSE(cubin->usage.spills());
      CHECK(cubin->usage.stack == 0);
      // Groups exchange registers, so those of a block must be known at its start.
      CHECK(cubin->usage.registers == form.tile.registers(h.width));
      // The compiler reports if it lets products wait for one another, or ignores an exchange.
      CHECK(cubin->log.find("serialized") == std::string::npos);
      CHECK(cubin->log.find("setmaxnreg") == std::string::npos);
    }
  }
}
