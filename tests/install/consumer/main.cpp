// The main job in a user's program: rewrites, cuts, plans, runs, and checks a graph.
#include <iostream>

#include "pipeline/run/run.hpp"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  pw::RunRequest request;
  request.graph = {argv[1], {argv[2]}};  // a dump of PyTorch, and which of its dims are tokens
  request.rules = {{"llm"}, "o2", {}};
  request.tokens = {1, 7};
  request.check = true;

  const auto context = std::make_shared<pw::Context>();
  const auto done =
      pw::run_model(context, request, {}, [](const pw::RunRecord& record, const pw::LoadedRules&) {
        std::cout << record.versions.front().graph.node_count() << " nodes became "
                  << record.versions.back().graph.node_count() << " in "
                  << record.pieces->pieces.size() << " pieces\n"
                  << pw::number_table(record).print("table");
        return pw::Status();
      });
  if (!done) {
    std::cerr << pw::render(done.error(), context->sources);
    return 1;
  }
  std::cout << done->steps << " steps, " << done->failed << " failed\n";
}
