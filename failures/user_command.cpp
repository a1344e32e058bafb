#include "failures/user_command.hpp"

#include <fmt/format.h>

#include "base/io/file.hpp"
#include "base/try.hpp"
#include "codegen/guarded_run.hpp"
#include "codegen/toolchain.hpp"

namespace pw {
namespace {

constexpr int kUnclear = 125, kNotExecutable = 126, kNotFound = 127;

tl::unexpected<Diagnostics> no_command(const std::string& why, const std::string& help) {
  return fail(error_in("command", "PW1416", why, help));
}

/// Returns true if a path was inserted.
bool put_path(std::string& word, const std::string& name, const std::string& path) {
  const std::string place = "{" + name + "}";
  bool found = false;
  for (std::size_t at = 0; (at = word.find(place, at)) != std::string::npos; at += path.size()) {
    word.replace(at, place.size(), path);
    found = true;
  }
  return found;
}

}  // namespace

Result<std::vector<std::string>> split_words(const std::string& text) {
  std::vector<std::string> out;
  bool inside = false;  // of a word
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool blank = c == ' ' || c == '\t' || c == '\n';
    if (quote == 0 && blank) {
      inside = false;
      continue;
    }
    if (!inside) out.emplace_back();
    inside = true;
    if (quote == 0 && (c == '\'' || c == '"'))
      quote = c;
    else if (c == quote)
      quote = 0;
    else if (c == '\\' && quote != '\'' && i + 1 < text.size())
      out.back() += text[++i];
    else
      out.back() += c;
  }
  if (quote != 0)
    return no_command(fmt::format("a {} is not closed", quote), "add the closing quote");
  if (out.empty())
    return no_command("it is empty", "name a program, for example --command './check.sh {after}'");
  return out;
}

Result<FailureVerdict> run_command(const UserCommand& command,
                                   const std::vector<CommandFile>& files) {
  std::vector<std::string> words = command.words;
  const std::string program = find_executable(words.front());
  if (program.empty())
    return no_command("`" + words.front() + "` is not a program on PATH",
                      "make a script executable, and begin it with a line like #!/bin/sh");
  const PrivateFolder folder;
  if (folder.path().empty())
    return no_command("a temporary folder cannot be created", "set TMPDIR to a writable folder");
  bool named = false;
  std::string path;
  for (const CommandFile& file : files) {
    path = folder.path() + "/" + file.name + ".pwg";
    PW_TRY(write_file(path, file.text));
    for (std::size_t i = 1; i < words.size(); ++i)
      named = put_path(words[i], file.name, path) || named;
  }
  if (!named) words.push_back(path);
  words.front() = program;
  GuardLimits limits;
  limits.seconds = command.seconds;
  limits.folder = folder.path();
  const int status = guarded_run(words, folder.path() + "/output", limits);
  if (status == 0) return FailureVerdict::good;
  if (status == kUnclear || status == kTookTooLong) return FailureVerdict::unclear;
  if (status == kNotExecutable || status == kNotFound)
    return no_command(fmt::format("`{}` exited with {}: it could not be run", program, status),
                      "a command that shows the failure must exit with 1");
  return FailureVerdict::bad;
}

}  // namespace pw
