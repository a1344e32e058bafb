#include "tests/fuzz/formats.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include <fmt/format.h>

#include "backends/host_arguments.hpp"
#include "cli/config_value.hpp"
#include "cuda/kernels/matmul/schedules.hpp"
#include "dsl/dsl.hpp"
#include "dsl/editing/query.hpp"
#include "dsl/graph_formats.hpp"
#include "exec/named_tensors.hpp"
#include "exec/steps.hpp"
#include "graph/captured/captured_graph.hpp"
#include "graph/text/graph_json.hpp"
#include "graph/text/text.hpp"
#include "graph/verify.hpp"
#include "import/fx/fx.hpp"
#include "import/pt2/pt2.hpp"
#include "import/pt2/tensors.hpp"
#include "kernel_reports/kernel_quality.hpp"
#include "lsp/frames.hpp"
#include "lsp/server.hpp"
#include "models/generate.hpp"
#include "splitter/histogram.hpp"
#include "splitter/plan_text.hpp"
#include "splitter/splitter.hpp"
#include "tensor/safetensors.hpp"
#include "tests/dsl/mutants.hpp"
#include "tests/fuzz/random_graph.hpp"
#include "tests/pt2/archives.hpp"
#include "verify/baseline.hpp"
#include "viz/named_journal.hpp"

namespace pw::test {
namespace {

constexpr std::string_view kInContext[] = {"pwr", "pwg",     "graph_json", "fx",    "captured",
                                           "pt2", "program", "query",      "config"};

void require(bool holds, const std::string& what) {
  if (!holds) throw std::logic_error(what);
}

template <class T>
Read done(const Result<T>& result) {
  if (!result) return tl::unexpected(result.error());
  return {};
}

std::vector<std::string> files(const std::vector<std::string>& folders, std::string_view ending) {
  std::vector<std::string> paths, texts;
  for (const std::string& folder : folders)
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().generic_string().ends_with(ending))
        paths.push_back(entry.path().generic_string());
  std::ranges::sort(paths);
  for (const std::string& path : paths) {
    std::ifstream in(path, std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  require(!texts.empty(), "there are files of " + std::string(ending));
  return texts;
}

/// A report that a baseline can be compared with.
QualityReport judged() {
  QualityReport out;
  out.nvrtc_version = "13.0";
  out.rows.push_back({.function = "rms_norm", .width = 4096, .quality = {}});
  out.rows.front().quality.arch = "sm_90";
  return out;
}

/// Two kernels, a graph in the graph, a programmatic edge, and a kernel in one of two bodies.
CapturedLaunches small_capture() {
  CapturedLaunches out;
  out.name = "graph_0001";
  out.nodes.resize(6);
  out.nodes[0] = {LaunchKind::memset, {}, {}, {}, 0, 64, {}, {}};
  out.nodes[1] = {LaunchKind::kernel, "void f<int>(int)", {4, 1, 1}, {128, 1, 1}, 16, {}, "mm", 3};
  out.nodes[2] = {LaunchKind::kernel, "rms_norm", {1, 1, 1}, {32, 1, 1}, 0, {}, {}, 3};
  out.nodes[3].kind = LaunchKind::graph;
  out.nodes[4] = out.nodes[2];
  out.nodes[4].inside = 5;
  out.nodes[4].body = 1;
  out.nodes[5].kind = LaunchKind::conditional;
  out.nodes[5].condition = CapturedCondition{ConditionKind::choice, 2};
  out.edges = {{0, 1}, {1, 2, true, 1, 0}, {2, 3}, {3, 4}, {4, 5}};
  return out;
}

/// A graph that was read is well formed, and its own text reads back as the same graph.
Read sound_capture(const ContextPtr& context, const Result<CapturedLaunches>& capture) {
  if (!capture) return done(capture);
  const std::string text = captured_to_json(*capture);
  const auto again = captured_from_json(text, "written");
  require(again && captured_to_json(*again) == text, "written:\n" + text);
  const auto graph = graph_of(context, *capture);
  if (graph) require(verify(*graph).empty(), "a captured graph holds together");
  return done(graph);
}

Read sound(const ContextPtr& context, const Result<Graph>& graph) {
  if (!graph) return done(graph);
  require(verify(*graph).empty(), "a graph that is read holds together");
  const std::string text = print_pwg(*graph);
  const auto again = parse_graph(context, text, "printed");
  if (!again) throw std::logic_error("printed:\n" + text + render(again.error(), context->sources));
  require(print_pwg(*again) == text, "printed twice:\n" + text + print_pwg(*again));
  return {};
}

std::vector<Graph> graphs(const ContextPtr& context) {
  const GraphGenerator generator(context);
  std::vector<Graph> out;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) out.push_back(generator.graph(seed).graph);
  LlamaOptions options;
  options.layers = 1;
  out.push_back(generate_llama(context, options).value());
  return out;
}

std::string plan_text(const ContextPtr& context) {
  LlamaOptions options;
  options.layers = 1;
  const Graph graph = generate_llama(context, options).value();
  const auto at = splitting_ops(context, nullptr, {}, {}).value();
  const StitchedGraph pieces = split(graph, at).value();
  return plan_to_json(make_plan(pieces, graph, {}).value(), pieces);
}

/// Eight bytes of length, then the header.
std::string safetensors(const std::string& header, std::size_t contents) {
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header.size() >> (8 * i));
  return bytes + header + std::string(contents, '\1');
}

/// Messages of an editor.
std::string lsp_session() {
  const std::string document = R"({"textDocument":{"uri":"file:///nowhere/a.pwr","version":1)";
  const std::string at = R"(},"position":{"line":0,"character":14}}})";
  std::string out;
  for (const std::string& message :
       {std::string(R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{}})"),
        R"({"jsonrpc":"2.0","method":"textDocument/didOpen","params":)" + document +
            R"(,"text":"rule r { y = relu(x: T[n]) => y = silu(x) }"}}})",
        R"({"jsonrpc":"2.0","id":2,"method":"textDocument/hover","params":)" + document + at,
        R"({"jsonrpc":"2.0","id":3,"method":"textDocument/completion","params":)" + document + at,
        R"({"jsonrpc":"2.0","method":"textDocument/didChange","params":)" + document +
            R"(},"contentChanges":[{"range":{"start":{"line":0,"character":5},)" +
            R"("end":{"line":0,"character":6}},"text":"s"}]}})",
        std::string(R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":3}})"),
        std::string(R"({"jsonrpc":"2.0","id":"x","method":"shutdown"})")})
    out += cli::framed(message);
  return out;
}

/// Refused if any of it is.
Read serve_session(const std::string& stream) {
  std::string refusal;
  cli::Server server([&](const std::string& message) {
    if (message.find("\"error\":") != std::string::npos) refusal = message;
  });
  cli::FrameReader frames;
  frames.feed(stream);
  while (const auto frame = frames.next()) {
    if (!frame->problem.empty())
      server.refuse_frame(frame->problem);
    else
      server.receive(frame->content);
    while (server.work()) {
    }
  }
  if (refusal.empty()) return {};
  return fail(error_in("the session", "PW1400", refusal));
}

}  // namespace

ContextPtr fresh_context() {
  const auto context = std::make_shared<Context>();
  require(load_op_library(context).has_value(), "the op library loads");
  return context;
}

std::vector<Format> formats() {
  const ContextPtr context = fresh_context();
  std::vector<Format> out;
  std::vector<std::string> pwg, json;
  for (const Graph& graph : graphs(context)) {
    pwg.push_back(print_pwg(graph));
    json.push_back(graph_to_json(graph));
  }
  out.push_back({"pwr", files({"rules", "examples", "tests/language"}, ".pwr"),
                 [](const ContextPtr& c, const std::string& text) {
                   return done(load_rule_texts(c, {{"mutant.pwr", text}}));
                 }});
  out.push_back({"pwg", pwg, [](const ContextPtr& c, const std::string& text) {
                   return sound(c, parse_graph(c, text, "mutant.pwg"));
                 }});
  out.push_back({"graph_json", json, [](const ContextPtr& c, const std::string& text) {
                   return sound(c, graph_from_json(c, text, "mutant.json", parse_op));
                 }});
  out.push_back({"captured",
                 {captured_to_json(small_capture())},
                 [](const ContextPtr& c, const std::string& text) {
                   return sound_capture(c, captured_from_json(text, "mutant.json"));
                 }});
  out.push_back({"fx", files({"tests/graph/fixtures", "tests/graph/fixtures/forms"}, ".fx.txt"),
                 [](const ContextPtr& c, const std::string& text) {
                   auto read = import_fx(c, text, {.file = "mutant.txt"});
                   return done(read);
                 }});
  out.push_back(
      {"program", {small_program().json()}, [](const ContextPtr& c, const std::string& text) {
         auto read = pt2::import_program(c, text, "model.json", {.file = "mutant.pt2"});
         if (read) require(verify(read->graph).empty(), "a program holds together");
         return done(read);
       }});
  out.push_back(
      {"pt2", {zip_of(small_archive())}, [](const ContextPtr& c, const std::string& text) {
         if (auto graph = read_graph(c, text, {.file = "mutant.pt2"}); !graph) return done(graph);
         return done(safetensors_of_pt2(text, "mutant.pt2"));
       }});
  for (const GraphFormat& format : graph_formats())
    if (format.examples != nullptr)
      out.push_back({fmt::format("graph_{}", out.size()), format.examples(),
                     [read = format.read](const ContextPtr& c, const std::string& text) {
                       return done(read(c, text, {.file = "mutant"}));
                     }});
  out.push_back(
      {"query",
       {"y = relu(x: bf16[*b, d]) where d % 8 == 0", "many p = mm(x, w)  y = cat(p...)",
        "q, s = dynamic_per_token_fp8_quant(rms_norm(x, w){eps})"},
       [](const ContextPtr& c, const std::string& text) { return done(load_query(c, {}, text)); }});
  out.push_back({"plan", {plan_text(context)}, [](const ContextPtr&, const std::string& text) {
                   return done(plan_from_json(text, "mutant.json"));
                 }});
  out.push_back({"histogram",
                 {"1 10\n2 20\n512 3\n# end\n", "{\"1\": 4, \"7\": 9}"},
                 [](const ContextPtr&, const std::string& text) {
                   return done(read_histogram(text, "mutant.txt"));
                 }});
  out.push_back(
      {"step_times", {"1 0.5\n2 0.75\n512 3e-3\n"}, [](const ContextPtr&, const std::string& text) {
         return done(read_step_times(text, "mutant.txt"));
       }});
  out.push_back({"steps",
                 {"0:3 1:5\n0:1 1:1\n0. 1:1 2:9 # more\n"},
                 [](const ContextPtr&, const std::string& text) {
                   return done(parse_steps(text, "mutant.txt"));
                 }});
  out.push_back(
      {"safetensors",
       {safetensors(R"({"w":{"dtype":"F32","shape":[2,4],"data_offsets":[0,32]},)"
                    R"("v":{"dtype":"BF16","shape":[4],"data_offsets":[32,40]}})",
                    40),
        safetensors(
            R"({"__metadata__":{"a":"b"},"w":{"dtype":"I64","shape":[],"data_offsets":[0,8]}})",
            8)},
       [](const ContextPtr&, const std::string& text) {
         return done(parse_safetensors(text, "mutant.safetensors"));
       }});
  out.push_back({"tensor_map",
                 {R"({"l{i}_w": "layers.{i}.weight", "w": "model.w"})"},
                 [](const ContextPtr&, const std::string& text) {
                   return done(TensorMap::parse(text, "mutant.json"));
                 }});
  out.push_back({"schedules", files({"cuda/kernels/matmul"}, "schedules.json"),
                 [](const ContextPtr&, const std::string& text) {
                   return done(cuda::ScheduleTable::parse(text, "mutant.json"));
                 }});
  out.push_back({"baseline", files({"tests/baselines"}, ".counts.json"),
                 [](const ContextPtr&, const std::string& text) {
                   return done(baseline_from_json(text, "mutant.json"));
                 }});
  out.push_back({"quality",
                 {R"({"nvrtc":"13.0","kernels":[{"function":"rms_norm","width":4096,)"
                  R"("arch":"sm_90","threads":512,"classes":{"math":3}}]})"},
                 [](const ContextPtr&, const std::string& text) {
                   return done(quality_changes(judged(), text, "mutant.json", {}));
                 }});
  out.push_back({"arguments",
                 {"%0, 2, dim=$axis, other=[%1, None]", "%0"},
                 [](const ContextPtr&, const std::string& text) {
                   return done(read_skeleton(text, "mutant"));
                 }});
  out.push_back(
      {"journal",
       {R"({"event":"pass_begin","pass":"clean","nodes":65})"
        "\n"
        R"({"event":"builtin","pass":"cse","erased":[{"id":11,"name":"a","op":"split"}]})"
        "\n"
        R"({"event":"match","rule":"noop.detach","matched":[{"id":1,"name":"d","op":"x"}],)"
        R"("bindings":{"x":{"id":4,"name":"arg4_1"}},"created":[],"erased":[]})"
        "\n"},
       [](const ContextPtr&, const std::string& text) {
         return done(named_journal_from_json(text, "mutant.jsonl"));
       }});
  out.push_back({"overlay",
                 {R"({"layers.0.mm": 0.25, "y": 3})"},
                 [](const ContextPtr&, const std::string& text) {
                   return done(overlay_from_json(text, "mutant.json"));
                 }});
  out.push_back({"config",
                 {"rules = [\"llm\", 'mine.pwr'] # both\nquiet = true\n[run]\ntokens = [1, 7]\n"
                  "define = { tp = 2 }\nrtol = 1e-3\n",
                  "[run.define]\ntp = 2\n[[bench]]\nseed = 0x1F\nday = 2024-01-01\n\"é\" = 1\n"},
                 [](const ContextPtr& c, const std::string& text) {
                   return done(cli::parse_config(c->sources, text, "mutant.toml"));
                 }});
  out.push_back({"lsp", {lsp_session()}, [](const ContextPtr&, const std::string& text) {
                   return serve_session(text);
                 }});
  for (Format& format : out)
    format.uses_context = std::ranges::find(kInContext, format.name) != std::end(kInContext);
  return out;
}

/// Tokens of all formats, and bytes that parsers stumble over.
std::vector<std::string> foreign_tokens(const std::vector<Format>& formats) {
  std::vector<std::string> tokens{"[[[[[[[[",
                                  "}}}}",
                                  "9223372036854775808",
                                  "-1",
                                  "1e999",
                                  "\"",
                                  std::string(1, '\0'),
                                  "\xff\xfe",
                                  "\\u0000",
                                  "/*",
                                  "//",
                                  "\r",
                                  "99999999999999999999",
                                  std::string(400, '(')};
  for (const Format& format : formats) {
    const std::vector<std::string> pieces = pieces_of(format.texts.front());
    for (std::size_t i = 0; i < pieces.size(); i += 1 + pieces.size() / 40)
      tokens.push_back(pieces[i]);
  }
  return tokens;
}

/// A refusal has a code and a location inside the text that was read.
void check_refusal(const Diagnostics& errors, const Context& context) {
  require(!errors.empty(), "a refusal has a reason");
  for (const Diagnostic& d : errors) {
    require(d.code.starts_with("PW"), "no code: " + d.message);
    require(!d.message.empty(), "no message: " + d.code);
  }
  const std::string shown = render(errors, context.sources);
  require(shown.size() < 200000, "a short message");
  require(shown.find('\x1b') == std::string::npos, "no escapes: " + shown);
}

}  // namespace pw::test
