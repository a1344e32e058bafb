#include "verify/prover.hpp"

namespace pw {

const ProofLab* proof_lab() { return nullptr; }

}  // namespace pw
