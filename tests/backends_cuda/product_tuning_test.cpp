// Tiles of matmuls: that tuning finds them, that the table keeps them, that a plan uses them.
#include "cuda/product_tuning.hpp"

#include <fmt/format.h>

#include "backends/eager/eager.hpp"
#include "cuda/device/host_driver.hpp"
#include "cuda/kernels/matmul/product.hpp"
#include "cuda/piece_program.hpp"
#include "dsl/dsl.hpp"
#include "kernel_reports/tensor_report.hpp"
#include "tests/backends_cuda/kernel_run.hpp"
#include "tests/catch.hpp"

using namespace pw;
using namespace pw::test;

namespace {

Graph layer(const ContextPtr& context) {
  return need(
      parse_graph(
          context,
          "graph g {\n  symbol n in 1..4096 tokens\n  in x: bf16[n, 4096], w: bf16[6144, "
          "4096], q: bf16[n, 32, 128], k: bf16[n, 8, 128], v: bf16[n, 8, 128]\n  m = "
          "transpose(w){dim0 = 0, dim1 = 1}  y = mm(x, m)\n  z = unified_attention(q, k, v, "
          "none){layer = \"a\"}  out y, z\n}\n",
          "test"),
      *context);
}

cuda::TunedSchedule entry(const Graph& graph, const cuda::ProductTile& tile, bool library_first) {
  const auto products = cuda::tensor_products_of(graph);
  REQUIRE(products.size() == 1);
  cuda::TunedSchedule out;
  out.program = products[0].product.key();
  out.op = "mm";
  out.arch = "sm_90";
  out.rows = 64;
  out.product = cuda::TunedProduct{tile, library_first};
  out.seconds = 1e-6;
  out.default_seconds = 2e-6;
  out.by = "test";
  return out;
}

StitchedGraph in_pieces(const Graph& graph) {
  const Context& context = graph.context();
  return need(split(graph, need(splitting_ops(graph.context_ptr(), nullptr, {}, {}), context)),
              context);
}

std::string problem_of(const std::string& product) {
  const auto table = cuda::ScheduleTable::parse(
      "{\"format\": \"piecewise.schedules/1\", \"schedules\": [{\"program\": \"0\", \"op\": "
      "\"mm\", "
      "\"arch\": \"sm_90\", \"rows\": 1, \"product\": " +
          product + ", \"seconds\": 1, \"default_seconds\": 1, \"by\": \"t\"}]}",
      "s.json");
  return table ? "" : table.error().front().code + " " + table.error().front().message;
}

}  // namespace

TEST_CASE("tuning: a table keeps the tile of a matmul, and refuses other files", "[cuda]") {
  const ContextPtr context = library();
  cuda::ScheduleTable table;
  table.put(entry(layer(context), {64, 128, 1, 4, 4, 3}, false));
  const auto again = cuda::ScheduleTable::parse(table.to_json(), "t");
  REQUIRE(again);
  CHECK(again->entries()[0].product == table.entries()[0].product);
  CHECK(again->to_json() == table.to_json());
  const std::string right =
      "{\"by\": \"own\", \"rows\": 64, \"columns\": 128, \"down\": 1, \"across\": 4, \"stages\": "
      "4, "
      "\"shares\": 3}";
  CHECK(problem_of(right) == "");
  const auto with = [&](const std::string& what, const std::string& other) {
    std::string text = right;
    text.replace(text.find(what), what.size(), other);
    return problem_of(text);
  };
  CHECK(with("\"own\"", "\"cublas\"") ==
        "PW1242 schedules[0]: `by` is neither \"own\" nor \"library\"");
  CHECK(with("\"columns\": 128", "\"columns\": 120") ==
        "PW1242 schedules[0]: `product` is not a tile that kernels support");
  CHECK(with("\"shares\": 3", "\"shares\": -1") ==
        "PW1242 schedules[0]: `shares` is not an integer from 0 to 65535");
  CHECK(problem_of("7").find("PW1242 schedules[0]: `rows` is missing") == 0);
}

TEST_CASE("tuning: a plan has the tile that was found, and its own kernel where that was faster",
          "[cuda][tensor]") {
  const ContextPtr context = library();
  const Graph whole = layer(context);
  const Graph graph = need(
      parse_graph(context,
                  "graph g {\n  symbol n in 1..4096 tokens\n  in x: bf16[n, 4096], w: bf16[6144, "
                  "4096]\n  m = transpose(w){dim0 = 0, dim1 = 1}  y = mm(x, m)  out y\n}\n",
                  "test"),
      *context);
  const auto eager = make_eager();
  const auto sources = [&](bool libraries, const cuda::ScheduleTable* table) {
    cuda::HostDriverOptions how;
    how.arch = "sm_90";
    how.libraries = libraries;
    const cuda::HostDriver driver(cached(how));
    cuda::ProgramOptions options;
    options.tensor_cores = true;
    options.sizes = {{{"n", 64}}};
    options.schedules = {table, "sm_90", "n", 64};
    const auto program = need(cuda::make_program(graph, *eager, driver, options), *context);
    std::string out;
    for (const cuda::Kernel& k : program.kernels) out += k.source.substr(k.source.rfind("// "));
    return out;
  };
  cuda::ScheduleTable library_first, own;
  library_first.put(entry(whole, {64, 128, 1, 4, 4, 3}, true));
  own.put(entry(whole, {64, 128, 1, 4, 4, 3}, false));
  const char* const tile = "pw_product<pw_bf16, 64, 128, 1, 4, 4, 3,";
  CHECK(sources(true, nullptr).empty());
  CHECK(sources(true, &library_first).empty());
  CHECK(sources(true, &own).find(tile) != std::string::npos);
  CHECK(sources(false, &library_first).find(tile) != std::string::npos);
  CHECK(sources(false, nullptr).find("pw_product<pw_bf16") != std::string::npos);
  CHECK(sources(false, nullptr).find(tile) == std::string::npos);
}

TEST_CASE("tuning: without a device the model's tile is chosen, after the library",
          "[cuda][tensor]") {
  const cuda::Nvrtc nvrtc = cuda::Nvrtc::open();
  if (no_compiler(nvrtc)) return;
  const ContextPtr context = library();
  const Graph graph = layer(context);
  const StitchedGraph pieces = in_pieces(graph);
  cuda::TuneOptions options;
  options.arch = "sm_90";
  options.tokens = {1, 256};
  const cuda::TuneReport report = cuda::tune_products(pieces, "n", options, nvrtc);
  CHECK(report.skipped.empty());
  REQUIRE(report.tuned.size() == 2);
  for (const cuda::Tuned& t : report.tuned) {
    REQUIRE(t.chosen.product);
    CHECK(t.chosen.product->library);
    CHECK(t.chosen.product->tile ==
          cuda::choose_tile(*cuda::tensor_machine("sm_90"), {t.tokens, 4096, 6144, 2, 2}));
    CHECK(t.chosen.seconds > 0);
    CHECK(t.chosen.by == "model of H100 SXM");
  }
  options.strict = true;
  CHECK(cuda::tune_products(pieces, "n", options, nvrtc).tuned.empty());
}

TEST_CASE("tuning: a library call is timed where the device takes it", "[cuda]") {
  const ContextPtr context = library();
  const Graph graph =
      need(parse_graph(
               context,
               "graph g {\n  symbol n in 1..64 tokens\n  in x: bf16[n, 24], w: bf16[16, 24], c: "
               "bf16[16]\n  m = transpose(w){dim0 = 0, dim1 = 1}  y = addmm(c, x, m)  out y\n}\n",
               "test"),
           *context);
  const auto products = cuda::tensor_products_of(graph);
  REQUIRE(products.size() == 1);
  CHECK(products[0].nodes.size() == 2);
  const auto seconds = [&](bool libraries) {
    cuda::HostDriverOptions how;
    how.libraries = libraries;
    cuda::HostDriver driver(cached(how));
    return cuda::measure_library(driver, graph, products[0].nodes, {{"n", 3}});
  };
  const auto there = seconds(true);
  REQUIRE(there);
  CHECK(*there > 0);
  CHECK_FALSE(seconds(false));
}

TEST_CASE("quality: tensor-core kernels of a plan, with their bounds and the model's times",
          "[cuda][tensor]") {
  const ContextPtr context = library();
  const Graph graph = layer(context);
  const StitchedGraph pieces = in_pieces(graph);
  cuda::TensorRequest request;
  request.archs = {"sm_80", "sm_90"};
  request.tokens_symbol = "n";
  request.tokens = 64;
  const auto reports = cuda::tensor_reports(pieces, request, {});
  REQUIRE(reports.size() == 4);
  for (const cuda::TensorReport& r : reports) {
    INFO(r.op << " " << r.arch << " " << r.work);
    CHECK((r.op == "mm" || r.op == "unified_attention"));
    CHECK(r.work == (r.op == "mm" ? "64x4096x6144" : "64 of 1 after 4095, 32 heads in 8 of 128"));
    CHECK(r.seconds >= r.bound_seconds);
    CHECK(r.bound_seconds > 0);
    CHECK(!r.usage);
    CHECK(r.threads > 0);
    CHECK(r.shared_bytes > 0);
    REQUIRE(r.accesses);
    if (r.op != "mm") continue;
    // Each row of tiles reads all of b, each tile its rows of a; pieces are written once more.
    CHECK(r.accesses->global_reads.bytes() >= 2 * 4096 * (64 + 6144));
    CHECK(r.accesses->global_writes.bytes() >= 2 * 64 * 6144);
    CHECK((r.accesses->global_writes.bytes() > 2 * 64 * 6144) == (r.parts > 1));
  }
}

TEST_CASE("quality: decodes of many sequences have a kernel of their own", "[cuda][tensor]") {
  const ContextPtr context = library();
  const Graph graph = layer(context);
  const StitchedGraph pieces = in_pieces(graph);
  cuda::TensorRequest request;
  request.archs = {"sm_80", "sm_90"};
  request.tokens_symbol = "n";
  request.tokens = 512;
  const auto of_query = [&](std::int64_t query) {
    request.query = query;
    std::vector<cuda::TensorReport> out = cuda::tensor_reports(pieces, request, {});
    std::erase_if(out, [](const cuda::TensorReport& r) { return r.op != "unified_attention"; });
    REQUIRE(out.size() == 4);
    CHECK(out[0].work == "1 of 512 after 0, 32 heads in 8 of 128");
    CHECK(out[0].kernel != out[1].kernel);
    return out;
  };
  const std::string line = " 32 heads in 8 of 128";
  for (const cuda::TensorReport& r : {of_query(1)[1], of_query(1)[3]}) {
    CHECK(r.work == "512 of 1 after 4095," + line);
    CHECK(r.seconds < 1.1 * r.bound_seconds);
  }
  // Speculative tokens of a sequence share its keys.
  for (const cuda::TensorReport& r : {of_query(4)[1], of_query(4)[3]}) {
    CHECK(r.work == "128 of 4 after 4092," + line);
    CHECK(r.seconds < 1.1 * r.bound_seconds);
    REQUIRE(r.accesses);
    CHECK(r.accesses->global_reads.bytes() < 1.2 * 2 * 128 * 4096 * 8 * 128 * 2);
  }
}
