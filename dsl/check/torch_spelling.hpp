// Hints for ops, methods, and constants of PyTorch that occur in rules.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pw {

struct Context;

/// Returns how rules spell a call of PyTorch: `F.silu`, `torch.matmul`, `x.view`. Empty for
/// names that PyTorch does not have either.
std::string torch_spelling(const Context& context, std::string_view name);

/// Returns how a guard spells a name or function of PyTorch or Python: `torch.float16`, `x.ndim`,
/// `len`. Empty for others.
std::string torch_guard_spelling(std::string_view name);

}  // namespace pw
