#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/printable.hpp"
#include "base/try.hpp"
#include "dsl/syntax/lexical.hpp"
#include "serve/ask.hpp"

namespace pw::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string document(const Json& json) {
  return printable_json(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

tl::unexpected<Diagnostics> no_ask(const std::string& why) {
  return fail(error_in("the request", "PW1603", why, "reload the page"));
}

std::string text_in(const Json& of, const char* key) {
  const auto it = of.find(key);
  return it != of.end() && it->is_string() ? it->get<std::string>() : std::string();
}

Json problem_json(const PageProblem& p) {
  Json out{{"severity", p.severity}, {"code", p.code},   {"message", p.message},
           {"help", p.help},         {"where", p.where}, {"place", p.place}};
  if (p.where == "rules")
    out.update({{"line", p.line},
                {"column", p.column},
                {"end_line", p.end_line},
                {"end_column", p.end_column}});
  out["related"] = p.related;
  return out;
}

/// Escapes the text so that nothing in it ends a <script> element.
std::string in_script(std::string json) {
  std::string out;
  for (const char c : json) out += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return out;
}

}  // namespace

Result<Ask> ask_from_json(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return no_ask("this is not a JSON object");
  Ask out;
  const std::string kind = text_in(json, "ask");
  if (kind == "open") {
    out.kind = Ask::Kind::open;
    out.file = text_in(json, "file");
    return is_file_name(out.file) ? Result<Ask>(out) : no_ask("this is not a file name");
  }
  if (kind != "run" && kind != "share") return no_ask("its `ask` is not run, open or share");
  out.kind = kind == "run" ? Ask::Kind::run : Ask::Kind::share;
  out.picture = text_in(json, "picture");
  const auto share = json.find("share");
  if (share == json.end()) return no_ask("it has no `share`");
  out.share = PW_TRY(share_from_json(share->dump(), "the request"));
  return out;
}

std::string answer_to_json(const PageAnswer& answer) {
  Json out{{"problems", Json::array()}, {"strategies", Json::array()}};
  for (const PageProblem& problem : answer.problems)
    out["problems"].push_back(problem_json(problem));
  for (const PageAnswer::Strategy& s : answer.strategies)
    out["strategies"].push_back({{"name", s.name}, {"kind", s.kind}});
  out["ran"] = answer.ran;
  out["log"] = answer.log;
  out["picture"] = answer.picture;
  out["opened"] = answer.opened;
  if (answer.share) out["share"] = Json::parse(share_to_json(*answer.share));
  out["document"] = answer.document;
  return document(out);
}

std::string problem_to_json(std::string_view code, const std::string& message,
                            const std::string& help) {
  PageAnswer out;
  out.problems.push_back({"error", std::string(code), message, help, "run", "", 0, 0, 0, 0, {}});
  return answer_to_json(out);
}

std::string page_settings_json() {
  Json out{{"words", Json::array()},
           {"format", kShareFormat},
           {"most_rules", kMostRuleBytes},
           {"most_graph", kMostGraphBytes},
           {"most_share", kMostShareBytes}};
  for (const LexicalRule& rule : lexical_rules())
    out["words"].push_back({std::string(name(rule.kind)), rule.pattern});
  return in_script(document(out));
}

}  // namespace pw::cli
