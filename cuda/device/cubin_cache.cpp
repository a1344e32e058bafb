#include "cuda/device/cubin_cache.hpp"

#include <filesystem>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include "base/io/file.hpp"
#include "base/try.hpp"
#include "codegen/cache/digest.hpp"

namespace pw::cuda {
namespace {

/// Returns the source without comments, because an op's name does not change the kernel.
std::string normalised(const std::string& source) {
  std::string out;
  std::istringstream lines(source);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find_first_not_of(' ');
    if (first == std::string::npos || line.compare(first, 2, "//") == 0) continue;
    out += line + "\n";
  }
  return out;
}

Target target_of(const Kernel& kernel, Target target) {
  target.strict = target.strict || kernel.exact;
  return target;
}

/// `compiler`: identity of the compiler; empty if any may be used.
KeyParts key_of(const std::string& compiler, const Kernel& kernel, const Target& target) {
  KeyParts parts;
  parts.of(kernel.name);
  parts.add("schema", "cuda 1").add("nvrtc", compiler);
  for (const std::string& option : nvrtc_options(target_of(kernel, target)))
    parts.add("option", option);
  return parts.add("source", normalised(source_file(kernel)));
}

std::string prepared_path(const std::string& folder, const Kernel& kernel, const Target& target) {
  return fmt::format("{}/{}.cubin", folder, key_of("", kernel, target).digest());
}

}  // namespace

std::string pack(const Cubin& cubin) {
  const Traffic& t = cubin.traffic;
  return fmt::format("{} {} {} {} {}\n{}{}", t.wide_reads, t.wide_writes, t.narrow_reads,
                     t.narrow_writes, cubin.log.size(), cubin.log, cubin.bytes);
}

std::optional<Cubin> unpack(std::string_view bytes) {
  const std::size_t end = bytes.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  std::istringstream head{std::string(bytes.substr(0, end))};
  Cubin cubin;
  Traffic& t = cubin.traffic;
  std::size_t log = 0;
  head >> t.wide_reads >> t.wide_writes >> t.narrow_reads >> t.narrow_writes >> log;
  const std::string_view rest = bytes.substr(end + 1);
  if (!head || log > rest.size()) return std::nullopt;
  cubin.log = rest.substr(0, log);
  cubin.bytes = rest.substr(log);
  cubin.usage = parse_usage(cubin.log);
  return cubin;
}

Result<Cubin> cubin_of(const Nvrtc& nvrtc, CompileCache* cache, const Kernel& kernel,
                       const Target& target, const std::function<bool(const Cubin&)>& loads) {
  const auto compile = [&] {
    return nvrtc.compile(source_file(kernel), kernel.name, target_of(kernel, target));
  };
  if (cache == nullptr) return compile();
  const auto make = [&]() -> Result<std::string> {
    auto made = PW_TRY(compile());
    return pack(made);
  };
  const auto usable = [&](const std::string& bytes) {
    const auto cubin = unpack(bytes);
    return cubin && (!loads || loads(*cubin));
  };
  const auto key = [&](const std::string& compiler) { return key_of(compiler, kernel, target); };
  auto packed = PW_TRY(cache->get_compiled("cuda", nvrtc.identity(), key, make, usable));
  auto cubin = unpack(packed);
  return cubin ? Result<Cubin>(std::move(*cubin)) : compile();
}

Status prepare_cubin(const Nvrtc& nvrtc, const std::string& folder, const Kernel& kernel,
                     const Target& target) {
  const std::string path = prepared_path(folder, kernel, target);
  if (std::filesystem::exists(path)) return {};
  auto cubin = PW_TRY(nvrtc.compile(source_file(kernel), kernel.name, target_of(kernel, target)));
  return write_file(path, pack(cubin));
}

Result<Cubin> prepared_cubin(const std::string& folder, const Kernel& kernel,
                             const Target& target) {
  const auto bytes = read_file(prepared_path(folder, kernel, target));
  auto cubin = bytes ? unpack(*bytes) : std::nullopt;
  if (cubin) return std::move(*cubin);
  return fail(error_in(
      folder, "PW1223",
      fmt::format("holds no cubin of kernel {} ({}) for {}", kernel.name, kernel.op, target.arch),
      "prepare the folder again with this version of the program"));
}

}  // namespace pw::cuda
