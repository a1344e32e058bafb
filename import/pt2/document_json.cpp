#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/printable.hpp"
#include "graph/text/scan_json.hpp"
#include "import/pt2/document.hpp"

namespace pw::pt2 {
namespace {

constexpr std::size_t kDeepestValue = 100;
// A value takes 20 bytes and more in documents of PyTorch, and some 100 in memory.
constexpr std::size_t kAlwaysValues = std::size_t{1} << 19, kBytesOfValue = 20;
constexpr std::size_t kLongestStep = 120;  // of a pointer, in bytes

std::string_view name_of(Json::Kind kind) {
  constexpr std::string_view kKinds[] = {"null",     "true or false", "an integer", "a number",
                                         "a string", "a list",        "an object"};
  return kKinds[static_cast<std::size_t>(kind)];
}

std::string short_text(std::string_view text) { return printable(text.substr(0, 120)); }

/// Builder of the tree while the text is read.
class TreeBuilder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit TreeBuilder(std::size_t bytes) : most_(kAlwaysValues + bytes / kBytesOfValue) {}

  Json top;
  std::string problem;

  bool null() override { return put({}); }
  bool boolean(bool value) override {
    Json json;
    json.kind = Json::Kind::boolean;
    json.boolean = value;
    return put(std::move(json));
  }
  bool number_integer(number_integer_t value) override {
    Json json;
    json.kind = Json::Kind::integer;
    json.integer = value;
    return put(std::move(json));
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max()))
      return stop(fmt::format("the number {} does not fit in 64 bits", value));
    return number_integer(static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t&) override {
    Json json;
    json.kind = Json::Kind::real;
    json.real = value;
    return put(std::move(json));
  }
  bool string(string_t& value) override {
    Json json;
    json.kind = Json::Kind::text;
    json.text = std::move(value);
    return put(std::move(json));
  }
  bool binary(binary_t&) override { return stop("it contains binary values"); }
  bool start_object(std::size_t) override { return open(Json::Kind::object); }
  bool start_array(std::size_t) override { return open(Json::Kind::list); }
  bool end_array() override { return close(); }
  bool end_object() override {
    auto& members = open_.back().json.members;
    std::ranges::sort(members, [](const auto& a, const auto& b) { return a.name < b.name; });
    const auto twice =
        std::adjacent_find(members.begin(), members.end(),
                           [](const auto& a, const auto& b) { return a.name == b.name; });
    if (twice != members.end())
      return stop("duplicate member `" + short_text(twice->name) + "` in an object");
    return close();
  }
  bool key(string_t& name) override {
    open_.back().key = std::move(name);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return stop(fmt::format("invalid JSON at byte {}", position));
  }

 private:
  struct Open {
    Json json;
    std::string key;  ///< of the next member
  };
  bool stop(std::string why) {
    if (problem.empty()) problem = std::move(why);
    return false;
  }
  bool open(Json::Kind kind) {
    if (open_.size() == kDeepestValue)
      return stop(fmt::format("it is nested deeper than {} levels", kDeepestValue));
    open_.emplace_back().json.kind = kind;
    return true;
  }
  bool close() {
    Json done = std::move(open_.back().json);
    open_.pop_back();
    return put(std::move(done));
  }
  bool put(Json json) {
    if (++count_ > most_) return stop(fmt::format("it has more than {} values", most_));
    if (open_.empty())
      top = std::move(json);
    else if (Open& in = open_.back(); in.json.kind == Json::Kind::list)
      in.json.items.push_back(std::move(json));
    else
      in.json.members.push_back({std::move(in.key), std::move(json)});
    return true;
  }
  std::vector<Open> open_;
  std::size_t most_, count_ = 0;
};

}  // namespace

const Json* Json::find(std::string_view name) const {
  const auto at = std::lower_bound(
      members.begin(), members.end(), name,
      [](const auto& member, std::string_view wanted) { return member.name < wanted; });
  return at == members.end() || at->name != name ? nullptr : &at->value;
}

Result<Json> read_document(std::string_view text, const std::string& place) {
  TreeBuilder builder(text.size());
  if (nlohmann::json::sax_parse(text, &builder)) return std::move(builder.top);
  return fail(error_in(place, "PW0531", std::move(builder.problem)));
}

tl::unexpected<Diagnostics> Part::wrong(std::string message, std::string help,
                                        std::string_view code) const {
  return fail(error_in(fmt::format("{} at {}", *file_, pointer_.empty() ? "/" : pointer_), code,
                       std::move(message), std::move(help)));
}

tl::unexpected<Diagnostics> Part::expected(std::string_view what) const {
  return wrong(fmt::format("expected {}, found {}", what, name_of(json_->kind)));
}

Part Part::child(const Json& json, std::string_view step) const {
  Part out(json, *file_);
  out.pointer_ = pointer_ + std::string(step);
  return out;
}

Result<Part> Part::member(std::string_view name) const {
  if (json_->kind != Json::Kind::object) return expected("an object");
  const Json* found = json_->find(name);
  if (found == nullptr) return wrong(fmt::format("the member `{}` is missing", name));
  return child(*found, json::step(name.substr(0, kLongestStep)));
}

Result<std::optional<Part>> Part::maybe(std::string_view name) const {
  if (json_->kind != Json::Kind::object) return expected("an object");
  const Json* found = json_->find(name);
  if (found == nullptr || found->kind == Json::Kind::null) return std::nullopt;
  return child(*found, json::step(name.substr(0, kLongestStep)));
}

Result<std::vector<Part>> Part::items() const {
  if (json_->kind != Json::Kind::list) return expected("a list");
  std::vector<Part> out;
  for (std::size_t i = 0; i < json_->items.size(); ++i)
    out.push_back(child(json_->items[i], fmt::format("/{}", i)));
  return out;
}

Result<std::vector<std::pair<std::string, Part>>> Part::members() const {
  if (json_->kind != Json::Kind::object) return expected("an object");
  std::vector<std::pair<std::string, Part>> out;
  for (const auto& [name, value] : json_->members)
    out.emplace_back(name,
                     child(value, json::step(std::string_view(name).substr(0, kLongestStep))));
  return out;
}

Result<std::string> Part::text() const {
  if (json_->kind != Json::Kind::text) return expected("a string");
  return json_->text;
}

Result<std::int64_t> Part::integer() const {
  if (json_->kind != Json::Kind::integer) return expected("an integer");
  return json_->integer;
}

Result<double> Part::real() const {
  if (json_->kind == Json::Kind::real) return json_->real;
  if (json_->kind == Json::Kind::integer) return static_cast<double>(json_->integer);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (json_->text == "Infinity") return kInfinity;
  if (json_->text == "-Infinity") return -kInfinity;
  if (json_->text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  return expected("a number");
}

Result<bool> Part::boolean() const {
  if (json_->kind != Json::Kind::boolean) return expected("true or false");
  return json_->boolean;
}

Result<std::pair<std::string, Part>> Part::choice() const {
  if (json_->kind != Json::Kind::object) return expected("an object");
  if (json_->members.size() != 1)
    return wrong(fmt::format("expected one member, found {}", json_->members.size()));
  const auto& [name, value] = json_->members.front();
  return std::pair(name, child(value, json::step(std::string_view(name).substr(0, kLongestStep))));
}

}  // namespace pw::pt2
