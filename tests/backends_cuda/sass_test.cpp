// Reading machine code: by lines as nvdisasm prints them, and of a kernel where NVRTC and nvdisasm
// are.
#include "kernel_reports/sass.hpp"

#include "cuda/device/machine.hpp"
#include "kernel_reports/quality.hpp"
#include "tests/backends_cuda/kernel_run.hpp"
#include "tests/backends_cuda/machine_code.hpp"
#include "tests/catch.hpp"

using namespace pw;
using namespace pw::test;

TEST_CASE("sass: instructions are counted by class, accesses by width", "[cuda][sass]") {
  const cuda::SassCounts counts = cuda::parse_sass(R"(
        .section        .text.f,"ax",@progbits
.text.f:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/               @P0 LDG.E R9, desc[UR6][R2.64] ;
        /*0020*/              @!P1 LDG.E.128.CONSTANT R4, desc[UR6][R6.64] ;
        /*0030*/                   LDG.E.U16 R4, desc[UR6][R6.64] ;
        /*0040*/                   STS [R0+UR4], R9 ;
        /*0050*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*0060*/                   FFMA R1, R2, R3, R4 ;
        /*0070*/                   LDL.64 R2, [R1] ;
        /*0080*/                   STG.E.64 desc[UR6][R2.64], R4 ;
        /*0090*/                   SHFL.BFLY PT, R5, R4, 0x10, 0x1f ;
        /*00a0*/                   HMMA.16816.F32 R8, R4, R2, R8 ;
        /*00b0*/                   REDUX.SUM UR4, R4 ;
        /*00c0*/                   EXIT ;
.L_x_0:
        /*00d0*/                   BRA `(.L_x_0);
        /*00e0*/                   NOP;
  // /*00f0*/ FADD R1, R2, R3
)");
  CHECK(counts.instructions == 14);
  CHECK(counts.global_reads == std::array<std::int64_t, 5>{0, 1, 1, 0, 1});
  CHECK(counts.global_writes == std::array<std::int64_t, 5>{0, 0, 0, 1, 0});
  CHECK(counts.shared == 1);
  CHECK(counts.local == 1);
  CHECK(counts.barriers == 1);
  CHECK(counts.shuffles == 1);
  CHECK(counts.tensor == 1);
  CHECK(counts.classes.at("control") == 2);
  CHECK(counts.classes.at("float") == 1);
  CHECK(counts.classes.at("integer") == 1);
}

TEST_CASE("sass: other text has no instructions", "[cuda][sass]") {
  for (const char* text : {"", ";", "/*", "*/ ;", "/*0000*/", "/*0000*/ ;", "/*0000*/ @P0 ;",
                           "\n\n/*00\n*/;", "/*1*/ {"})
    CHECK(cuda::parse_sass(text).instructions == 0);
}

TEST_CASE("occupancy: blocks of a multiprocessor as cuda_occupancy.h counts them", "[cuda]") {
  const cuda::Machine& h100 = *cuda::machine_of("sm_90");
  CHECK(cuda::resident_blocks(h100, 256, 32, 0) == 8);
  CHECK(cuda::resident_blocks(h100, 256, 72, 0) == 3);  // 7 warps to a part of the registers
  CHECK(cuda::resident_blocks(h100, 1024, 72, 0) == 0);
  CHECK(cuda::resident_blocks(h100, 32, 16, 0) == 32);
  CHECK(cuda::resident_blocks(h100, 256, 32, 100 * 1024) == 2);
  CHECK(cuda::resident_blocks(*cuda::machine_of("sm_120"), 256, 32, 0) == 6);
}

TEST_CASE("sass: a kernel's machine code has the accesses that its text has",
          "[.][cuda][machine_code]") {
  const MachineCodeTools tools;
  const auto context = library();
  const Subject s = subject(context, "norm",
                            "graph { in x: bf16[n, 4096], w: bf16[4096]  y = rms_norm(x, w)  out "
                            "y }");
  cuda::Target target;
  target.strict = false;
  const auto cubin =
      need(tools.nvrtc.compile(cuda::source_file(s.kernel), s.kernel.name, target), *context);
  const cuda::SassCounts counts =
      cuda::parse_sass(need(tools.nvdisasm.disassemble(cubin.bytes), *context));
  CHECK(counts.instructions > 50);
  CHECK(counts.global_reads[4] > 0);
  CHECK(counts.global_writes[4] > 0);
  CHECK(counts.global_reads[0] + counts.global_reads[1] + counts.global_reads[2] == 0);
  CHECK(counts.barriers >= 1);
  CHECK(counts.local == 0);
  const auto traffic = cuda::traffic_of(s.kernel, *context, {{"n", 100}});
  REQUIRE(traffic);
  CHECK(traffic->least == 100 * 4096 * 2 * 2 + 4096 * 2);
  CHECK(traffic->moved == traffic->least);
  CHECK(traffic->wide_share() == 1.0);
  CHECK_FALSE(tools.nvdisasm.disassemble("no machine code"));
}
