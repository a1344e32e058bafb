// Exports make_matcher_compiler.
#include "backends/native_matchers.hpp"

#include <array>
#include <map>

#include "backends/cache/digest.hpp"
#include "backends/shared_object.hpp"
#include "backends/toolchain.hpp"

namespace pw {
namespace {

/// Not for this processor alone: objects may be kept for other machines. -O2 takes twice as long
/// and saves 3 of 100 instructions of a scan.
const std::array<std::string, 3> kFlags{"-std=c++17", "-O1", "-w"};

class NativeMatchers : public MatcherCompiler {
 public:
  explicit NativeMatchers(std::shared_ptr<CompileCache> cache)
      : cache_(cache ? std::move(cache)
                     : std::make_shared<CompileCache>(CacheOptions::from_environment())),
        toolchain_(cache_->sealed() ? Toolchain() : Toolchain::find()) {}

  Result<NativeMatcher> compile(const std::string& text) override {
    const auto known = made_.find(text);
    if (known != made_.end()) return known->second;
    NativeMatcher out;
    const auto key = [&](const std::string& compiler) {
      KeyParts parts;
      parts.add("schema", "matcher 1").add("compiler", compiler);
      for (const std::string& flag : kFlags) parts.add("flag", flag);
      return parts.add("source", text).digest();
    };
    const auto make = [&] { return toolchain_.shared_object(text, kFlags); };
    std::string why;
    const auto usable = [&](const std::string& bytes) {
      out = loaded(bytes, why);
      return out.run != nullptr;
    };
    if (auto bytes = cache_->get_compiled("matcher", toolchain_.identity, key, make, usable);
        !bytes)
      return forward(bytes);
    if (out.run == nullptr) return fail(error_in("compiled matcher", "PW1223", why));
    made_.emplace(text, out);
    return out;
  }

 private:
  static NativeMatcher loaded(const std::string& bytes, std::string& why) {
    NativeMatcher out;
    Result<SharedObject> object = SharedObject::load(bytes);
    if (!object) {
      why = object.error().front().message;
      return out;
    }
    out.run = reinterpret_cast<NativeMatcher::Run>(object->symbol(NativeMatcher::kRun));
    out.held = std::make_shared<SharedObject>(std::move(*object));
    if (out.run == nullptr) why = "the compiled object lacks its function";
    return out;
  }

  std::shared_ptr<CompileCache> cache_;
  Toolchain toolchain_;
  std::map<std::string, NativeMatcher> made_;  ///< by text
};

}  // namespace

std::shared_ptr<MatcherCompiler> make_matcher_compiler(std::shared_ptr<CompileCache> cache) {
  return std::make_shared<NativeMatchers>(std::move(cache));
}

}  // namespace pw
