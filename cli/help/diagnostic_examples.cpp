#include "cli/help/diagnostic_examples.hpp"

#include <algorithm>

namespace pw {
namespace {

constexpr DiagnosticExample kExamples[] = {
    {"PW0101", R"(rule r { y = neg(neg(x z)) => y = x })",
     R"(rule r { y = neg(neg(x)) => y = x })"},
    {"PW0102",
     R"(use "mine.pwr
rule r { y = neg(neg(x)) => y = x })",
     R"(use "noop"
rule r { y = neg(neg(x)) => y = x })"},
    {"PW0103", R"(param mode: str = "a\q")", R"(param mode: str = "a\\q")"},
    {"PW0104", R"(param most: int = 9223372036854775808)",
     R"(param most: int = 9223372036854775807)"},
    {"PW0105", R"(param most: int = $3)", R"(param most: int = 3)"},
    {"PW0108",
     R"(rule r { y = neg(neg(x)) => y = x }
})",
     R"(rule r { y = neg(neg(x)) => y = x })"},
    {"PW0109", R"(rule r { out = neg(neg(x)) => out = x })",
     R"(rule r { `out` = neg(neg(x)) => `out` = x })"},
    {"PW0110", R"(rulee r { y = neg(neg(x)) => y = x })", R"(rule r { y = neg(neg(x)) => y = x })"},
    {"PW0111", R"(rule r { y = relu(x + b: T[m]) => y = maximum(x + b, 0) })",
     R"(rule r { y = relu(add(x, b: T[m])) => y = maximum(x + b, 0) })"},
    {"PW0220", R"(rule r { y = softmax(neg(neg(x))) => y = x })",
     R"(rule r { y = exp(neg(neg(x))) => y = exp(x) })"},
    {"PW0230", R"(rule r { y = add(x) => y = x })", R"(rule r { y = add(x, z) => y = add(z, x) })"},
    {"PW0231", R"(rule r { y = add(neg(neg(x)), none) => y = x })",
     R"(rule r { y = add(neg(neg(x)), z) => y = add(x, z) })"},
    {"PW0232", R"(rule r { y = rms_norm(neg(neg(x)), w){ep} => y = rms_norm(x, w){eps = ep} })",
     R"(rule r { y = rms_norm(neg(neg(x)), w){eps} => y = rms_norm(x, w){eps} })"},
    {"PW0233", R"(rule r { y = amax(neg(neg(x))){dim = "last"} => y = amax(x){dim = -1} })",
     R"(rule r { y = amax(neg(neg(x))){dim = -1} => y = amax(x){dim = -1} })"},
    {"PW0234", R"(rule r { y = amax(neg(neg(x))){dim, dim} => y = amax(x){dim} })",
     R"(rule r { y = amax(neg(neg(x))){dim} => y = amax(x){dim} })"},
    {"PW0235", R"(rule r { y = reshape(neg(neg(x))) => y = x })",
     R"(rule r { y = reshape(neg(neg(x))){shape} => y = reshape(x){shape} })"},
    {"PW0236", R"(rule r { y = fused_add_rms_norm(x, res, w){eps} => y = x })",
     R"(rule r {
  y, s = fused_add_rms_norm(neg(neg(x)), res, w){eps}
  => y, s = fused_add_rms_norm(x, res, w){eps}
})"},
    {"PW0241", R"(rule r { bf16 = neg(neg(x)) => bf16 = x })",
     R"(rule r { y = neg(neg(x)) => y = x })"},
    {"PW0242", R"(rule r { h = neg(x)  h = neg(h)  y = relu(h) => y = relu(x) })",
     R"(rule r { h = neg(x)  g = neg(h)  y = relu(g) => y = relu(x) })"},
    {"PW0243", R"(rule r { y = neg(h)  h = neg(x) => y = x })",
     R"(rule r { h = neg(x)  y = neg(h) => y = x })"},
    {"PW0244", R"(rule r { y = neg(neg(x: T[n])) => y = T })",
     R"(rule r { y = neg(neg(x: T[n])) => y = x })"},
    {"PW0270", R"(rule r { y = neg(neg(x: T[n])) where m > 1 => y = x })",
     R"(rule r { y = neg(neg(x: T[n])) where n > 1 => y = x })"},
    {"PW0271", R"(rule r { y = neg(neg(x)) where len(x) == 2 => y = x })",
     R"(rule r { y = neg(neg(x)) where rank(x) == 2 => y = x })"},
    {"PW0273", R"(rule r { y = neg(neg(x)) => y = z })", R"(rule r { y = neg(neg(x)) => y = x })"},
    {"PW0275", R"(rule r { h = neg(x)  y = neg(neg(h)) => y = h })",
     R"(rule r { given { h = neg(_) }  y = neg(neg(h)) => y = h })"},
    {"PW0276", R"(rule r { y = neg(neg(x)) => y = x  y = relu(x) })",
     R"(rule r { y = neg(neg(x)) => y = x })"},
    {"PW0279", R"(rule r { y = neg(neg(x: T[n])) where n % 8 => y = x })",
     R"(rule r { y = neg(neg(x: T[n])) where n % 8 == 0 => y = x })"},
    {"PW0280", R"(rule r { y = neg(neg(x: T[n])) where n > 4, n < 3 => y = x })",
     R"(rule r { y = neg(neg(x: T[n])) where n > 2, n < 5 => y = x })"},
    {"PW0281", R"(rule r { y = neg(neg(amax(x){dim})) => y = x })",
     R"(rule r { y = neg(neg(amax(x){dim})) => y = amax(x){dim} })"},
    {"PW0282", R"(rule r { h = relu(x)  y = neg(neg(x)) => y = x })",
     R"(rule r { y = neg(neg(x)) => y = x })"},
    {"PW0291", R"(rule r { y = neg(neg(x)) where x[0] == 1 => y = x })",
     R"(rule r { y = neg(neg(x)) where size(x, 0) == 1 => y = x })"},
    {"PW0401",
     R"(rule r { y = neg(neg(x)) => y = x }
rule r { y = relu(relu(x)) => y = relu(x) })",
     R"(rule r { y = neg(neg(x)) => y = x }
rule s { y = relu(relu(x)) => y = relu(x) })"},
    {"PW0462", R"(use "mine/missing.pwr")", R"(use "noop")"},
    {"PW1152",
     R"(rule r { y = add(x, z) => y = add(z, x) }
pass p = greedy { r })",
     R"(rule r { y = add(x, z) => y = add(z, x) }
pass p = once { r })"},
    {"PW1153", R"(rule r { y = sum(x){dim = -1} => y = mean(x){dim = -1} })",
     R"(rule r { y = neg(neg(x)) => y = x })"},
    {"PW1154", R"(rule r { y = add(x: f16[n], x) => y = sub(mul(x, 4.0), mul(x, 2.0)) })",
     R"(rule r { y = add(x: f16[n], x) => y = mul(x, 2.0) })"},
    {"PW1156",
     R"(rule r { y = neg(neg(x)) => y = x }
test t {
  graph { in x: f32[2]  y = neg(neg(x))  out y }
  apply p
  expect r == 2
}
pass p = greedy { r })",
     R"(rule r { y = neg(neg(x)) => y = x }
test t {
  graph { in x: f32[2]  y = neg(neg(x))  out y }
  apply p
  expect r == 1
}
pass p = greedy { r })"},
};

}  // namespace

std::span<const DiagnosticExample> diagnostic_examples() { return kExamples; }

const DiagnosticExample* diagnostic_example(std::string_view code) {
  const auto* found =
      std::find_if(std::begin(kExamples), std::end(kExamples),
                   [&](const DiagnosticExample& example) { return example.code == code; });
  return found == std::end(kExamples) ? nullptr : found;
}

}  // namespace pw
