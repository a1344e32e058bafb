#include "backends/cpu/kernels.hpp"

#include "codegen/cache/digest.hpp"
#include "tensor/parallel.hpp"

namespace pw::cpu {
namespace {

constexpr std::size_t kCompilers = 2;  // at the same time

}  // namespace

Kernels::Kernels(Toolchain toolchain, EmitOptions options, std::shared_ptr<CompileCache> cache)
    : toolchain_(cache && cache->sealed() ? Toolchain() : std::move(toolchain)),
      options_(options),
      cache_(std::move(cache)),
      processor_(processor()),
      flags_(compiler_flags(options, !processor_.empty())),
      exact_flags_(compiler_flags({options.strict, true}, !processor_.empty())) {}

/// Everything that determines the bytes of an object.
KeyParts Kernels::key(const std::string& source, const std::vector<std::string>& flags,
                      const std::string& compiler) const {
  KeyParts parts;
  parts.add("schema", "cpu 1").add("compiler", compiler);
  for (const std::string& flag : flags) parts.add("flag", flag);
  return parts.add("processor", processor_).add("source", source);
}

Kernels::Entry Kernels::make(const std::string& text) {
  Entry entry;
  const std::string source = source_file(text);
  const std::vector<std::string>& flags = is_exact(text) ? exact_flags_ : flags_;
  const auto key_by = [&](const std::string& compiler) { return key(source, flags, compiler); };
  const auto compile = [&] {
    compiled_ += toolchain_.present() ? 1 : 0;
    return toolchain_.shared_object(source, flags);
  };
  const auto usable = [&](const std::string& bytes) {
    entry = loaded(bytes);
    return entry.function != nullptr;
  };
  if (const auto bytes = cache_->get_compiled("cpu", toolchain_.identity, key_by, compile, usable);
      !bytes)
    entry = {{}, nullptr, bytes.error().front().message};
  return entry;
}

Kernels::Entry Kernels::loaded(const std::string& bytes) {
  Entry entry;
  auto object = SharedObject::load(bytes);
  if (!object) {
    entry.reason = object.error().front().message;
    return entry;
  }
  entry.object = std::move(*object);
  entry.function = reinterpret_cast<RowFunction>(entry.object.symbol(kEntry));
  if (!entry.function) entry.reason = "the compiled object lacks its function";
  return entry;
}

void Kernels::compile(std::span<const std::string> texts) {
  std::map<std::string, Entry> fresh;
  for (const std::string& text : texts) {
    if (entries_.count(text) == 0) fresh.emplace(text, Entry{});
  }
  std::vector<std::pair<const std::string, Entry>*> work;
  for (auto& item : fresh) work.push_back(&item);

  if (work.empty()) return;
  if (!cache_) cache_ = std::make_shared<CompileCache>(CacheOptions::from_environment());
  parallel_jobs(work.size(), kCompilers,
                [&](std::size_t i) { work[i]->second = make(work[i]->first); });
  entries_.merge(fresh);
}

RowFunction Kernels::function(const std::string& text, std::string* reason) const {
  const auto found = entries_.find(text);
  if (found == entries_.end()) return nullptr;
  if (reason) *reason = found->second.reason;
  return found->second.function;
}

}  // namespace pw::cpu
