// The short ways through FX text, beside the long one: lines without the grammar, and statements
// that are equal but for names.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "graph/text/graph_json.hpp"
#include "graph/text/text.hpp"
#include "import/fx/fx.hpp"
#include "import/fx/text/ast.hpp"
#include "tests/dsl/mutants.hpp"
#include "tests/graph/library.hpp"
#include "tests/shared_dump.hpp"

using namespace pw;
using namespace pw::test;

namespace {

std::string dump_of(const fx::Expr& e) {
  std::ostringstream out;
  out << static_cast<int>(e.kind) << '@' << e.span.begin << '-' << e.span.end << ' ' << e.integer
      << ' ' << e.real << ' ' << quote(e.text) << '(';
  for (const fx::Expr& arg : e.args) out << dump_of(arg) << ' ';
  out << "){";
  for (const std::string& word : e.keywords) out << word << ' ';
  out << '}';
  return out.str();
}
std::string dump_of(const fx::Statement& s) {
  std::ostringstream out;
  out << static_cast<int>(s.kind) << '@' << s.span.begin << '-' << s.span.end << ' '
      << quote(s.type) << '@' << s.type_span.begin << '-' << s.type_span.end << ' ';
  for (const fx::Expr& target : s.targets) out << dump_of(target) << ' ';
  out << "= " << dump_of(s.value);
  return out.str();
}

/// Whether the short way read the line; then the grammar reads the same of it.
bool check_line(const std::string& text) {
  INFO(text);
  const SourceId source(0);
  const auto lines = fx::cut_lines(text, source);
  if (!lines || lines->size() != 1) return false;
  fx::Statement plain;
  if (!fx::parse_plain_line(text, source, lines->front(), plain)) return false;
  const auto all = fx::parse_line(text, source, lines->front());
  REQUIRE(all);
  REQUIRE(all->size() == 1);
  CHECK(dump_of(plain) == dump_of(all->front()));
  return true;
}

std::string seen(const FxImport& import) {
  std::ostringstream out;
  const FxReport& r = import.report;
  out << print_pwg(import.graph) << graph_to_json(import.graph) << r.form << '\n' << r.nodes;
  for (const auto* counts : {&r.opaque, &r.reasons, &r.dropped})
    for (const auto& [what, count] : *counts) out << what << ' ' << count << '\n';
  for (const auto* lines : {&r.substitutions, &r.notes})
    for (const std::string& line : *lines) out << line << '\n';
  for (const auto& [name, kind] : r.guessed) out << name << ' ' << static_cast<int>(kind) << '\n';
  for (const auto& [name, value] : r.aliases) out << name << ' ' << value << '\n';
  return out.str();
}
std::string seen(const std::string& text, bool one_by_one, std::size_t graph, bool symbols) {
  const ContextPtr context = library();
  FxOptions options{.file = "dump.txt"};
  options.graph = graph;
  options.one_by_one = one_by_one;
  if (symbols) options.symbols = {{"n", {{"arg0_1", 0}}}};
  const auto import = import_fx(context, text, options);
  return import ? seen(*import) : render(import.error(), context->sources);
}

bool check_same(const std::string& text, std::size_t graph = 0, bool symbols = false) {
  INFO(text.substr(0, 6000));
  const std::string wanted = seen(text, true, graph, symbols);
  CHECK(seen(text, false, graph, symbols) == wanted);
  return !wanted.starts_with("error");
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// Layers that differ in names, with views, parts of tuples, writes, unknown ops, numbers next to
/// tensors, and names that are bound again; the last four only in every few layers.
std::string layers(int count, int every = 1) {
  std::string out =
      "class <lambda>(torch.nn.Module):\n    def forward(self, arg0_1: \"f32[8, 16]\", arg1_1: "
      "\"f32[16, 16]\", arg2_1: \"f32[]\", arg3_1: \"Sym(s0)\", arg4_1: \"f32[s0, 4]\"):\n"
      "        x_0: \"f32[8, 16]\" = torch.ops.aten.clone.default(arg0_1)\n"
      "        buffer: \"f32[8, 16]\" = torch.ops.aten.empty_like.default(arg0_1)\n";
  for (int i = 0; i < count; ++i) {
    const std::string n = std::to_string(i), m = std::to_string(i + 1);
    out += "         # File: model.py:" + n + " in forward, code: y = f(x)\n";
    out += "        t_" + n + ": \"f32[16, 16]\" = torch.ops.aten.t.default(arg1_1)\n";
    out += "        mm_" + n + ": \"f32[8, 16]\" = torch.ops.aten.mm.default(x_" + n + ", t_" + n +
           ");  t_" + n + " = None\n";
    out += "        s_" + n + " = torch.ops.aten.split.Tensor(mm_" + n + ", 8, -1)\n";
    out += "        a_" + n + ": \"f32[8, 8]\" = s_" + n + "[0]\n";
    out += "        b_" + n + ": \"f32[8, 8]\" = s_" + n + "[1];  s_" + n + " = None\n";
    out += "        p_" + n + " = torch.ops.aten.pow.Tensor_Scalar(a_" + n + ", 2)\n";
    out += "        e_" + n + " = torch.ops.aten.mean.dim(p_" + n + ", [-1], True)\n";
    out += "        q_" + n + ": \"f32[8, 8]\" = torch.ops.aten.mul.Tensor(b_" + n + ", e_" + n +
           ")\n";
    out += "        r_" + n + ": \"f32[8, 8]\" = torch.ops.aten.add.Tensor(q_" + n + ", q_" + n +
           ", alpha = 2)\n";
    out += "        v_" + n + ": \"f32[64]\" = torch.ops.aten.view.default(r_" + n + ", [-1])\n";
    out += "        w_" + n + ": \"f32[8, 8]\" = torch.ops.aten.reshape.default(v_" + n +
           ", [8, 8])\n";
    out += "        k_" + n + ": \"f32[]\" = torch.ops.aten.mul.Tensor(arg2_1, 0.5)\n";
    out += "        l_" + n + ": \"f32[8, 8]\" = torch.ops.aten.mul.Tensor(w_" + n + ", k_" + n +
           ")\n";
    out += "        c_" + n + ": \"f32[8, 16]\" = torch.ops.aten.cat.default([l_" + n + ", a_" + n +
           "], 1)\n";
    out += "        d_" + n + ": \"bf16[8, 16]\" = torch.ops.aten._to_copy.default(c_" + n +
           ", dtype = torch.bfloat16)\n";
    if (i % every == 0)
      out +=
          "        u_" + n + ": \"f32[s0, 4]\" = torch.ops.lib.unknown.default(arg4_1, arg3_1)\n";
    if (i % every == 0)
      out += "        g_" + n + ": \"f32[s0, 4]\" = torch.ops.aten.relu.default(u_" + n + ")\n";
    if (i / every % 3 == 1 && i % every == 0)
      out += "        copy_" + n + " = torch.ops.aten.copy_.default(buffer, c_" + n + ")\n";
    if (i / every % 4 == 2 && i % every == 0)
      out += "        z = torch.ops.aten.relu.default(buffer)\n";
    out += "        x_" + m + ": \"f32[8, 16]\" = torch.ops.aten.add.Tensor(c_" + n + ", d_" + n +
           ");  d_" + n + " = None\n";
  }
  const std::string last = std::to_string(count);
  return out + "        return (x_" + last + ", g_0, buffer)\n";
}

std::vector<std::string> dumps() {
  std::vector<std::string> out{layers(2), layers(7), layers(40, 9), layers(60, 50)};
  const std::string near = shared_dump("qwen2-1.5b.tp1.layer1.fx.txt");
  if (near.empty()) return out;
  for (const auto& file :
       std::filesystem::recursive_directory_iterator(std::filesystem::path(near).parent_path()))
    if (file.is_regular_file() && file.path().extension() == ".txt")
      out.push_back(read_text(file.path()));
  return out;
}

}  // namespace

TEST_CASE("fx: a line without the grammar is the statement that the grammar reads",
          "[graph][fx][plain]") {
  for (const char* line : {
           "a = f(x)",
           "a: \"f32[4]\" = torch.ops.aten.add.Tensor(x, -1.5e-3, alpha = 2);  x = y = None",
           "  a : 'f32[4]'  =  torch.ops.a.b( x , [1, [2,], -3] , k=None,d= torch.float32 , ) ; ",
           "a = t[1];  t = None",
           "a = f(g(x), device(type='cuda', index=0), \"text\", True, inf, _x.y)",
           "a = f()",
           "a = f([])",
       })
    CHECK(check_line(line));
  for (const char* line : {
           "a = b = f(x)",
           "a, b = f(x)",
           "a = x",
           "a = None",
           "a = f(x) + 1",
           "a = f(x)[0]",
           "a = f(x).shape",
           "a = f(-x)",
           "a = f(not x)",
           "a = f((x, y))",
           "a = f({'k': 1})",
           "a = getattr(self.x, '0')",
           "a = f(x, k = 1, y)",
           "a += f(x)",
           "a[0] = f(x)",
           "a = t[-1]",
           "a = t[1:2]",
           "a = t[1, 2]",
           "a = f(1x)",
           "a = f(99999999999999999999)",
           "a = f('\\n')",
           "return (a,)",
           "f(x)",
           "a = f(x) if y else z",
           "a = f(x == y)",
           "a = f(x);  b = g(y)",
           "a = f(x);  b = c",
           "a: f32 = f(x)",
           "a = f(x) # rest",
           "a = f(*x)",
           "a = f(1.)",
           "a = -inf",
           "a = f(x,,y)",
           "a = f(x y)",
           "a == f(x)",
       })
    check_line(line);
  std::size_t read = 0, lines = 0;
  for (const std::string& text : dumps()) {
    std::istringstream in(text);
    for (std::string line; std::getline(in, line); ++lines) read += check_line(line);
  }
  CHECK(read > lines / 4);
  const std::uint64_t seed = 20261124;
  INFO("seed " << seed);
  Random random(seed);
  const std::vector<std::string> pieces = pieces_of(
      "        a_1: \"bf16[s0, 4]\" = torch.ops.aten.add.Tensor(x_1, [1, -2.5, t], k = None, f = "
      "torch.bf16);  x_1 = t = None");
  const std::vector<std::string> foreign =
      pieces_of("( ) [ ] { } , ; : = == - not . 1e5 'a' \" # \\ None + a[0]");
  for (int i = 0; i < 20'000; ++i) check_line(mutated(pieces, foreign, random));
}

TEST_CASE("fx: statements that are equal but for names become what each becomes by itself",
          "[graph][fx][plain]") {
  std::size_t read = 0;
  for (const std::string& text : dumps()) {
    for (std::size_t graph = 0; graph < 3; ++graph) read += check_same(text, graph);
    check_same(text, 0, true);
  }
  CHECK(read >= 2);
}

TEST_CASE("fx: dumps made wrong at random are read and refused alike", "[graph][fx][plain]") {
  const std::uint64_t seed = 20261124;
  INFO("seed " << seed);
  Random random(seed);
  const std::vector<std::string> pieces = pieces_of(layers(3));
  const std::vector<std::string> foreign = pieces_of(
      "torch.ops.aten.add_.Tensor(x_1, y) self.w x_1.shape [0] arg2_1 buffer None z + 1 s0");
  std::size_t read = 0;
  for (int i = 0; i < 400; ++i) read += check_same(mutated(pieces, foreign, random));
  CHECK(read > 5);
}
