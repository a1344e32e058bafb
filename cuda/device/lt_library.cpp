#include "cuda/device/lt_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "base/dynamic_library.hpp"
#include "base/environment.hpp"
#include "cuda/device/toolkit.hpp"

namespace pw::cuda {
namespace {

std::vector<std::string> candidates(const std::string& path, int newest) {
  if (!path.empty()) return {path};
  if (std::string named = environment("PWR_CUBLASLT"); !named.empty()) return {std::move(named)};
  return toolkit_files("libcublasLt", newest);
}

/// The name of the first function that the library lacks, or an empty text.
std::string fill(LtFunctions& f, void* library) {
  FunctionFinder find(library);
  find(f.version, "cublasLtGetVersion");
  find(f.status_name, "cublasLtGetStatusName");
  find(f.create, "cublasLtCreate");
  find(f.destroy, "cublasLtDestroy");
  find(f.operation_create, "cublasLtMatmulDescCreate");
  find(f.operation_set, "cublasLtMatmulDescSetAttribute");
  find(f.operation_destroy, "cublasLtMatmulDescDestroy");
  find(f.layout_create, "cublasLtMatrixLayoutCreate");
  find(f.layout_destroy, "cublasLtMatrixLayoutDestroy");
  find(f.preference_create, "cublasLtMatmulPreferenceCreate");
  find(f.preference_set, "cublasLtMatmulPreferenceSetAttribute");
  find(f.preference_destroy, "cublasLtMatmulPreferenceDestroy");
  find(f.search, "cublasLtMatmulAlgoGetHeuristic");
  find(f.multiply, "cublasLtMatmul");
  return find.missing();
}

}  // namespace

LtLibrary LtLibrary::open(const std::string& path, int newest) {
  LtLibrary out;
  const std::vector<std::string> paths = candidates(path, newest);
  for (const std::string& file : paths) {
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    auto functions = std::make_shared<LtFunctions>();
    if (const std::string missing = fill(*functions, library); !missing.empty()) {
      out.state_ = fmt::format("{} was found but lacks {}", file, missing);
      continue;
    }
    const std::size_t v = functions->version();
    out.state_ = fmt::format("{}.{}.{} at {}", v / 10000, v / 100 % 100, v % 100, file);
    out.functions_ = std::move(functions);
    return out;
  }
  if (out.state_.empty())
    out.state_ = paths.size() == 1
                     ? paths.front() + " was not found"
                     : "absent: neither libcublasLt.so.13 nor libcublasLt.so.12 was found";
  return out;
}

Status LtLibrary::check(int status, const std::string& what) const {
  if (status == 0) return {};
  return fail(error_in("cuBLASLt", status == lt::kNotEnoughMemory ? "PW1250" : "PW1261",
                       fmt::format("could not {}: {}", what, f().status_name(status))));
}

}  // namespace pw::cuda
