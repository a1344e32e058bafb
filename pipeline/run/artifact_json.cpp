#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "codegen/cache/digest.hpp"
#include "pipeline/run/artifact.hpp"

namespace pw {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "piecewise.artifact/2";

/// Reads members; stores the first that is missing or has another type as the error.
class ManifestReader {
 public:
  ManifestReader(const Json& object, std::string place, std::string& error)
      : object_(object), place_(std::move(place)), error_(error) {
    if (!object_.is_object()) wrong("", "an object");
  }
  std::string text(const char* name) const {
    const Json* found = find(name);
    if (found != nullptr && found->is_string()) return found->get<std::string>();
    wrong(name, "a string");
    return {};
  }
  bool truth(const char* name) const {
    const Json* found = find(name);
    if (found != nullptr && found->is_boolean()) return found->get<bool>();
    wrong(name, "true or false");
    return false;
  }
  std::int64_t number(const char* name) const {
    const Json* found = find(name);
    if (found != nullptr && found->is_number_integer()) return found->get<std::int64_t>();
    wrong(name, "an integer");
    return 0;
  }
  std::vector<std::string> texts(const char* name) const {
    std::vector<std::string> out;
    for (const Json& item : list(name)) {
      if (!item.is_string()) wrong(name, "strings");
      out.push_back(item.is_string() ? item.get<std::string>() : "");
    }
    return out;
  }
  const Json& list(const char* name) const {
    static const Json kNone = Json::array();
    const Json* found = find(name);
    if (found != nullptr && found->is_array()) return *found;
    wrong(name, "an array");
    return kNone;
  }
  const Json& members(const char* name) const {
    static const Json kNone = Json::object();
    const Json* found = find(name);
    if (found != nullptr && found->is_object()) return *found;
    wrong(name, "an object");
    return kNone;
  }

 private:
  const Json* find(const char* name) const {
    if (!object_.is_object()) return nullptr;
    const auto found = object_.find(name);
    return found == object_.end() ? nullptr : &*found;
  }
  void wrong(const std::string& name, const std::string& wanted) const {
    if (error_.empty()) error_ = fmt::format("{}/{} is not {}", place_, name, wanted);
  }

  const Json& object_;
  std::string place_;
  std::string& error_;
};

Json json_of(const ArtifactVariant& variant) {
  Json conditions = Json::array();
  for (const ArtifactVariant::Condition& c : variant.conditions)
    conditions.push_back({{"op", c.op}, {"a", c.a}, {"b", c.b}, {"text", c.text}});
  return {{"name", variant.name},     {"min", variant.range.min},
          {"max", variant.range.max}, {"otherwise", variant.otherwise},
          {"conditions", conditions}, {"split_at", variant.split_at}};
}

ArtifactVariant variant_of(const Json& json, const std::string& place, std::string& error) {
  const ManifestReader read(json, place, error);
  ArtifactVariant out;
  out.name = read.text("name");
  out.range = {read.number("min"), read.number("max")};
  out.otherwise = read.truth("otherwise");
  for (const Json& item : read.list("conditions")) {
    const ManifestReader of(item, place + "/conditions", error);
    out.conditions.push_back({of.text("op"), of.text("a"), of.text("b"), of.text("text")});
  }
  out.split_at = read.texts("split_at");
  return out;
}

}  // namespace

std::string manifest_to_json(const Artifact& artifact) {
  Json files = Json::array(), variants = Json::array(), names = Json::object();
  for (const RunRecord::File& file : artifact.files)
    files.push_back({{"name", file.name}, {"what", file.what}, {"sha256", file.sha256}});
  for (const ArtifactVariant& variant : artifact.variants) variants.push_back(json_of(variant));
  for (const auto& [name, key] : artifact.objects->names()) names[name] = key;
  const Json out{{"format", kFormat},
                 {"version", artifact.version},
                 {"library", artifact.library},
                 {"backend", artifact.backend},
                 {"driver", artifact.driver},
                 {"schedules", artifact.schedules},
                 {"arch", artifact.arch},
                 {"strict", artifact.strict},
                 {"fuse", artifact.fuse},
                 {"fold", artifact.fold},
                 {"machine", artifact.machine},
                 {"compiler", artifact.compiler},
                 {"files", files},
                 {"variants", variants},
                 {"names", names}};
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<std::shared_ptr<Artifact>> manifest_from_json(std::string_view text,
                                                     const std::string& file) {
  const auto refuse = [&](std::string why) {
    return fail(error_in(file, "PW1218", "it is not an artifact: " + std::move(why),
                         "`pwr compile -o model.pwx` writes one"));
  };
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return refuse("its manifest is not a JSON object");
  std::string error;
  const ManifestReader read(json, "manifest.json", error);
  auto out = std::make_shared<Artifact>();
  if (read.text("format") != kFormat) return refuse("its format is not " + std::string(kFormat));
  out->version = read.text("version");
  out->library = read.text("library");
  out->backend = read.text("backend");
  out->driver = read.text("driver");
  out->schedules = read.text("schedules");
  out->arch = read.text("arch");
  out->strict = read.truth("strict");
  out->fuse = read.truth("fuse");
  out->fold = read.truth("fold");
  out->machine = read.text("machine");
  out->compiler = read.text("compiler");
  for (const Json& item : read.list("files")) {
    const ManifestReader of(item, "manifest.json/files", error);
    out->files.push_back({of.text("name"), of.text("what"), of.text("sha256")});
  }
  for (const Json& item : read.list("variants"))
    out->variants.push_back(variant_of(item, "manifest.json/variants", error));
  for (const auto& [name, key] : read.members("names").items()) {
    if (!is_digest(name) || !key.is_string() || !is_digest(key.get<std::string>()))
      return refuse("a name in its manifest is not a digest");
    out->objects->add_name(name, key.get<std::string>());
  }
  if (!error.empty()) return refuse(error);
  if (out->variants.empty()) return refuse("it contains no graph");
  return out;
}

}  // namespace pw
