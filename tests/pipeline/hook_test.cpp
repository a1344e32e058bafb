// A connector written with the hook between pieces: it waits for a layer's keys and values before
// attention, and sends them after it, layer by layer, from a run to another that goes on beside it.
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "base/try.hpp"
#include "graph/text/text.hpp"
#include "models/generate.hpp"
#include "pipeline/run/run.hpp"
#include "tests/catch.hpp"
#include "tests/pipeline/written.hpp"

using namespace pw;
using namespace pw::test;

namespace {

constexpr const char* kAttention = "unified_attention";

/// Keys and values by step and layer; a receiver waits for what is not there yet.
class Channel {
 public:
  using Key = std::pair<std::size_t, std::string>;  ///< step, piece
  struct Layer {
    Tensor k, v;
  };
  void send(const Key& key, Layer layer) {
    const std::scoped_lock lock(mutex_);
    layers_[key] = std::move(layer);
    arrived_.notify_all();
  }
  Layer receive(const Key& key) {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return layers_.contains(key) || closed_; });
    return layers_[key];
  }
  /// A receiver that waits for a value that never arrives gets nothing.
  void close() {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    arrived_.notify_all();
  }
  [[nodiscard]] std::size_t size() const { return layers_.size(); }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<Key, Layer> layers_;
  bool closed_ = false;
};

using Names = std::map<std::string, std::string>;

Names attention_of(const PieceCall& call) {
  const auto names = call.names_of(kAttention);
  return {names.begin(), names.end()};
}

/// Counts the steps by a piece that comes again.
class StepCounter {
 public:
  std::size_t of(const PieceCall& call) { return times_[call.piece().name]++; }

 private:
  std::map<std::string, std::size_t> times_;
};

class Sender final : public PieceHook {
 public:
  explicit Sender(Channel& channel) : channel_(channel) {}
  Status after(PieceCall& call) override {
    const Names names = attention_of(call);
    if (names.empty()) return {};
    auto k = call.read(names.at("k")), v = call.read(names.at("v"));
    if (!k) return forward(k);
    if (!v) return forward(v);
    channel_.send({steps_.of(call), call.piece().name}, {*k, *v});
    return {};
  }

 private:
  Channel& channel_;
  StepCounter steps_;
};

Status forget(PieceCall& call, const std::string& value) {
  auto own = PW_TRY(call.read(value));
  std::memset(own.data(), 0, own.view().bytes());
  return call.write(value, own.view());
}

/// Has no keys and values of its own; waits for the sender's, unless it has none.
class Receiver final : public PieceHook {
 public:
  explicit Receiver(Channel* channel) : channel_(channel) {}
  Status before(PieceCall& call) override {
    Names names = attention_of(call);
    if (names.empty()) return {};
    ++layers;
    for (const char* one : {"k", "v"})
      if (auto done = forget(call, names.at(one)); !done) return done;
    if (channel_ == nullptr) return {};
    const Channel::Layer layer = channel_->receive({steps_.of(call), call.piece().name});
    if (auto done = call.write(names.at("k"), layer.k.view()); !done) return done;
    return call.write(names.at("v"), layer.v.view());
  }
  std::size_t layers = 0;

 private:
  Channel* channel_;
  StepCounter steps_;
};

std::string model_file() {
  const auto context = std::make_shared<Context>();
  REQUIRE(load_op_library(context));
  LlamaOptions options;
  options.layers = 2;
  options.hidden = 64;
  options.heads = 4;
  options.kv_heads = 2;
  options.ffn = 96;
  options.vocab = options.positions = 64;
  options.max_tokens = 24;
  const auto graph = generate_llama(context, options);
  REQUIRE(graph);
  return written("pipeline_hook.pwg", print_pwg(*graph));
}

/// A prompt of five tokens, another of three beside the first one's next, and one token of each.
std::string steps_file() { return written("pipeline_hook.steps", "1:5\n1:1 2:3\n1:1 2:1\n"); }

struct HookedRun {
  std::vector<StepRun> steps;
  std::string error;
};

HookedRun hooked_run(const std::string& graph, const std::string& backend, const std::string& mode,
                     PieceHook* hook) {
  RunRequest request;
  request.graph.path = graph;
  request.rules = {{"llm"}, "o2", {}};
  request.steps = steps_file();
  request.backend = backend;
  request.engine.driver = "host";
  request.plan.mode = mode;
  request.plan.capture_sizes = {1, 2, 4, 8};
  request.keep = true;
  request.hook = hook;
  HookedRun out;
  const auto context = std::make_shared<Context>();
  const auto done =
      run_model(context, request, {}, [&](const RunRecord& record, const LoadedRules&) -> Status {
        out.steps = record.steps;
        return {};
      });
  if (!done) out.error = render(done.error(), context->sources);
  return out;
}

bool same_bits(const HookedRun& a, const HookedRun& b) {
  if (a.steps.size() != b.steps.size()) return false;
  for (std::size_t s = 0; s < a.steps.size(); ++s) {
    const auto &x = a.steps[s].outputs, &y = b.steps[s].outputs;
    if (x.size() != y.size()) return false;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const TensorView one = x[i].view(), other = y[i].view();
      if (one.extents != other.extents || std::memcmp(one.data, other.data, one.bytes()) != 0)
        return false;
    }
  }
  return true;
}

void check_transfer(const std::string& backend, const std::string& mode) {
  INFO(backend << " " << mode);
  const std::string graph = model_file();
  const HookedRun alone = hooked_run(graph, backend, mode, nullptr);
  REQUIRE(alone.error == "");
  REQUIRE(alone.steps.size() == 3);

  Receiver blind(nullptr);
  const HookedRun without = hooked_run(graph, backend, mode, &blind);
  REQUIRE(without.error == "");
  CHECK_FALSE(same_bits(without, alone));

  Channel channel;
  Sender sender(channel);
  Receiver receiver(&channel);
  HookedRun sent, received;
  std::thread other([&] {
    sent = hooked_run(graph, backend, mode, &sender);
    channel.close();
  });
  received = hooked_run(graph, backend, mode, &receiver);
  other.join();
  CHECK(sent.error == "");
  CHECK(received.error == "");
  CHECK(receiver.layers == 6);  // of two layers in three steps
  CHECK(channel.size() == 6);
  CHECK(same_bits(sent, alone));
  CHECK(same_bits(received, alone));
}

/// Requests an unavailable value, and stores the code of the answer.
class Asker final : public PieceHook {
 public:
  Status before(PieceCall& call) override {
    if (attention_of(call).empty() || !codes.empty()) return {};
    const Names names = attention_of(call);
    const auto k = call.read(names.at("k"));
    if (!k) return tl::unexpected(k.error());
    note(call.read("nobody"));
    note(call.write(names.at("k"), Tensor(DType::f64, k->extents()).view()));
    note(call.write(names.at("k"), Tensor(k->dtype(), {1}).view()));
    return fail(error_in("hook", "PW1216", "no more", ""));
  }
  std::vector<std::string> codes;

 private:
  template <class T>
  void note(const Result<T>& result) {
    codes.push_back(result ? "" : result.error().front().code);
  }
};

/// Writes an input of the graph.
class Presumptuous final : public PieceHook {
 public:
  Status before(PieceCall& call) override {
    const std::string first = call.inputs().front();
    const auto own = call.read(first);
    return own ? call.write(first, own->view()) : tl::unexpected(own.error());
  }
};

}  // namespace

TEST_CASE("hook: keys and values go from a run to another layer by layer", "[pipeline][hook]") {
  check_transfer("eager", "piecewise");
  check_transfer("cpu", "piecewise");
  check_transfer("cuda", "piecewise");
}

TEST_CASE("hook: a step that is one graph runs piece by piece under a hook", "[pipeline][hook]") {
  check_transfer("cuda", "full");
}

TEST_CASE("hook: what it may not have is refused, and its failure ends the step",
          "[pipeline][hook]") {
  const std::string graph = model_file();
  for (const char* backend : {"eager", "cuda"}) {
    INFO(backend);
    Asker asker;
    CHECK(hooked_run(graph, backend, "piecewise", &asker).error.find("no more") !=
          std::string::npos);
    CHECK(asker.codes == std::vector<std::string>{"PW1216", "PW1216", "PW1216"});
    Presumptuous presumptuous;
    CHECK(hooked_run(graph, backend, "piecewise", &presumptuous).error.find("input of the graph") !=
          std::string::npos);
  }
}
