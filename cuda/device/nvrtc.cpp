#include "cuda/device/nvrtc.hpp"

#include <charconv>

#include <dlfcn.h>
#include <fmt/format.h>

#include "base/characters.hpp"
#include "base/dynamic_library.hpp"
#include "base/io/file.hpp"
#include "base/try.hpp"
#include "cuda/device/toolkit.hpp"

namespace pw::cuda {

/// Declared as in NVRTC's documentation; a program is an opaque pointer, 0 means success. The
/// library is never closed: it keeps memory for the life of the process.
struct Nvrtc::Library {
  int (*version)(int*, int*) = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*create)(void**, const char*, const char*, int, const char* const*,
                const char* const*) = nullptr;
  int (*destroy)(void**) = nullptr;
  int (*compile)(void*, int, const char* const*) = nullptr;
  int (*log_size)(void*, std::size_t*) = nullptr;
  int (*log)(void*, char*) = nullptr;
  int (*cubin_size)(void*, std::size_t*) = nullptr;
  int (*cubin)(void*, char*) = nullptr;
  int (*ptx_size)(void*, std::size_t*) = nullptr;
  int (*ptx)(void*, char*) = nullptr;
  int (*arch_count)(int*) = nullptr;
  int (*archs)(int*) = nullptr;
};

namespace {

/// The name of the first function that the library lacks, or an empty text.
std::string fill(Nvrtc::Library& l, void* library) {
  FunctionFinder find(library);
  find(l.version, "nvrtcVersion");
  find(l.error_string, "nvrtcGetErrorString");
  find(l.create, "nvrtcCreateProgram");
  find(l.destroy, "nvrtcDestroyProgram");
  find(l.compile, "nvrtcCompileProgram");
  find(l.log_size, "nvrtcGetProgramLogSize");
  find(l.log, "nvrtcGetProgramLog");
  find(l.cubin_size, "nvrtcGetCUBINSize");
  find(l.cubin, "nvrtcGetCUBIN");
  find(l.ptx_size, "nvrtcGetPTXSize");
  find(l.ptx, "nvrtcGetPTX");
  find(l.arch_count, "nvrtcGetNumSupportedArchs");
  find(l.archs, "nvrtcGetSupportedArchs");
  return find.missing();
}

/// Returns the number directly before `word`, at or after `from`; -1 if there is none.
std::int64_t number_before(std::string_view log, std::string_view word) {
  const std::size_t at = log.find(word);
  if (at == std::string_view::npos || at == 0) return -1;
  std::size_t begin = at;
  while (begin > 0 && is_digit(log[begin - 1])) --begin;
  std::int64_t value = -1;
  std::from_chars(log.data() + begin, log.data() + at, value);
  return value;
}

struct Program {
  const Nvrtc::Library& library;
  void* handle = nullptr;
  ~Program() {
    if (handle) library.destroy(&handle);
  }
};

std::string log_of(const Program& program) {
  std::size_t size = 0;
  if (program.library.log_size(program.handle, &size) != 0 || size <= 1) return {};
  std::string log(size, '\0');
  if (program.library.log(program.handle, log.data()) != 0) return {};
  log.resize(size - 1);
  return log;
}

}  // namespace

Usage parse_usage(std::string_view log) {
  Usage usage;
  usage.registers = static_cast<int>(number_before(log, " registers"));
  usage.stack = std::max<std::int64_t>(number_before(log, " bytes stack frame"), 0);
  usage.spill_stores = std::max<std::int64_t>(number_before(log, " bytes spill stores"), 0);
  usage.spill_loads = std::max<std::int64_t>(number_before(log, " bytes spill loads"), 0);
  return usage;
}

std::int64_t Cubin::shared_bytes() const {
  return std::max<std::int64_t>(number_before(log, " bytes smem"), 0);
}

Traffic parse_traffic(std::string_view ptx) {
  Traffic traffic;
  for (std::size_t at = 0; at < ptx.size();) {
    std::size_t end = ptx.find('\n', at);
    if (end == std::string_view::npos) end = ptx.size();
    const std::string_view line = ptx.substr(at, end - at);
    at = end + 1;
    const bool reads = line.find("ld.global") != std::string_view::npos;
    if (!reads && line.find("st.global") == std::string_view::npos) continue;
    const bool wide =
        line.find(".v4.") != std::string_view::npos || line.find(".v2.") != std::string_view::npos;
    ++(reads  ? wide ? traffic.wide_reads : traffic.narrow_reads
       : wide ? traffic.wide_writes
              : traffic.narrow_writes);
  }
  return traffic;
}

std::vector<std::string> nvrtc_options(const Target& target) {
  const std::string exact = target.strict ? "true" : "false";
  // Only sm_90 devices have these; without the suffix warpgroup products are unavailable.
  const std::string arch = target.arch == "sm_90" ? "sm_90a" : target.arch;
  std::vector<std::string> options{
      "-arch=" + arch,     "--std=c++17",        target.strict ? "-fmad=false" : "-fmad=true",
      "-ftz=false",        "-prec-div=" + exact, "-prec-sqrt=" + exact,
      "--ptxas-options=-v"};
  if (target.strict) options.emplace_back("-DPW_STRICT");
  return options;
}

Nvrtc Nvrtc::open() {
  Nvrtc nvrtc;
  for (const std::string& path : toolkit_files("libnvrtc")) {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) continue;
    auto library = std::make_shared<Library>();
    if (const std::string missing = fill(*library, handle); !missing.empty()) {
      nvrtc.state_ = fmt::format("{} was found but lacks {}", path, missing);
      continue;
    }
    int major = 0, minor = 0;
    if (library->version(&major, &minor) != 0) {
      nvrtc.state_ = path + " does not report its version";
      continue;
    }
    nvrtc.version_ = fmt::format("{}.{}", major, minor);
    nvrtc.state_ = fmt::format("{} at {}", nvrtc.version_, path);
    nvrtc.library_ = std::move(library);
    return nvrtc;
  }
  if (nvrtc.state_.empty())
    nvrtc.state_ =
        "absent: neither libnvrtc.so.13 nor libnvrtc.so.12 was found (set CUDA_HOME to the CUDA "
        "folder)";
  return nvrtc;
}

std::string Nvrtc::identity() const {
  if (!present()) return "";
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(library_->version), &info) == 0 || !info.dli_fname)
    return state_;
  return fmt::format("{} {} {}", version_, info.dli_fname, file_stamp(info.dli_fname));
}

std::vector<std::string> Nvrtc::architectures() const {
  int count = 0;
  if (!present() || library_->arch_count(&count) != 0) return {};
  std::vector<int> numbers(static_cast<std::size_t>(count));
  if (library_->archs(numbers.data()) != 0) return {};
  std::vector<std::string> out;
  for (int number : numbers) out.push_back(fmt::format("sm_{}", number));
  return out;
}

/// Compiles for the most blocks per multiprocessor without spills: as many as its threads allow,
/// otherwise a fraction.
Result<Cubin> Nvrtc::compile(const std::string& source, const std::string& name,
                             const Target& target) const {
  if (!present()) return fail(error_in("kernel " + name, "PW1220", "NVRTC is " + state_));
  Result<Cubin> full = compile_with(source, name, nvrtc_options(target));
  if (!full || !full->usage.spills() ||
      source.find("PW_FULL(", source.rfind("__global__")) == source.npos)
    return full;
  for (int quarters : {3, 2}) {
    std::vector<std::string> options = nvrtc_options(target);
    options.push_back(fmt::format("-DPW_QUARTERS={}", quarters));
    Result<Cubin> some = compile_with(source, name, options);
    if (some && !some->usage.spills()) return some;
  }
  std::vector<std::string> options = nvrtc_options(target);
  options.emplace_back("-DPW_QUARTERS=0");
  return compile_with(source, name, options);
}

Result<Cubin> Nvrtc::compile_with(const std::string& source, const std::string& name,
                                  const std::vector<std::string>& options) const {
  const Library& l = *library_;
  Program program{l};
  const auto check = [&](int code, std::string_view what) -> Status {
    if (code == 0) return {};
    return fail(error_in("kernel " + name, "PW1221",
                         fmt::format("NVRTC could not {}: {}\n{}", what, l.error_string(code),
                                     program.handle ? log_of(program) : "")));
  };
  PW_TRY(
      check(l.create(&program.handle, source.c_str(), (name + ".cu").c_str(), 0, nullptr, nullptr),
            "read the source"));
  std::vector<const char*> pointers;
  for (const std::string& o : options) pointers.push_back(o.c_str());
  PW_TRY(check(l.compile(program.handle, static_cast<int>(pointers.size()), pointers.data()),
               "compile it"));
  Cubin cubin;
  cubin.log = log_of(program);
  cubin.usage = parse_usage(cubin.log);
  std::size_t size = 0;
  PW_TRY(check(l.cubin_size(program.handle, &size), "measure the cubin"));
  cubin.bytes.resize(size);
  PW_TRY(check(l.cubin(program.handle, cubin.bytes.data()), "return the cubin"));
  std::string ptx;
  if (l.ptx_size(program.handle, &size) == 0 && size > 1) {
    ptx.resize(size);
    if (l.ptx(program.handle, ptx.data()) == 0) cubin.traffic = parse_traffic(ptx);
  }
  return cubin;
}

}  // namespace pw::cuda
