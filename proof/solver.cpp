// Loads libpw_z3.so at run time, if it is installed. Without it every query is answered with
// `unknown`, which is sound.
#include "proof/solver.hpp"

#include <dlfcn.h>

#include "base/dynamic_library.hpp"
#include "proof/z3/pw_z3.hpp"

namespace pw::proof {
namespace {

using Make = decltype(&pw_z3_solver);

/// Searches next to this binary, in the build folder and in the installation. The library stays
/// loaded until the process ends.
Make find_z3() {
  for (const std::string& place :
       places_beside(reinterpret_cast<void*>(&find_z3),
                     {"libpw_z3.so", "../bin/libpw_z3.so", "../lib/piecewise/libpw_z3.so"}))
    if (void* library = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL))
      return reinterpret_cast<Make>(::dlsym(library, "pw_z3_solver"));
  return nullptr;
}

/// Null without the library; the search runs once for each process.
Make z3() {
  static const Make make = find_z3();
  return make;
}

/// The key of the memo: equal texts are equal terms.
std::string text_of(const SolverTerm& term) {
  std::string out;
  for (const SolverTerm::Product& p : term.products) {
    out += std::to_string(p.factor);
    for (const std::string& name : p.unknowns) out += "*" + name;
    out += "+";
  }
  return out;
}

}  // namespace

struct Solver::State {
  std::unique_ptr<SolverLibrary> library;
};

Solver::Solver() : state_(std::make_unique<State>()) {
  if (z3() != nullptr) state_->library.reset(z3()(kSolverVersion));
}
Solver::~Solver() = default;
bool Solver::present() { return z3() != nullptr; }

bool Solver::implies(const std::vector<SolverTerm>& facts, const SolverTerm& goal) {
  if (!state_->library) return false;
  std::string question = text_of(goal);
  for (const SolverTerm& fact : facts) question += ";" + text_of(fact);
  const auto known = implied_.find(question);
  if (known != implied_.end()) return known->second;
  ++queries;
  const SolverLibrary::Answer answer = state_->library->implies(facts, goal);
  if (answer == SolverLibrary::Answer::unknown) ++unanswered;
  const bool yes = answer == SolverLibrary::Answer::yes;
  implied_.emplace(std::move(question), yes);
  return yes;
}

/// Not memoized: each query has its own expressions, and the caller limits their number.
FloatAnswer Solver::same_bits(const FloatQuestion& question) {
  if (!state_->library) return {};
  ++queries;
  FloatAnswer answer = state_->library->same_bits(question);
  if (answer.unanswered) ++unanswered;
  return answer;
}

}  // namespace pw::proof
