// The host run finds what is missing: a kernel from which any one barrier or exchange of lanes is
// taken fails, by a report or by its numbers. So none of them is superfluous. A default run takes
// some kernels, `[slow]` all forms of all ops.
#include <fmt/format.h>

#include "cuda/device/thread_block.hpp"
#include "tests/backends_cuda/forms.hpp"
#include "tests/backends_cuda/kernel_run.hpp"
#include "tests/catch.hpp"

using namespace pw;
using namespace pw::test;

namespace {

struct Mutant {
  std::size_t subject;
  std::string without;  ///< the line that was taken out
  std::size_t place;    ///< among the kernel's lines
  cuda::Kernel kernel;
};

/// The kernel without one line, under a name of its own.
std::vector<Mutant> mutants_of(const std::vector<Subject>& subjects, std::size_t number) {
  std::vector<Mutant> out;
  const cuda::Kernel& kernel = subjects[number].kernel;
  std::size_t begin = 0, place = 0;
  while (begin < kernel.source.size()) {
    const std::size_t end = kernel.source.find('\n', begin);
    const std::string line = kernel.source.substr(begin, end - begin);
    ++place;
    if (line.find("__syncthreads();") != std::string::npos ||
        line.find("= pw_pair<") != std::string::npos) {
      Mutant m{number, line, place, kernel};
      m.kernel.source.erase(begin, end - begin);
      m.kernel.name += fmt::format("_{}_{}", number, place);
      const std::size_t name = m.kernel.source.find(kernel.name);
      m.kernel.source.replace(name, kernel.name.size(), m.kernel.name);
      out.push_back(std::move(m));
    }
    begin = end + 1;
  }
  return out;
}

void check_mutants(const std::vector<Subject>& subjects) {
  if (no_host_compiler()) return;
  std::vector<Mutant> mutants;
  std::vector<cuda::Kernel> kernels;
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    for (Mutant& m : mutants_of(subjects, i)) {
      kernels.push_back(m.kernel);
      mutants.push_back(std::move(m));
    }
  }
  REQUIRE(!mutants.empty());
  const auto host = cached_kernels(kernels);
  if (!host) FAIL(host.error().front().message);
  // Enough rows that a maximum is not always on the right side; m fills all lanes.
  const Symbols symbols{{"n", 29}, {"m", 2003}};
  for (const Mutant& m : mutants) {
    Subject s = subjects[m.subject];
    INFO(s.name << "\nwithout line " << m.place << ": " << m.without);
    s.kernel = m.kernel;
    const auto inputs = inputs_of(s.graph, symbols, 5);
    const auto wanted = run_interpreter(s, inputs, symbols, false);
    const auto got = try_kernel(*host, s, inputs, symbols, 3);
    CHECK((!got || !difference(*got, wanted).empty()));
  }
}

std::vector<Subject> some(const ContextPtr& context) {
  std::vector<Subject> out;
  for (const char* text :
       {"in x: bf16[n, 4096], w: bf16[4096]  q, t = rms_norm_dynamic_per_token_quant(x, w)  out q, "
        "t",
        "in x: bf16[n, 512]  q, t = per_token_group_fp8_quant(x){group = 128}  out q, t",
        "in x: f32[n, 131]  y = amax(x)  out y",
        "in x: f32[n, 4608]  y = sum(x)  out y",  // two groups of threads take turns
        "in x: bf16[n, m], w: bf16[m]  y = rms_norm(x, w)  out y",
        "in x: f16[n, 8192, 4]  y = sum(x){dim = 1}  out y"})
    out.push_back(subject(context, text, fmt::format("graph {{ {} }}", text)));
  return out;
}

/// The message of running a text of our own as one block of threads.
std::string fault_of(const std::string& body, int threads, std::uint64_t seed = 1) {
  cuda::Kernel kernel;
  kernel.name = "k";
  kernel.threads = threads;
  kernel.rows_per_block = 1;
  kernel.params = {DimId()};
  kernel.source =
      "extern \"C\" __global__ void k(long long rows) { const int t = (int)threadIdx.x; "
      "(void)rows; (void)t;\n" +
      body + "\n}\n";
  const auto host = cached_kernels(std::span(&kernel, 1));
  if (!host) FAIL(host.error().front().message);
  const std::int64_t rows = 1;
  const auto done = host->run("k", {}, std::span(&rows, 1), seed);
  if (done) return "";
  CHECK(done.error().front().code == "PW1225");
  return done.error().front().message;
}

}  // namespace

TEST_CASE("mutants: no barrier and no exchange of lanes can be left out", "[cuda][diff]") {
  check_mutants(some(library()));
}

TEST_CASE("mutants: of all ops, no barrier and no exchange of lanes can be left out",
          "[.][slow][cuda][diff]") {
  const ContextPtr context = library();
  std::vector<Subject> all;
  const auto add = [&](const Form& form, const char* dtype, int d) {
    const std::string text = fmt::format(fmt::runtime(form.text), dtype, d, 2 * d);
    all.push_back(subject(context, text, "graph { " + text + " }"));
  };
  for (const Form& form : kForms) {
    for (int d : {131, 1024, 4096}) add(form, "bf16", d);
  }
  for (const Form& form : kSpecial) add(form, "f32", 0);
  check_mutants(all);
}

TEST_CASE("host run: a thread goes no further than its first fault", "[cuda]") {
  if (no_host_compiler()) return;
  const auto holds = [](const std::string& text, const char* part) {
    CHECK_THAT(text, Catch::Matchers::Contains(part));
  };
  // What it would do with a value that it has not got: read anywhere, loop for ever.
  holds(fault_of("PW_SHARED(long long, s, 4); volatile char c = *(const char*)pw_at(s, 2);", 32),
        "which no thread has written");
  holds(
      fault_of("PW_SHARED(long long, s, 4); volatile char c = *(const char*)pw_at(s, 4 + t);", 32),
      "is out of range: 4 elements");
  holds(fault_of("PW_SHARED(int, s, 4); while (pw_at(s, 1) != 7) {}", 32),
        "which no thread has written");
  holds(fault_of("PW_SHARED(int, s, 32); pw_put(s, t, t); while (pw_at(s, t ^ 1) != 99) {}", 32),
        " reads s[");
  holds(fault_of("char c[64]; char* p = c + (16 - (unsigned long long)c % 16) + 1;\n"
                 "PW_ALIGNED(p, 16); *(volatile char*)0 = 1;",
                 32),
        "not aligned to");
  // Lanes that exchange values of different sizes never meet.
  holds(fault_of("if (t % 2) __shfl_xor_sync(0xffffffffu, 1.0f, 1);\n"
                 "else __shfl_xor_sync(0xffffffffu, 1.0, 1);",
                 32),
        "wait to exchange 1 lanes apart");
  holds(fault_of("uint4 x = {1, 2, 3, 4}; uint4 y = __shfl_xor_sync(0xffffffffu, x, 1);\n"
                 "if (y.w != 4) pw_host->fault(\"wrong\"); struct { int a[5]; } z = {};\n"
                 "__shfl_xor_sync(0xffffffffu, z, 1);",
                 32),
        "exchanges 20 bytes");
  // A thread that leaves early is missed by those that wait.
  holds(fault_of("if (t == 5) return; __shfl_xor_sync(0xffffffffu, t, 1);", 32),
        "1 threads (thread 5 …) ended");
}

TEST_CASE("host run: faults of threads are found in any order, and named", "[cuda]") {
  if (no_host_compiler()) return;
  const auto holds = [](const std::string& text, const char* part) {
    CHECK_THAT(text, Catch::Matchers::Contains(part));
  };
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const std::string race =
        fault_of("PW_SHARED(float, s, 64); pw_put(s, t, 1.0f); pw_at(s, 63 - t);", 64, seed);
    CHECK((race.find("without a barrier between") != std::string::npos ||
           race.find("which no thread has written") != std::string::npos));
    holds(race, "s[");
    holds(fault_of("PW_SHARED(int, s, 4); pw_put(s, 1, t);", 32, seed),
          "write s[1] without a barrier between");
    holds(fault_of("PW_SHARED(int, s, 64); pw_put(s, t, t);\n__syncthreads();\n"
                   "pw_at(s, t ^ 1); pw_put(s, t, 0);",
                   64, seed),
          "without a barrier between");
  }
  CHECK(fault_of("PW_SHARED(int, s, 64); pw_put(s, t, t);\n__syncthreads();\nif (pw_at(s, 63 - t) "
                 "!= 63 - t) pw_host->fault(\"wrong\");",
                 64) == "");
  holds(fault_of("PW_SHARED(int, s, 4); if (t == 0) pw_at(s, 2);", 32),
        "which no thread has written");
  holds(fault_of("PW_SHARED(int, s, 4); pw_put(s, 4 + t, 1);", 32), "is out of range: 4 elements");
  holds(fault_of("if (t < 7)\n__syncthreads();", 32), "25 threads (thread 7 …) ended");
  holds(fault_of("if (t < 7)\n__syncthreads();\nelse\n__syncthreads();", 32),
        "wait at the barrier in line");
  holds(fault_of("if (t < 16) pw_pair<float, pw_sum<float>>(1.0f, 1, t);", 32),
        "16 threads (thread 0 …) wait to exchange 1 lanes apart (mask ffffffff)");
  holds(fault_of("__shfl_xor_sync(0xffffu, t, 1);", 32), "is not in its own mask 0000ffff");
  holds(fault_of("char c[64]; pw_read<4>(c + (16 - (unsigned long long)c % 16) + 1);", 32),
        "not aligned to");
}

/// A ring of one place: the second warp fills it and the first reads it, five times.
TEST_CASE("host run: phases order some threads, and their faults are found in any order",
          "[cuda]") {
  if (no_host_compiler()) return;
  const auto ring = [](const std::string& filled, const std::string& read, std::uint64_t seed) {
    return fault_of(
        "PW_SHARED(unsigned long long, b, 2); PW_SHARED(int, s, 32);\n"
        "if (t == 0) for (int i = 0; i < 2; ++i) pw_host->prepare_phases(b.p, i, 1);\n"
        "__syncthreads();\n"
        "for (int i = 0; i < 5; ++i)\n"
        "  if (t >= 32) {" +
            filled + "} else {" + read + "}",
        64, seed);
  };
  const std::string filled =
      "pw_host->await(b.p, 1, (i - 1) & 1); pw_put(s, t - 32, i); pw_host->arrive(b.p, 0);";
  const std::string read =
      "pw_host->await(b.p, 0, i & 1); if (pw_at(s, 31 - t) != i) pw_host->fault(\"stale\"); "
      "pw_host->arrive(b.p, 1);";
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    CHECK(ring(filled, read, seed) == "");
    const auto refused = [&](const std::string& text) { CHECK(text != ""); };
    refused(ring("pw_put(s, t - 32, i); pw_host->arrive(b.p, 0);", read, seed));
    refused(
        ring("pw_host->await(b.p, 1, (i - 1) & 1); pw_host->arrive(b.p, 0); pw_put(s, t - 32, i);",
             read, seed));
    refused(ring("pw_host->await(b.p, 1, i & 1); pw_put(s, t - 32, i); pw_host->arrive(b.p, 0);",
                 read, seed));
    refused(ring("if (i < 4) {" + filled + "}", read, seed));
    refused(ring(
        filled, "pw_host->await(b.p, 0, i & 1); pw_host->arrive(b.p, 1); pw_at(s, 31 - t);", seed));
    refused(ring(filled, "pw_at(s, 31 - t); pw_host->arrive(b.p, 1);", seed));
    refused(ring(filled,
                 "pw_host->await(b.p, 0, (i - 1) & 1); pw_at(s, 31 - t); pw_host->arrive(b.p, 1);",
                 seed));
    refused(ring(
        filled,
        "pw_host->await(b.p, 0, i & 1); pw_at(s, 31 - t); if (t < 31) pw_host->arrive(b.p, 1);",
        seed));
  }
  const auto holds = [](const std::string& text, const char* part) {
    CHECK_THAT(text, Catch::Matchers::Contains(part));
  };
  holds(ring("if (i < 4) {" + filled + "}", read, 1), "await a phase of parity 0 after 4");
  holds(fault_of("PW_SHARED(unsigned long long, b, 1); pw_host->arrive(b.p, 0);", 32),
        "uses b[0] as a barrier before it is prepared");
  holds(fault_of(
            "PW_SHARED(unsigned long long, b, 1); if (t == 0) pw_host->prepare_phases(b.p, 0, 1);\n"
            "pw_host->arrive(b.p, 0);",
            32),
        "barrier");
}
