// For tests: the machine code of a cubin as text, by nvdisasm.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

namespace pw::test {

/// $PW_NVDISASM, or the toolkit's, or that of the Python packages beside $PW_TORCH_PYTHON; empty
/// without any.
inline std::string find_nvdisasm() {
  namespace fs = std::filesystem;
  const auto text = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  std::vector<fs::path> places{text("PW_NVDISASM"), fs::path(text("CUDA_HOME")) / "bin/nvdisasm",
                               "/usr/local/cuda/bin/nvdisasm"};
  const fs::path lib = fs::path(text("PW_TORCH_PYTHON")).parent_path().parent_path() / "lib";
  std::error_code error;
  for (const auto& python : fs::directory_iterator(lib, error))
    for (const char* part :
         {"nvidia/cu13/bin", "nvidia/cuda_nvdisasm/bin", "triton/backends/nvidia/bin"})
      places.push_back(python.path() / "site-packages" / part / "nvdisasm");
  for (const fs::path& place : places)
    if (!place.empty() && fs::is_regular_file(place, error)) return place.string();
  return "";
}

/// Instructions, one a line; none where the disassembler fails.
inline std::optional<std::string> disassemble(const std::string& nvdisasm,
                                              const std::string& cubin) {
  char name[] = "/tmp/pw_sass_XXXXXX";
  const int file = mkstemp(name);
  if (file < 0) return std::nullopt;
  const bool whole = write(file, cubin.data(), cubin.size()) == static_cast<ssize_t>(cubin.size());
  close(file);
  std::string out;
  if (FILE* pipe = whole ? popen(fmt::format("'{}' -c {} 2>/dev/null", nvdisasm, name).c_str(), "r")
                         : nullptr) {
    char buffer[65536];
    while (const std::size_t n = fread(buffer, 1, sizeof buffer, pipe)) out.append(buffer, n);
    if (pclose(pipe) != 0) out.clear();
  }
  std::filesystem::remove(name);
  return out.empty() ? std::nullopt : std::optional(out);
}

/// How often an instruction whose name begins so stands in the text.
inline int count_instructions(const std::string& sass, const std::string& name) {
  int out = 0;
  for (std::size_t at = sass.find(name); at != std::string::npos; at = sass.find(name, at + 1))
    out += at > 0 && (sass[at - 1] == ' ' || sass[at - 1] == '\t') ? 1 : 0;
  return out;
}

}  // namespace pw::test
