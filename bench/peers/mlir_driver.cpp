// mlir_driver PATTERNS.mlir GRAPH.mlir: MLIR's greedy driver with PDL bytecode on one graph, top
// down and without region simplification, as the fusions need and as one block allows. Prints a
// line of JSON: times, memory, and the ops by name before and after. Built by run.py against the
// system's MLIR; not part of the project's own build.
#include <cstdio>
#include <ctime>
#include <fstream>
#include <map>
#include <string>

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/PDL/IR/PDL.h"
#include "mlir/Dialect/PDLInterp/IR/PDLInterp.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Rewrite/FrozenRewritePatternSet.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace {

using Histogram = std::map<std::string, long>;

double processor_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

template <class F>
double seconds(F&& body) {
  const double start = processor_time();
  body();
  return processor_time() - start;
}

double resident_mib() {
  malloc_trim(0);
  long all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return static_cast<double>(resident * sysconf(_SC_PAGESIZE)) / (1 << 20);
}

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

Histogram count(mlir::ModuleOp module) {
  Histogram out;
  module.walk([&](mlir::Operation* op) {
    llvm::StringRef name = op->getName().getStringRef();
    if (name.consume_front("d.")) ++out[name.str()];
  });
  return out;
}

std::string print(const Histogram& counts) {
  std::string out;
  for (const auto& [name, number] : counts)
    out += (out.empty() ? "\"" : ", \"") + name + "\": " + std::to_string(number);
  return "{" + out + "}";
}

mlir::FrozenRewritePatternSet compile(mlir::OwningOpRef<mlir::ModuleOp> source) {
  mlir::PDLPatternModule pdl(std::move(source));
  pdl.registerConstraintFunction("SoleUse", [](mlir::PatternRewriter&, mlir::Value value) {
    return mlir::success(value.hasOneUse());
  });
  pdl.registerConstraintFunction("SameElement",
                                 [](mlir::PatternRewriter&, mlir::Value a, mlir::Value b) {
                                   return mlir::success(mlir::getElementTypeOrSelf(a.getType()) ==
                                                        mlir::getElementTypeOrSelf(b.getType()));
                                 });
  return mlir::FrozenRewritePatternSet(mlir::RewritePatternSet(std::move(pdl)));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: mlir_driver PATTERNS GRAPH\n", stderr);
    return 2;
  }
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.allowUnregisteredDialects();
  context.loadDialect<mlir::func::FuncDialect, mlir::pdl::PDLDialect,
                      mlir::pdl_interp::PDLInterpDialect>();
  auto source = mlir::parseSourceFile<mlir::ModuleOp>(argv[1], mlir::ParserConfig(&context));
  if (!source) return 1;
  mlir::FrozenRewritePatternSet patterns;
  const double rules_s = seconds([&] { patterns = compile(std::move(source)); });

  const double empty = resident_mib();
  mlir::OwningOpRef<mlir::ModuleOp> graph;
  const mlir::ParserConfig unverified(&context, /*verifyAfterParse=*/false);
  const double load_s =
      seconds([&] { graph = mlir::parseSourceFile<mlir::ModuleOp>(argv[2], unverified); });
  if (!graph) return 1;
  const double graph_mib = resident_mib() - empty;
  const Histogram before = count(*graph);

  mlir::GreedyRewriteConfig config;
  config.useTopDownTraversal = true;
  config.enableRegionSimplification = false;
  bool converged = false;
  const double rewrite_s = seconds([&] {
    converged = mlir::succeeded(
        mlir::applyPatternsAndFoldGreedily(graph->getOperation(), patterns, config));
  });
  const bool valid = mlir::succeeded(mlir::verify(*graph));
  std::printf(
      "{\"rules_s\": %.6f, \"load_s\": %.6f, \"rewrite_s\": %.6f, \"graph_mib\": %.1f, "
      "\"peak_mib\": %.0f, \"ok\": %s, \"before\": %s, \"after\": %s}\n",
      rules_s, load_s, rewrite_s, graph_mib, peak_mib(), valid && converged ? "true" : "false",
      print(before).c_str(), print(count(*graph)).c_str());
  std::fflush(stdout);
  _exit(0);  // destroying the context takes long
}
