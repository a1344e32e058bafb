#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/io/file.hpp"
#include "cli/commands.hpp"
#include "proof/equal/equality.hpp"
#include "proof/equal/relation_text.hpp"

namespace pw::cli {
namespace {

struct EqualArgs {
  GraphOptions single;
  std::vector<std::string> ranks, symbols, types;
  std::string relation;
};

void say_rest(const Session& session, const proof::Equality& equality) {
  for (const std::string& granted : equality.granted) session.say("taken for granted: " + granted);
  if (!equality.assumed.empty())
    session.say(fmt::format("taken to be equal, for their names and types: {}",
                            fmt::join(equality.assumed, ", ")));
  session.say(fmt::format("{} of {} nodes of a rank are parts of nodes of the first graph",
                          equality.matched, equality.nodes));
  if (equality.rounds) session.say("sums over ranks are added up in another order");
}

void run_equal(const Options& options, const EqualArgs& args) {
  Session session(options);
  GraphOptions first = args.single;
  first.symbols = args.symbols;
  first.types = args.types;
  const Graph single = load(session, first);
  std::vector<Graph> ranks;
  for (const std::string& path : args.ranks) {
    GraphOptions other = first;
    other.path = path;
    ranks.push_back(load(session, other));
  }
  std::vector<const Graph*> pointers;
  for (const Graph& rank : ranks) pointers.push_back(&rank);
  proof::Relation relation;
  const std::string place = args.relation.empty() ? args.single.path : args.relation;
  if (!args.relation.empty())
    relation = session.need(parse_relation(session.need(read_file(args.relation)), args.relation));
  const proof::Equality equality = session.need(equal_graphs(single, pointers, relation, place));
  if (options.format == "table") {
    for (const proof::ClaimVerdict& claim : equality.claims) print_out(claim_text(claim) + "\n");
  } else {
    print_out(equality_answer(equality).print(options.format));
  }
  say_rest(session, equality);
  if (!equality.proved()) throw Exit{kNegative};
}

}  // namespace

void add_equal_command(CLI::App& app, const Options& options) {
  auto args = std::make_shared<EqualArgs>();
  auto* sub = app.add_subcommand(
      "equal", "Prove that graphs compute the same: one device's against those of several ranks");
  sub->add_option("single", args->single.path, kGraphFiles)->required();
  sub->add_option("ranks", args->ranks, "the graphs of the ranks, in order; one: another graph")
      ->required();
  sub->add_option(
         "--relation", args->relation,
         "what the inputs of the first graph are of those of the ranks, and what is claimed "
         "of outputs; left out: inputs of one name are equal, and so are all outputs")
      ->type_name("FILE")
      ->configurable();
  sub->add_option("--symbol", args->symbols,
                  "make input dims of the dumps symbolic: n=arg0_1.0,arg6_1.0 (input.axis)")
      ->type_name("NAME=DIMS")
      ->configurable();
  add_type_option(*sub, args->types);
  sub->footer(
      "A relation has a line an input, the first graph's name first:\n"
      "  w = gathered(w){dim = 0}     rank after rank along an axis\n"
      "  qkv = blocks(qkv){dim = 0, sizes = [8, 2, 2]}   of parts\n"
      "  ids = replicated(ids)        the same on all ranks\n"
      "  g = partial(g)               the sum over the ranks\n"
      "  x = cat(x_1, x_2){dim = 0}   several inputs of the second\n"
      "  *_up_w = gathered(*_up_w){dim = 1}   one text for a star\n"
      "  zero = 0.0                   an input that holds a number\n"
      "  granted my_attention along 1   each place by itself\n"
      "  claim y = replicated(y)      of an output; also gathered,\n"
      "                               partial\n"
      "Exit code: 0 if all claims are proved, else 1, with the node\nwhere the graphs part.\n\n"
      "Examples:\n"
      "  pwr equal tp1.json tp2.rank0.json tp2.rank1.json --relation tp2.txt\n"
      "  pwr equal before.pwg after.pwg\n"
      "  pwr equal tp1.json tp2.rank0.json tp2.rank1.json --relation tp2.txt --format json");
  sub->callback([args, &options] { run_equal(options, *args); });
}

}  // namespace pw::cli
