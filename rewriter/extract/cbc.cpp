// Integer program with a variable for each chosen node and each needed class. A needed class has
// one chosen node; a chosen node needs its children. In a strongly connected component each class
// has a level, and a chosen node is above its children there, which forbids cycles
// (Miller-Tucker-Zemlin ordering).
#include "rewriter/extract/cbc.hpp"

#ifdef PW_CBC

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>

#include <coin/Cbc_C_Interface.h>

#include "base/dynamic_library.hpp"
#include "rewriter/extract/reduce.hpp"

namespace pw::extract {
namespace {

// clang-format off: a table
#define PW_CBC_FUNCTIONS(X)                                                                       \
  X(newModel) X(deleteModel) X(setParameter) X(solve) X(getColSolution) X(isProvenInfeasible)     \
  X(isProvenOptimal) X(getObjValue) X(getBestPossibleObjValue) X(addCol) X(addRow)                \
  X(setMIPStartI)
// clang-format on

/// COIN-OR's CBC, loaded at run time: programs run without it.
struct Cbc {
#define PW_POINTER(name) decltype(&::Cbc_##name) name = nullptr;
  PW_CBC_FUNCTIONS(PW_POINTER)
#undef PW_POINTER
};

const Cbc* load_cbc() {
  std::string problem;
  void* library = load_library({"libCbcSolver.so.3", "libCbcSolver.so"}, problem);
  if (library == nullptr) return nullptr;
  static Cbc cbc;
  FunctionFinder find(library);
#define PW_FIND(name) find(cbc.name, "Cbc_" #name);
  PW_CBC_FUNCTIONS(PW_FIND)
#undef PW_FIND
  return find.missing().empty() ? &cbc : nullptr;
}

const Cbc* cbc() {
  static const Cbc* const loaded = load_cbc();
  return loaded;
}

struct Free {
  void operator()(void* model) const { cbc()->deleteModel(model); }
};

class Program {
 public:
  explicit Program(const Problem& problem)
      : p_(problem), model_(cbc()->newModel()), component_(components_of(problem)) {
    cbc()->setParameter(model_.get(), "logLevel", "0");
    add_columns();
    add_rows();
  }

  /// Returns the choice, empty if none was found, and the bound.
  std::pair<Choice, double> run(double seconds, const Choice& start) {
    set_start(start);
    cbc()->setParameter(model_.get(), "seconds", std::to_string(seconds).c_str());
    cbc()->setParameter(model_.get(), "ratioGap", "0");
    cbc()->solve(model_.get());
    const double* values = cbc()->getColSolution(model_.get());
    Choice choice(p_.classes.size(), kNone);
    if (values == nullptr || cbc()->isProvenInfeasible(model_.get()) != 0) return {{}, 0};
    for (ClassIndex c = 0; c < p_.classes.size(); ++c)
      for (NodeIndex n : p_.classes[c])
        if (values[node_[n]] > 0.5) choice[c] = n;
    const bool proved = cbc()->isProvenOptimal(model_.get()) != 0;
    return {choice, proved ? cbc()->getObjValue(model_.get())
                           : cbc()->getBestPossibleObjValue(model_.get())};
  }

 private:
  int column(double lower, double upper, double cost, bool integer) {
    cbc()->addCol(model_.get(), "", lower, upper, cost, integer ? 1 : 0, 0, nullptr, nullptr);
    return columns_++;
  }
  void row(const std::vector<std::pair<int, double>>& terms, char sense, double right) {
    std::vector<int> at;
    std::vector<double> factor;
    for (const auto& [i, f] : terms) {
      at.push_back(i);
      factor.push_back(f);
    }
    cbc()->addRow(model_.get(), "", static_cast<int>(at.size()), at.data(), factor.data(), sense,
                  right);
  }

  void add_columns() {
    std::vector<std::size_t> size(p_.classes.size() + 1, 0);
    for (std::uint32_t own : component_) ++size[own];
    node_.assign(p_.nodes.size(), -1);
    for (ClassIndex c = 0; c < p_.classes.size(); ++c) {
      const bool root = std::find(p_.roots.begin(), p_.roots.end(), c) != p_.roots.end();
      needed_.push_back(column(root ? 1 : 0, 1, 0, false));
      const auto most = static_cast<double>(size[component_[c]]);
      level_.push_back(most > 1 ? column(0, most, 0, false) : -1);
      most_.push_back(most + 1);
      for (NodeIndex n : p_.classes[c]) node_[n] = column(0, 1, p_.nodes[n].cost, true);
    }
  }

  void add_rows() {
    for (ClassIndex c = 0; c < p_.classes.size(); ++c) {
      std::vector<std::pair<int, double>> one{{needed_[c], -1}};
      for (NodeIndex n : p_.classes[c]) one.emplace_back(node_[n], 1);
      row(one, 'E', 0);
      std::map<ClassIndex, std::vector<std::pair<int, double>>> reads;
      for (NodeIndex n : p_.classes[c])
        for (ClassIndex child : p_.nodes[n].children) reads[child].emplace_back(node_[n], 1);
      for (auto& [child, terms] : reads) {
        std::vector<std::pair<int, double>> needs = terms;
        needs.emplace_back(needed_[child], -1);
        row(needs, 'L', 0);
        if (component_[child] != component_[c] || level_[c] < 0) continue;
        for (auto& [i, factor] : terms) factor = most_[c];
        terms.emplace_back(level_[child], 1);
        terms.emplace_back(level_[c], -1);
        row(terms, 'L', most_[c] - 1);
      }
    }
  }

  void set_start(const Choice& start) {
    const auto order = needed_classes(p_, start);
    if (!order) return;
    std::vector<double> values(static_cast<std::size_t>(columns_), 0);
    double level = 0;
    std::uint32_t last = kNone;
    for (ClassIndex c : *order) {
      level = component_[c] == last ? level + 1 : 0;
      last = component_[c];
      values[static_cast<std::size_t>(needed_[c])] = 1;
      values[static_cast<std::size_t>(node_[start[c]])] = 1;
      if (level_[c] >= 0) values[static_cast<std::size_t>(level_[c])] = level;
    }
    std::vector<int> at;
    for (int i = 0; i < columns_; ++i) at.push_back(i);
    cbc()->setMIPStartI(model_.get(), columns_, at.data(), values.data());
  }

  const Problem& p_;
  std::unique_ptr<void, Free> model_;
  std::vector<std::uint32_t> component_;
  std::vector<int> node_, needed_, level_;
  std::vector<double> most_;
  int columns_ = 0;
};

}  // namespace

bool has_cbc() { return cbc() != nullptr; }

std::optional<Answer> solve_with_cbc(const Problem& problem, double seconds) {
  if (!has_cbc()) return std::nullopt;
  Limits few;
  few.steps = 100'000;
  std::optional<Answer> first = solve(problem, {}, few);
  if (!first || first->exact) return first;
  const std::optional<Reduced> reduced = reduce(problem);
  double bound = 0;
  Choice choice = reduced->free;
  std::vector<Part> parts = parts_of(*reduced);
  for (const Part& part : parts) {
    Choice start(part.classes.size(), kNone);
    for (NodeIndex n = 0; n < part.nodes.size(); ++n) {
      const ClassIndex owner = part.problem.nodes[n].owner;
      if (first->choice[part.classes[owner]] == part.nodes[n]) start[owner] = n;
    }
    auto [own, least] = Program(part.problem).run(seconds, start);
    bound += least;
    if (own.empty()) own = start;
    for (ClassIndex c = 0; c < own.size(); ++c)
      if (own[c] != kNone) choice[part.classes[c]] = part.nodes[own[c]];
  }
  few.steps = 0;
  std::optional<Answer> out = solve(problem, {first->choice, choice}, few);
  if (const auto needed = needed_classes(problem, choice)) {
    const double cost = cost_of(problem, *needed, choice);
    if (cost <= out->cost) out->choice = choice, out->needed = *needed, out->cost = cost;
  }
  out->bound = std::min(out->cost, std::max(bound, first->bound));
  out->exact = out->bound >= out->cost - 1e-7 * std::max(1.0, std::abs(out->cost));
  return out;
}

}  // namespace pw::extract

#else

namespace pw::extract {

bool has_cbc() { return false; }
std::optional<Answer> solve_with_cbc(const Problem&, double) { return std::nullopt; }

}  // namespace pw::extract

#endif
