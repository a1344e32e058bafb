#include "cli/help/grammar.hpp"

#include <CLI/CLI.hpp>

#include "base/io/file.hpp"
#include "cli/commands.hpp"
#include "dsl/syntax/lexical.hpp"

namespace pw::cli {
namespace {

struct GrammarArgs {
  std::string form;
  std::vector<std::string> files;
};

/// Returns the classes of a text's characters, from the tokens of the parser.
void print_classes(const Session& session, const std::vector<std::string>& files) {
  Table table({"file", "begin", "end", "class"});
  for (const std::string& file : files) {
    const std::string text = session.need(read_file(file));
    for (const LexicalSpan& span : lexical_spans(text))
      table.add({file, span.begin, span.end, std::string(name(span.kind))});
  }
  print_out(table.print(session.options.format));
}

void run_grammar(const Options& options, const GrammarArgs& args) {
  const Session session(options);
  if (args.form == "classes") return print_classes(session, args.files);
  session.refuse_json("a grammar is an editor file");
  if (args.form == "textmate") print_out(textmate_grammar());
  if (args.form == "pygments") print_out(pygments_lexer());
  if (args.form == "emacs") print_out(emacs_words());
}

}  // namespace

void add_grammar_command(CLI::App& app, const Options& options) {
  auto args = std::make_shared<GrammarArgs>();
  auto* sub =
      app.add_subcommand("grammar", "Print a syntax highlighting grammar for editors or Pygments");
  sub->add_option("form", args->form,
                  "textmate, pygments or emacs; or classes, to print the token classes of files")
      ->required()
      ->check(CLI::IsMember({"textmate", "pygments", "emacs", "classes"}));
  sub->add_option("files", args->files,
                  "with `classes`: rule files or graphs; offsets are in bytes");
  sub->footer(
      "Examples:\n  pwr grammar textmate > editors/vscode/syntaxes/pwr.tmLanguage.json\n  pwr "
      "grammar "
      "classes my_rules.pwr --format csv");
  sub->callback([args, &options] { run_grammar(options, *args); });
}

}  // namespace pw::cli
