#include "kernel_reports/sass.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/environment.hpp"
#include "base/io/file.hpp"
#include "base/try.hpp"
#include "codegen/guarded_run.hpp"
#include "codegen/toolchain.hpp"

namespace pw::cuda {
namespace {

/// The first that an opcode begins with, up to its end or a digit, decides; opcodes are those of
/// the instruction set reference in NVIDIA's documentation of the binary utilities.
constexpr std::array<std::pair<std::string_view, std::string_view>, 81> kClasses{{
    {"LDGSTS", "global"}, {"LDGDEPBAR", "control"}, {"LDG", "global"},    {"STG", "global"},
    {"REDUX", "integer"}, {"RED", "global"},        {"ATOM", "global"},   {"VIADD", "integer"},
    {"LDSM", "shared"},   {"LDS", "shared"},        {"STSM", "shared"},   {"STS", "shared"},
    {"LDL", "local"},     {"STL", "local"},         {"LDC", "constant"},  {"ULDC", "constant"},
    {"LD", "generic"},    {"ST", "generic"},        {"HMMA", "tensor"},   {"IMMA", "tensor"},
    {"QMMA", "tensor"},   {"OMMA", "tensor"},       {"HGMMA", "tensor"},  {"QGMMA", "tensor"},
    {"IGMMA", "tensor"},  {"DMMA", "tensor"},       {"BMMA", "tensor"},   {"UTC", "tensor"},
    {"BAR", "barrier"},   {"SHFL", "shuffle"},      {"MUFU", "special"},  {"FSETP", "compare"},
    {"FSET", "compare"},  {"FMNMX", "compare"},     {"FSEL", "compare"},  {"ISETP", "compare"},
    {"HSETP", "compare"}, {"HMNMX", "compare"},     {"DSETP", "compare"}, {"VIMNMX", "compare"},
    {"IMNMX", "compare"}, {"PLOP", "compare"},      {"FCHK", "compare"},  {"F2", "convert"},
    {"I2", "convert"},    {"FRND", "convert"},      {"I", "integer"},     {"DADD", "double"},
    {"DMUL", "double"},   {"DFMA", "double"},       {"HADD", "half"},     {"HMUL", "half"},
    {"HFMA", "half"},     {"FADD", "float"},        {"FMUL", "float"},    {"FFMA", "float"},
    {"FSWZ", "float"},    {"IMAD", "integer"},      {"IADD", "integer"},  {"IABS", "integer"},
    {"LEA", "integer"},   {"LOP", "integer"},       {"SHF", "integer"},   {"SHL", "integer"},
    {"SHR", "integer"},   {"PRMT", "integer"},      {"SEL", "integer"},   {"SGXT", "integer"},
    {"BMSK", "integer"},  {"POPC", "integer"},      {"FLO", "integer"},   {"U", "uniform"},
    {"MOV", "move"},      {"S2", "move"},           {"CS2R", "move"},     {"R2", "move"},
    {"P2R", "move"},      {"VOTE", "control"},      {"B", "control"},     {"EXIT", "control"},
    {"CALL", "control"},
}};

bool starts(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}

std::size_t width_of(std::string_view opcode) {
  const auto has = [&](std::string_view part) { return opcode.find(part) != opcode.npos; };
  if (has(".128") || has(".256")) return 4;
  if (has(".64")) return 3;
  if (has(".U8") || has(".S8")) return 0;
  if (has(".U16") || has(".S16")) return 1;
  return 2;
}

/// The opcode of a line `/*0060*/ @!P0 LDG.E R9, … ;`, or an empty text.
std::string_view opcode_of(std::string_view line) {
  const std::size_t open = line.find("/*"), close = line.find("*/");
  if (open == line.npos || close == line.npos || line.find(';') == line.npos) return {};
  if (line.substr(0, open).find_first_not_of(" \t") != line.npos) return {};
  line.remove_prefix(close + 2);
  const auto word = [&]() -> std::string_view {
    const std::size_t from = line.find_first_not_of(" \t{");
    if (from == line.npos) return {};
    const std::size_t to = std::min(line.find_first_of(" \t;,", from), line.size());
    const std::string_view out = line.substr(from, to - from);
    line.remove_prefix(to);
    return out;
  };
  std::string_view first = word();
  if (starts(first, "@")) first = word();
  return first;
}

void count_access(SassCounts& out, std::string_view opcode, std::string_view kind) {
  if (kind == "global") {
    const bool write = starts(opcode, "ST") || starts(opcode, "RED");
    ++(write ? out.global_writes : out.global_reads)[width_of(opcode)];
  }
  out.shared += kind == "shared" ? 1 : 0;
  out.local += kind == "local" ? 1 : 0;
  out.barriers += kind == "barrier" ? 1 : 0;
  out.shuffles += kind == "shuffle" ? 1 : 0;
  out.tensor += kind == "tensor" ? 1 : 0;
}

}  // namespace

std::string_view class_of(std::string_view opcode) {
  for (const auto& [prefix, kind] : kClasses)
    if (starts(opcode, prefix)) return kind;
  return starts(opcode, "WARP") || starts(opcode, "RET") || starts(opcode, "YIELD") ||
                 starts(opcode, "DEPBAR") || starts(opcode, "MEMBAR") ||
                 starts(opcode, "ACQBULK") || starts(opcode, "JMP") || starts(opcode, "NANOSLEEP")
             ? "control"
             : "other";
}

SassCounts parse_sass(std::string_view text) {
  SassCounts out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view opcode = opcode_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (opcode.empty() || opcode == "NOP") continue;
    const std::string_view kind = class_of(opcode);
    ++out.instructions;
    ++out.classes[std::string(kind)];
    count_access(out, opcode, kind);
  }
  return out;
}

Disassembler Disassembler::find() {
  Disassembler out;
  std::vector<std::string> places{environment("NVDISASM"), "nvdisasm"};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const std::string root = environment(variable); !root.empty())
      places.push_back(root + "/bin/nvdisasm");
  places.emplace_back("/usr/local/cuda/bin/nvdisasm");
  for (const std::string& place : places) {
    if (place.empty() || !out.program_.empty()) continue;
    out.program_ = find_executable(place);
  }
  out.state_ = out.present() ? out.program_
                             : "absent: neither $NVDISASM nor PATH nor the CUDA toolkit has "
                               "nvdisasm (the Python package nvidia-cuda-nvdisasm does)";
  return out;
}

Result<std::string> Disassembler::disassemble(const std::string& cubin) const {
  if (!present()) return fail(error_in("nvdisasm", "PW1228", "it is " + state_));
  const PrivateFolder folder;
  if (folder.path().empty())
    return fail(error_in("nvdisasm", "PW1228", "no temporary folder could be made",
                         "set TMPDIR to a folder that can be written"));
  const std::string file = folder.path() + "/kernel.cubin", log = folder.path() + "/sass";
  PW_TRY(write_file(file, cubin));
  GuardLimits limits;
  limits.folder = folder.path();
  limits.seconds = 60;
  limits.log_bytes = std::int64_t{1} << 26;
  const int status = guarded_run({program_, "-c", file}, log, limits);
  if (status == 0) return read_file(log);
  return fail(error_in(program_, "PW1228",
                       fmt::format("it could not read the machine code (status {})", status),
                       "it may be older than the compiler that made the code"));
}

}  // namespace pw::cuda
