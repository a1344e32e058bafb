// What the default mode does for the vector unit: two columns at a time, partial results side by
// side, a reciprocal for a row. Inputs are such that the order and the place of roundings cannot
// show, so that strict code must give the same bits.
#include <limits>
#include <tuple>

#include <fmt/ranges.h>

#include "backends/cpu/emitter.hpp"
#include "backends/interpreter/interpreter.hpp"
#include "codegen/rowprogram/decisions.hpp"
#include "codegen/rowprogram/grouping.hpp"
#include "tests/backends/graphs.hpp"
#include "tests/backends/primitive_forms.hpp"
#include "tests/backends_cpu/running.hpp"

namespace {

using namespace pw;
using namespace pw::test;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Both {
  ContextPtr context = library();
  CpuBackend fast, strict{{.strict = true}};

  Graph graph(const std::string& text) {
    auto parsed = parse_graph(context, "graph g {\n" + text + "\n}\n", "test");
    if (!parsed) FAIL(render(parsed.error(), context->sources));
    return std::move(*parsed);
  }
  /// Returns the outputs of the default mode after comparing them with those of strict code.
  std::vector<Tensor> run(const Graph& g, const std::vector<Tensor>& inputs,
                          const Symbols& symbols = {}) {
    const RunContext context_of_run{symbols, nullptr, 5};
    auto got = outputs_of(fast, g, views_of(inputs), context_of_run);
    const auto wanted = outputs_of(strict, g, views_of(inputs), context_of_run);
    for (std::size_t i = 0; i < got.size(); ++i) {
      INFO("output " << i);
      CHECK(bit_difference(got[i], wanted[i]) == "");
    }
    return got;
  }
};

/// Any bits: infinities, NaNs and subnormal numbers are among them.
std::vector<Tensor> any_bits(const Graph& graph, std::uint64_t seed) {
  Random random(seed);
  std::vector<Tensor> inputs = random_inputs(graph, {}, seed);
  for (Tensor& t : inputs) {
    for (std::size_t i = 0; i < t.view().bytes(); ++i)
      t.data()[i] = static_cast<std::byte>(random.below(256));
  }
  return inputs;
}

Tensor floats(Extents extents, const std::function<float(std::int64_t)>& of) {
  Tensor t(DType::f32, std::move(extents));
  for (std::int64_t i = 0; i < t.view().count(); ++i) store(DType::f32, t.data(), i, of(i));
  return t;
}

}  // namespace

TEST_CASE("cpu: computed numbers compare as if each were rounded", "[cpu]") {
  if (!have_compiler()) return;
  Both on;
  for (const char* dtype : {"bf16", "f16", "f32"}) {
    for (const char* dim : {"0", "1"}) {
      INFO(dtype << ", dim " << dim);
      on.run(
          on.graph(fmt::format("in a: {0}[40, 96], b: {0}[40, 96]\n"
                               "y = a * b  m = amax(y){{dim = {1}, keepdim = true}}\n"
                               "c = eq(y, m)  d = eq(sub(y, m), 0)  e = eq(div(y, m), 1)\n"
                               "f = eq(sub(mul(a, b), mul(b, a)), 0)  g = floor(y * 3)\n"
                               "h = i32(add(y, a))  i = ge(mul(y, a), mul(m, a))\n"
                               "out c, d, e, f, g, h, i",
                               dtype, dim)),
          random_inputs(on.graph(fmt::format("in a: {0}[40, 96], b: {0}[40, 96]\nout a, b", dtype)),
                        {}, 5));
    }
  }
  // Without a comparison of computed numbers, round trips in a kernel are dropped as before.
  const Graph plain = on.graph("in a: bf16[4, 96]\ny = exp(a * a) * a  out y");
  const Graph mask = on.graph("in a: bf16[4, 96]\ny = select(gt(a, 0), exp(a * a) * a, a)  out y");
  for (const Graph* g : {&plain, &mask})
    for (const rows::RunUnit& unit : rows::group_rows(*g)) CHECK(!rows::decides(unit.program));
}

TEST_CASE("cpu: two columns at a time are what each of them is alone", "[cpu]") {
  if (!have_compiler()) return;
  Both on;
  for (const char* type : {"bf16", "f16", "f8e4m3"}) {
    for (int width : {63, 66, 190}) {
      INFO(type << ", " << width << " columns");
      // The sum over the row makes a loop of the columns.
      const Graph g = on.graph(
          fmt::format("in x: {0}[5, {1}], z: bf16[5, {1}], f: f32[5, {1}], w: {0}[{1}]\n"
                      "m = amax(abs(f32(x))){{dim = -1, keepdim = true}}\n"
                      "y = bf16(f32(x) * f32(z))  q = {0}(f32(w) * f32(z))  h = f16(f32(x) * f)\n"
                      "c = cat(x, slice(x){{dim = -1, start = 0, end = 32}}){{dim = -1}}\n"
                      "p = x * w  out y, q, h, p, c, m",
                      type, width));
      on.run(g, random_inputs(g, {}, 1));
      on.run(g, any_bits(g, 2));
    }
  }
}

TEST_CASE("cpu: neighbours stored as bf16 are rounded in one word", "[cpu]") {
  // Narrowed first, they cost GCC 12 half as many instructions again.
  Both on;
  const Graph g = on.graph(
      "in x: bf16[5, 64], w: bf16[64]\n"
      "m = mean(f32(x) * f32(x)){dim = -1, keepdim = true}\n"
      "y = bf16(f32(x) * rsqrt(m)) * w  out y");
  const auto units = rows::group_rows(g);
  REQUIRE(units.size() == 1);
  const std::string fast = cpu::emit(units[0].program, {});
  CHECK(fast.find("pw_above_bf16(") != std::string::npos);
  CHECK(fast.find("pw_to_bf16(") == std::string::npos);
  cpu::EmitOptions strict;
  strict.strict = true;
  CHECK(cpu::emit(units[0].program, strict).find("pw_above_bf16(") == std::string::npos);
  if (!have_compiler()) return;
  on.run(g, any_bits(g, 3));
}

TEST_CASE("cpu: sums side by side are sums", "[cpu]") {
  if (!have_compiler()) return;
  Both on;
  const std::string text =
      "in x: f32[5, {0}], y: bf16[5, {0}]\n"
      "a = sum(x){{dim = -1}}  b = mean(x * x){{dim = -1}}  c = amax(x){{dim = -1}}\n"
      "d = amin(x){{dim = -1}}  e = amax(abs(x)){{dim = -1}}  f = sum(f32(y)){{dim = -1}}\n"
      "out a, b, c, d, e, f";
  // Whole numbers: their sums are exact in any order.
  const auto filled = [](const Graph& g, const Symbols& symbols) {
    std::vector<Tensor> inputs = random_inputs(g, symbols, 3);
    for (Tensor& t : inputs) {
      for (std::int64_t i = 0; i < t.view().count(); ++i)
        store(t.dtype(), t.data(), i, std::trunc(3 * load(t.dtype(), t.data(), i)));
    }
    return inputs;
  };
  for (int width : {1, 8, 31, 64, 192, 257, 1000}) {
    INFO(width << " columns");
    const Graph g = on.graph(fmt::format(fmt::runtime(text), width));
    on.run(g, filled(g, {}));
  }
  const Graph g = on.graph("symbol k in 1..4096\n" + fmt::format(fmt::runtime(text), "k"));
  for (std::int64_t width : {1, 63, 64, 300}) {
    INFO("k = " << width);
    on.run(g, filled(g, {{"k", width}}), {{"k", width}});
  }
}

TEST_CASE("cpu: reductions across memory run on neighbours at once", "[cpu]") {
  Both on;
  const std::string text =
      "in x: f32[{0}, {1}], y: bf16[{0}, {1}], z: f32[4, {0}, {1}]\n"
      "a = sum(x){{dim = 0}}  b = mean(x * x){{dim = 0}}  c = amax(x){{dim = 0}}\n"
      "d = amin(x){{dim = 0}}  e = sum(f32(y)){{dim = 0}}  f = sum(z){{dim = 1}}\n"
      "g = y - bf16(mean(f32(y)){{dim = 0, keepdim = true}})\n"
      "h = (z - amax(z){{dim = 1, keepdim = true}}) * sum(z){{dim = 1, keepdim = true}}\n"
      "i = exp(x)  j = sum(exp(x) * 0){{dim = 0}}\n"
      "out a, b, c, d, e, f, g, h, i, j";
  // Whole numbers: their sums are exact in any order.
  const auto filled = [](const Graph& g, const Symbols& symbols) {
    std::vector<Tensor> inputs = random_inputs(g, symbols, 4);
    for (Tensor& t : inputs) {
      for (std::int64_t i = 0; i < t.view().count(); ++i)
        store(t.dtype(), t.data(), i, std::trunc(3 * load(t.dtype(), t.data(), i)));
    }
    return inputs;
  };
  const Graph large = on.graph(fmt::format(fmt::runtime(text), 600, 700));
  std::size_t strips = 0;
  for (const rows::RunUnit& unit : rows::group_rows(large))
    if (unit.kind == rows::RunUnit::Kind::rows)
      strips += cpu::emit(unit.program, {}).find("const long long n") != std::string::npos ? 1 : 0;
  CHECK(strips > 0);
  if (!have_compiler()) return;
  for (const auto& [rows, columns] : {std::pair(600, 700), {1, 9}, {17, 17}, {150, 64}, {3, 513}}) {
    INFO(rows << " rows, " << columns << " columns");
    const Graph g = on.graph(fmt::format(fmt::runtime(text), rows, columns));
    on.run(g, filled(g, {}));
  }
  const Graph g = on.graph("symbol k in 1..4096\nsymbol m in 1..4096\n" +
                           fmt::format(fmt::runtime(text), "k", "m"));
  for (const auto& [rows, columns] : {std::pair(1, 1), {150, 7}, {7, 600}, {33, 33}}) {
    INFO("k = " << rows << ", m = " << columns);
    const Symbols symbols{{"k", rows}, {"m", columns}};
    on.run(g, filled(g, symbols), symbols);
  }
}

TEST_CASE("cpu: a NaN anywhere in a column is its maximum and its minimum", "[cpu]") {
  if (!have_compiler()) return;
  Both on;
  const Graph g = on.graph(
      "in x: f32[150, 40]\na = amax(x){dim = 0}  b = amin(x){dim = 0}  c = sum(x){dim = 0}\nout a, "
      "b, c");
  for (const float special : {kNan, -kNan, kInfinity, -kInfinity}) {
    (void)on.run(g, {floats({150, 40}, [&](std::int64_t i) {
                   return i / 40 == (i % 40) * 3 ? special : static_cast<float>(i % 7) - 3;
                 })});
  }
}

TEST_CASE("cpu: a NaN anywhere in a row is its largest magnitude, its maximum and its minimum",
          "[cpu]") {
  if (!have_compiler()) return;
  Both on;
  const Graph g = on.graph(
      "in x: f32[5, 150]\n"
      "a = amax(abs(x)){dim = -1}  b = amax(x){dim = -1}  c = amin(x){dim = -1}\n"
      "out a, b, c");
  for (const float special : {kNan, -kNan, kInfinity, -kInfinity}) {
    for (int row = 0; row < 150; row += 5) {
      // Row r has it in column row + r.
      const auto got =
          on.run(g, {floats({5, 150}, [&](std::int64_t i) {
                   return i % 150 == row + i / 150 ? special : static_cast<float>(i % 7) - 3;
                 })});
      if (!std::isnan(special)) continue;
      for (const Tensor& t : got) {
        for (std::int64_t i = 0; i < 5; ++i) CHECK(std::isnan(load(t.dtype(), t.data(), i)));
      }
    }
  }
}

TEST_CASE("cpu: a division by what stays the same along a row is a division", "[cpu]") {
  if (!have_compiler()) return;
  Both on;
  const std::string text = "in x: f32[12, 64], s: f32[12, 1]\nm = amax(x){dim = -1}\n";
  const Graph g = on.graph(text + "y = x / s  out y, m"),
              ties = on.graph(text + "y = f8e4m3(x / s)  out y, m");
  const float divisors[] = {1,      3,       -7e-3f,    1e38f, 3e38f, 1e-37f,
                            1e-40f, -1e-45f, kInfinity, 0.0f,  -0.0f, kNan};
  const float dividends[] = {0.0f, -0.0f, 1, -5, 1e-38f, 3e38f, kInfinity, -kInfinity, kNan, 0.3f};
  const Tensor x = floats({12, 64}, [&](std::int64_t i) { return dividends[i % 64 % 10]; }),
               s = floats({12, 1}, [&](std::int64_t i) { return divisors[i]; });
  const RunContext run{{}, nullptr, 12};
  const auto got = outputs_of(on.fast, g, {x.view(), s.view()}, run),
             wanted = outputs_of(on.strict, g, {x.view(), s.view()}, run);
  (void)on.run(ties, {x, s});  // rounded once, where it may lie halfway between two of fp8
  for (std::int64_t i = 0; i < 12 * 64; ++i) {
    const auto a = static_cast<float>(load(DType::f32, got[0].data(), i)),
               b = static_cast<float>(load(DType::f32, wanted[0].data(), i));
    const float by = divisors[i / 64];
    INFO(dividends[i % 64 % 10] << " / " << by);
    const bool tiny = by != 0 && std::fabs(by) < std::numeric_limits<float>::min();
    if (std::isnan(b) || b == 0 || std::isinf(by)) {
      CHECK((std::isnan(a) == std::isnan(b) && (std::isnan(b) || a == b)));
    } else if (tiny) {  // the reciprocal is out of range: of the right sign, and large
      CHECK(std::signbit(a) == std::signbit(b));
      CHECK(!std::isnan(a));
    } else {
      const bool near = a == b || std::fabs(a - b) <= 2e-7f * std::fabs(b) ||
                        std::fabs(a - b) <= 2 * std::numeric_limits<float>::denorm_min();
      CHECK(near);
    }
  }
}

TEST_CASE("cpu: functions in a kernel are those of the interpreter, for any number", "[cpu]") {
  if (!have_compiler()) return;
  Both on;
  std::vector<std::string> calls = primitive_forms(1), names;
  for (const std::string& form : primitive_forms(2)) calls.push_back(form);
  calls.emplace_back("pow(z, 3)");
  std::string text = "in x: f32[5, 2048], z: f32[5, 2048]\n";
  for (const std::string& call : calls) {
    names.push_back(fmt::format("y{}", names.size()));
    text += fmt::format("{} = {}\n", names.back(), call);
  }
  const Graph g = on.graph(fmt::format("{}out {}", text, fmt::join(names, ", ")));
  std::vector<Tensor> inputs = any_bits(g, 5);
  // Half of the numbers, so that their powers are not all 0 or infinity.
  const std::vector<Tensor> normal = random_inputs(g, {}, 6);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    std::memcpy(inputs[i].data(), normal[i].data(), normal[i].view().bytes() / 2);
  const RunContext run{{}, nullptr, 5};
  const auto oracle = make_interpreter(Precision::single);
  const auto wanted = outputs_of(*oracle, g, views_of(inputs), run),
             strict = outputs_of(on.strict, g, views_of(inputs), run),
             fast = outputs_of(on.fast, g, views_of(inputs), run);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    INFO(calls[i]);
    CHECK(bit_difference(strict[i], wanted[i]) == "");
    for (std::int64_t e = 0; e < wanted[i].view().count(); ++e) {
      const double a = load(fast[i].dtype(), fast[i].data(), e),
                   b = load(wanted[i].dtype(), wanted[i].data(), e);
      const bool near = a == b || (std::isnan(a) && std::isnan(b)) ||
                        std::fabs(a - b) <= std::max(2.4e-7 * std::fabs(b), 3e-45);
      if (!near) FAIL_CHECK("element " << e << ": " << a << ", not " << b);
    }
  }
}

TEST_CASE("cpu: what all heads of a row read is split into pairs once", "[cpu][diff]") {
  if (!have_compiler()) return;
  Both both;
  const auto whole = [](std::int64_t i) { return static_cast<float>(i * 7 % 13 - 6); };
  const auto narrow = [&](Extents extents) {
    Tensor t(DType::bf16, std::move(extents));
    for (std::int64_t i = 0; i < t.view().count(); ++i)
      store(DType::bf16, t.data(), i, whole(i + 3));
    return t;
  };
  Tensor positions(DType::i64, {5});
  for (std::int64_t i = 0; i < 5; ++i)
    store(DType::i64, positions.data(), i, static_cast<double>(i * 11 % 24));
  // Too few heads, enough; two loops that share a table; too many columns.
  for (const auto& [q, k, head] :
       {std::tuple(3, 1, 128), {4, 2, 128}, {8, 5, 128}, {5, 5, 256}, {4, 4, 4096}}) {
    INFO(q << " and " << k << " heads of " << head);
    const Graph graph =
        both.graph(fmt::format("in i: i64[5], q: bf16[5, {}], k: bf16[5, {}], t: f32[24, {}]\n"
                               "a, b = rotary_embedding(i, q, k, t){{head = {}}}  out a, b",
                               q * head, k * head, head, head));
    std::vector<Tensor> inputs;
    inputs.push_back(positions);
    inputs.push_back(narrow({5, q * head}));
    inputs.push_back(narrow({5, k * head}));
    inputs.push_back(floats({24, head}, [](std::int64_t n) {
      return static_cast<float>(n * 5 % 9 - 4) / 4;  // products and sums are exact
    }));
    both.run(graph, inputs);
  }
  // A table of each head's own, and one that a number of the head picks, are read as they stand.
  const Graph own = both.graph(
      "in x: bf16[5, 4, 128], t: f32[4, 128], u: f32[9, 128], n: i64[5, 4]\n"
      "y = x * t + x * embedding(u, n)  out y");
  std::vector<Tensor> inputs;
  inputs.push_back(narrow({5, 4, 128}));
  inputs.push_back(floats({4, 128}, whole));
  inputs.push_back(floats({9, 128}, whole));
  Tensor picked(DType::i64, {5, 4});
  for (std::int64_t i = 0; i < 20; ++i)
    store(DType::i64, picked.data(), i, static_cast<double>(i % 9));
  inputs.push_back(picked);
  both.run(own, inputs);
}

// GCC 12 makes one instruction of the two, which rounds the products not at all.
TEST_CASE("cpu: products that are added and subtracted side by side are rounded in strict code",
          "[cpu][diff]") {
  if (!have_compiler()) return;
  const Graph graph = graph_of(
      "symbol n in 1..64 tokens  in x: f32[n, 16], w: f32[2], c: f32[n, 8, 1], s: f32[n, 8, 1]\n"
      "k = rms_norm(reshape(x){shape = [n, 8, 2]}, w)\n"
      "a, b = split(k){dim = -1, sizes = [1, 1]}\n"
      "y = cat(a * c - b * s, b * c + a * s){dim = -1}  out y");
  const auto pairs = graph_of(
      "symbol n in 1..64 tokens  in x: f32[n, 16], w: f32[2], t: f32[24, 2], i: i64[n], k: f32[n, "
      "4]\n"
      "z = rms_norm(reshape(x){shape = [n, 8, 2]}, w)\n"
      "a, b = rotary_embedding(i, reshape(z){shape = [n, 16]}, k, t){head = 2}\n"
      "y = cat(a, b){dim = -1}  out y");
  for (const Graph* g : {&graph, &pairs}) {
    const RunContext run{{{"n", 37}}, nullptr, 37};
    const auto inputs = random_inputs(*g, run.symbols, 3);
    CpuBackend strict({.strict = true});
    const auto oracle = make_interpreter(Precision::single);
    CHECK(bit_difference(outputs_of(strict, *g, views_of(inputs), run)[0],
                         outputs_of(*oracle, *g, views_of(inputs), run)[0]) == "");
  }
}

TEST_CASE("cpu: a number below one is the integer 0, which has no sign", "[cpu][diff]") {
  if (!have_compiler()) return;
  const Graph graph = graph_of(
      "symbol n in 1..64 tokens  in x: f32[n, 33], h: bf16[n, 33]\n"
      "i = i64(x)  y = 1.0 / f32(i)  z = minimum(i, h)  out y, z");
  const RunContext run{{{"n", 9}}, nullptr, 9};
  const auto inputs = random_inputs(graph, run.symbols, 3);
  const auto oracle = make_interpreter(Precision::single);
  const auto wanted = outputs_of(*oracle, graph, views_of(inputs), run);
  for (const bool exactly : {true, false}) {
    CpuBackend cpu({.strict = exactly});
    const auto got = outputs_of(cpu, graph, views_of(inputs), run);
    for (std::size_t o = 0; o < 2; ++o) CHECK(bit_difference(got[o], wanted[o]) == "");
  }
}
