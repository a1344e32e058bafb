#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/io/file.hpp"
#include "cli/commands.hpp"
#include "cli/settings.hpp"
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
  for (const std::string& granted : equality.granted) session.say("assumed: " + granted);
  if (!equality.assumed.empty())
    session.say(fmt::format("assumed equal, based on their names and types: {}",
                            fmt::join(equality.assumed, ", ")));
  session.say(fmt::format("{} of {} nodes of a rank are parts of nodes of the first graph",
                          equality.matched, equality.nodes));
  if (equality.rounds) session.say("sums over ranks are added in a different order");
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
      "equal",
      "Prove that a single-device graph and those of several ranks compute the same results");
  sub->add_option("single", args->single.path, kGraphFiles)->required();
  sub->add_option("ranks", args->ranks, "the graphs of the ranks, in order; or one other graph")
      ->required();
  add_setting(*sub, "--relation", args->relation, "FILE",
              "relation file: how inputs of the first graph correspond to those of the ranks, "
              "and claims about outputs; default: inputs with the same name are equal, and so "
              "are all outputs");
  add_setting(*sub, "--symbol", args->symbols, "NAME=DIMS",
              "make input dims of the dumps symbolic: n=arg0_1.0,arg6_1.0 (input.axis)");
  add_type_option(*sub, args->types);
  sub->footer(
      "A relation has one line for each input, starting with the name in the first graph:\n"
      "  w = gathered(w){dim = 0}     rank after rank along an axis\n"
      "  qkv = blocks(qkv){dim = 0, sizes = [8, 2, 2]}   in parts\n"
      "  ids = replicated(ids)        the same on all ranks\n"
      "  g = partial(g)               the sum over the ranks\n"
      "  x = cat(x_1, x_2){dim = 0}   several inputs\n"
      "  *_up_w = gathered(*_up_w){dim = 1}   a star: any text\n"
      "  zero = 0.0                   an input with a number\n"
      "  granted my_attention along 1   independent along an axis\n"
      "  claim y = replicated(y)      on an output; also gathered,\n"
      "                               partial\n"
      "Exit code: 0 if all claims are proved, else 1, with the node\n"
      "where the graphs diverge.\n"
      "\n"
      "Examples:\n"
      "  pwr equal tp1.json tp2.rank0.json tp2.rank1.json --relation tp2.txt\n"
      "  pwr equal before.pwg after.pwg\n"
      "  pwr equal tp1.json tp2.rank0.json tp2.rank1.json --relation tp2.txt --format json");
  sub->callback([args, &options] { run_equal(options, *args); });
}

}  // namespace pw::cli
