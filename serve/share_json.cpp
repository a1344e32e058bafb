#include <algorithm>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/printable.hpp"
#include "base/try.hpp"
#include "serve/share.hpp"

namespace pw::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostSymbols = 64, kMostSymbolBytes = 4096;

class ShareReader {
 public:
  explicit ShareReader(const std::string& file) : file_(file) {}

  tl::unexpected<Diagnostics> wrong(const std::string& at, const std::string& why,
                                    const std::string& help = {}) const {
    return fail(error_in(at.empty() ? file_ : file_ + " at " + at, "PW1602", why, help));
  }
  /// Checks that the value is an object, and that all its members are known.
  Status object(const Json& value, const std::string& at,
                const std::vector<std::string>& known) const {
    if (!value.is_object()) return wrong(at, "this is not an object");
    for (const auto& [key, member] : value.items())
      if (std::find(known.begin(), known.end(), key) == known.end())
        return wrong(at + "/" + printable(key), "unknown member of a share file");
    return {};
  }
  Result<std::string> text(const Json& of, const std::string& at, const char* key,
                           std::size_t most) const {
    const auto it = of.find(key);
    const std::string place = at + "/" + key;
    if (it == of.end()) return wrong(at, fmt::format("`{}` is missing", key));
    if (!it->is_string()) return wrong(place, "this is not a string");
    std::string out = it->get<std::string>();
    if (out.size() > most) return wrong(place, fmt::format("this is larger than {} bytes", most));
    if (out.find('\0') != std::string::npos) return wrong(place, "this string contains a NUL byte");
    return out;
  }
  Result<SharedGraph> graph(const Json& value) const {
    const std::string at = "/graph";
    PW_TRY(object(value, at, {"name", "symbols", "text"}));
    SharedGraph out;
    out.name = PW_TRY(text(value, at, "name", 200));
    if (!is_file_name(out.name)) return wrong(at + "/name", "this is not a file name");
    out.text = PW_TRY(text(value, at, "text", kMostGraphBytes));
    const auto symbols = value.find("symbols");
    if (symbols == value.end()) return out;
    if (!symbols->is_array() || symbols->size() > kMostSymbols)
      return wrong(at + "/symbols",
                   fmt::format("this is not a list of at most {} strings", kMostSymbols));
    for (const Json& symbol : *symbols) {
      if (!symbol.is_string() || symbol.get_ref<const std::string&>().size() > kMostSymbolBytes)
        return wrong(at + "/symbols", "a symbol is a string such as `n=arg0_1.0`");
      out.symbols.push_back(symbol.get<std::string>());
    }
    return out;
  }

 private:
  const std::string& file_;
};

}  // namespace

std::string share_to_json(const Share& share) {
  Json out{{"format", kShareFormat}, {"rules", share.rules}, {"pipeline", share.pipeline}};
  if (share.graph)
    out["graph"] = {{"name", share.graph->name},
                    {"symbols", share.graph->symbols},
                    {"text", share.graph->text}};
  return printable_json(out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

Result<Share> share_from_json(std::string_view text, const std::string& file) {
  const ShareReader read(file);
  if (text.size() > kMostShareBytes)
    return read.wrong("", fmt::format("this is larger than {} bytes", kMostShareBytes));
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded())
    return read.wrong("", "this is not JSON", "`pwr serve` writes share files");
  if (!json.is_object()) return read.wrong("", "this is not an object");
  const std::string format = PW_TRY(read.text(json, "", "format", 200));
  if (format != kShareFormat)
    return read.wrong("/format",
                      fmt::format("the format is `{}`, but this version reads {}",
                                  printable(format), kShareFormat),
                      format.starts_with("piecewise.share/")
                          ? "the file was saved by another version of pwr"
                          : "");
  PW_TRY(read.object(json, "", {"format", "rules", "pipeline", "graph"}));
  Share out;
  out.rules = PW_TRY(read.text(json, "", "rules", kMostRuleBytes));
  out.pipeline = PW_TRY(read.text(json, "", "pipeline", 200));
  if (json.contains("graph")) out.graph = PW_TRY(read.graph(json["graph"]));
  return out;
}

}  // namespace pw::cli
