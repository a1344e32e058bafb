// Rule files that a diagnostic is reported for, with the same rules fixed.
#include "cli/help/diagnostic_examples.hpp"

namespace pw {
namespace {

constexpr std::string_view kRules = "rules.pwr";

// A correct test, which many examples end with.
constexpr std::string_view kTested = R"(rule r { y = neg(neg(x)) => y = x }
pass p = greedy { r }
test t {
  graph { in x: f32[2]  y = neg(neg(x))  out y }
  apply p
  expect r == 1
})";

constexpr DiagnosticExample kExamples[] = {
    {"PW0101", kRules, R"(rule r { y = neg(neg(x z)) => y = x })",
     "expected `)`, `,` or `:`, found `z`", R"(rule r { y = neg(neg(x)) => y = x })"},
    {"PW0102", kRules, R"(use "mine.pwr
rule r { y = neg(neg(x)) => y = x })",
     "the string is not closed on its line",
     R"(use "noop"
rule r { y = neg(neg(x)) => y = x })"},
    {"PW0103", kRules, R"(param mode: str = "a\q")", "unknown escape in a string",
     R"(param mode: str = "a\\q")"},
    {"PW0104", kRules, R"(param most: int = 9223372036854775808)", "the number is out of range",
     R"(param most: int = 9223372036854775807)"},
    {"PW0105", kRules, R"(param most: int = $3)", "this character is not allowed here",
     R"(param most: int = 3)"},
    {"PW0108", kRules, R"(rule r { y = neg(neg(x)) => y = x }
})",
     "this `}` closes nothing", R"(rule r { y = neg(neg(x)) => y = x })"},
    {"PW0109", kRules, R"(rule r { out = neg(neg(x)) => out = x })",
     "`out` is a reserved word, not a name", R"(rule r { `out` = neg(neg(x)) => `out` = x })"},
    {"PW0110", kRules, R"(rulee r { y = neg(neg(x)) => y = x })", "expected an item, found `rulee`",
     R"(rule r { y = neg(neg(x)) => y = x })"},
    {"PW0111", kRules, R"(rule r { y = relu(x + b: T[m]) => y = maximum(x + b, 0) })",
     "a type after `x + b` may be meant for `b` alone",
     R"(rule r { y = relu(add(x, b: T[m])) => y = maximum(x + b, 0) })"},
    {"PW0203", kRules, R"(op scaled(x: T[*s], w: T[*s]) -> T[*s]
op scaled(x: T[*s]) -> T[*s])",
     "op `scaled` is already declared with a different signature",
     R"(op scaled(x: T[*s], w: T[*s]) -> T[*s]
op halved(x: T[*s]) -> T[*s])"},
    {"PW0204", kRules, R"(op doubled(x: T[*s]) -> y: T[*s] { y = add(x, x) }
op doubled(x: T[*s]) -> y: T[*s] { y = mul(x, 2) })",
     "op `doubled` is already declared with a different body",
     R"(op doubled(x: T[*s]) -> y: T[*s] { y = add(x, x) })"},
    {"PW0206", kRules, R"(pattern relu(x) -> y { y = maximum(x, 0) })",
     "pattern `relu` has the name of an op of the library",
     R"(pattern positive(x) -> y { y = maximum(x, 0) })"},
    {"PW0210", kRules, R"(op shifted(x: T[*s]) -> T[*s] pointwize)", "unknown trait `pointwize`",
     R"(op shifted(x: T[*s]) -> T[*s] pointwise)"},
    {"PW0211", kRules, R"(op scaled(x: T[*s], x: T[*s]) -> T[*s])",
     "`x` is declared twice in this op", R"(op scaled(x: T[*s], w: T[*s]) -> T[*s])"},
    {"PW0212", kRules, R"(op normed(x: T[*s]) {eps: real = 1e-6} -> T[*s])",
     "unknown kind of attribute `real`", R"(op normed(x: T[*s]) {eps: float = 1e-6} -> T[*s])"},
    {"PW0213", kRules, R"(op written(x: T[*s]) -> y: T[*s] from z)",
     "`from z` does not name an operand of `written`",
     R"(op written(x: T[*s]) -> y: T[*s] from x)"},
    {"PW0214", kRules, R"(op scaled(x: T[*s]) -> y)",
     "a result of `scaled` has neither a complete type nor a body to infer it from",
     R"(op scaled(x: T[*s]) -> y: T[*s])"},
    {"PW0215", kRules, R"(op doubled(x: T[*s]) -> T[*s] { y = add(x, x) })",
     "a result of an op with a body needs a name",
     R"(op doubled(x: T[*s]) -> y: T[*s] { y = add(x, x) })"},
    {"PW0216", kRules, R"(op joined(xs...: T[n], y: T[n]) -> z: T[n])",
     "only the last operand may be variadic", R"(op joined(y: T[n], xs...: T[n]) -> z: T[n])"},
    {"PW0217", kRules, R"(op normed(x: T[*s]) {eps: float = "small"} -> T[*s])",
     "this is not a literal of kind `float`",
     R"(op normed(x: T[*s]) {eps: float = 1e-6} -> T[*s])"},
    {"PW0218", kRules, R"(op bf16(x: T[*s]) -> T[*s])",
     "`bf16` is a dtype, so it cannot be the name of an op", R"(op to_bf16(x: T[*s]) -> bf16[*s])"},
    {"PW0219", kRules, R"(rule r { y = neg(neg(x: bfloat16[n])) => y = x })",
     "no dtype is called `bfloat16`, and as a variable it would match any dtype",
     R"(rule r { y = neg(neg(x: bf16[n])) => y = x })"},
    {"PW0220", kRules, R"(rule r { y = softmax(neg(neg(x))) => y = x })", "unknown op `softmax`",
     R"(rule r { y = exp(neg(neg(x))) => y = exp(x) })"},
    {"PW0221", kRules, R"(op shifted(x: T[*s]) -> y: T[*s] { y = add(x, h) })",
     "`h` is not bound in the body of `shifted`",
     R"(op shifted(x: T[*s], h: T[*s]) -> y: T[*s] { y = add(x, h) })"},
    {"PW0222", kRules, R"(op both(x: T[*s]) -> (y: T[*s], z: T[*s]) { y = relu(x) })",
     "result `z` is not bound by the body",
     R"(op both(x: T[*s]) -> (y: T[*s], z: T[*s]) { y = relu(x)  z = neg(x) })"},
    {"PW0223", kRules, R"(op twice(x: T[*s]) -> y: T[*s] { y = relu(x)  y = neg(y) })",
     "`y` is bound twice", R"(op twice(x: T[*s]) -> y: T[*s] { h = relu(x)  y = neg(h) })"},
    {"PW0224", kRules, R"(op again(x: T[*s]) -> y: T[*s] { y = again(neg(x)) })",
     "the body of `again` calls itself", R"(op again(x: T[*s]) -> y: T[*s] { y = neg(neg(x)) })"},
    {"PW0225", kRules, R"(op widened(x: bf16[*b, d]) -> y: bf16[*b, d] { y = f32(x) })",
     "the body of `widened` has type f32[b.0, b.1, d], but its signature declares bf16[b.0, b.1, "
     "d]",
     R"(op widened(x: bf16[*b, d]) -> y: f32[*b, d] { y = f32(x) })"},
    {"PW0226", kRules, R"(op linear(x: T[n, k], w: T[k, m]) -> y: T[n, m] { y = mm(w, x) })",
     "the body of `linear` does not fit its signature: op `mm`: operand `b` is bf16[n, k], not "
     "T[k, m] (with k = m)",
     R"(op linear(x: T[n, k], w: T[k, m]) -> y: T[n, m] { y = mm(x, w) })"},
    {"PW0230", kRules, R"(rule r { y = add(x) => y = x })", "`add` takes 2 operands, here are 1",
     R"(rule r { y = add(x, z) => y = add(z, x) })"},
    {"PW0231", kRules, R"(rule r { y = add(neg(neg(x)), none) => y = x })",
     "operand `y` of `add` is not optional",
     R"(rule r { y = add(neg(neg(x)), z) => y = add(x, z) })"},
    {"PW0232", kRules,
     R"(rule r { y = rms_norm(neg(neg(x)), w){ep} => y = rms_norm(x, w){eps = ep} })",
     "`rms_norm` has no attribute `ep`",
     R"(rule r { y = rms_norm(neg(neg(x)), w){eps} => y = rms_norm(x, w){eps} })"},
    {"PW0233", kRules, R"(rule r { y = amax(neg(neg(x))){dim = "last"} => y = amax(x){dim = -1} })",
     "attribute `dim` is of kind `axis`, and this is not",
     R"(rule r { y = amax(neg(neg(x))){dim = -1} => y = amax(x){dim = -1} })"},
    {"PW0234", kRules, R"(rule r { y = amax(neg(neg(x))){dim, dim} => y = amax(x){dim} })",
     "attribute `dim` is written twice",
     R"(rule r { y = amax(neg(neg(x))){dim} => y = amax(x){dim} })"},
    {"PW0235", kRules, R"(rule r { y = reshape(neg(neg(x))) => y = x })",
     "attribute `shape` of `reshape` has no default, so it must be written or opened",
     R"(rule r { y = reshape(neg(neg(x))){shape} => y = reshape(x){shape} })"},
    {"PW0236", kRules, R"(rule r { y = fused_add_rms_norm(x, res, w){eps} => y = x })",
     "`fused_add_rms_norm` has 2 results, but 1 name is given",
     R"(rule r {
  y, s = fused_add_rms_norm(neg(neg(x)), res, w){eps}
  => y, s = fused_add_rms_norm(x, res, w){eps}
})"},
    {"PW0241", kRules, R"(rule r { bf16 = neg(neg(x)) => bf16 = x })",
     "`bf16` is a dtype, so it cannot be bound here", R"(rule r { y = neg(neg(x)) => y = x })"},
    {"PW0242", kRules, R"(rule r { h = neg(x)  h = neg(h)  y = relu(h) => y = relu(x) })",
     "`h` is bound twice in the pattern",
     R"(rule r { h = neg(x)  g = neg(h)  y = relu(g) => y = relu(x) })"},
    {"PW0243", kRules, R"(rule r { y = neg(h)  h = neg(x) => y = x })",
     "`h` is read before the statement that binds it",
     R"(rule r { h = neg(x)  y = neg(h) => y = x })"},
    {"PW0244", kRules, R"(rule r { y = neg(neg(x: T[n])) => y = T })",
     "`T` is used as a value, but it is a dtype", R"(rule r { y = neg(neg(x: T[n])) => y = x })"},
    {"PW0250", kRules, R"(rule r { y = x => y = x })",
     "a pattern consists of ops, and this is not an op", R"(rule r { y = neg(neg(x)) => y = x })"},
    {"PW0251", kRules, R"(rule r { y = neg(neg(x)) % w => y = x })", "`%` is not an op on values",
     R"(rule r { y = neg(neg(x)) / w => y = x / w })"},
    {"PW0252", kRules, R"(rule r { y = f32(neg(neg(x)), w) => y = f32(x) })",
     "a cast takes one operand and no attributes",
     R"(rule r { y = f32(neg(neg(x))) => y = f32(x) })"},
    {"PW0253", kRules, R"(rule r { y = neg(neg(fused_add_rms_norm(x, res, w){..})) => y = x })",
     "`fused_add_rms_norm` has 2 results, so it cannot be used inside an expression",
     R"(rule r {
  h, s = fused_add_rms_norm(neg(neg(x)), res, w){eps}
  => h, s = fused_add_rms_norm(x, res, w){eps}
})"},
    {"PW0256", kRules, R"(rule r { y = neg(neg(x: promote(T, U)[n])) => y = x })",
     "a dtype in a pattern must be a dtype or a variable",
     R"(rule r { y = neg(neg(x: T[n])) where T in {f16, bf16} => y = x })"},
    {"PW0257", kRules, R"(rule r {
  y = cat(neg(neg(x: T[*a, n, *b]))...){dim = 0}
  => y = cat(x...){dim = 0}
})",
     "a shape in `many` or `unless` has at most one sequence, because its split would be ambiguous "
     "otherwise",
     R"(rule r { y = cat(neg(neg(x: T[n, *b]))...){dim = 0} => y = cat(x...){dim = 0} })"},
    {"PW0258", kRules, R"(rule r { y = neg(neg(x: T[a + b])) => y = x })",
     "a dim can be solved for one variable, and this has 2",
     R"(rule r { y = mm(neg(neg(x: T[n, a + b])), w: T[k, a]) => y = mm(x, w) })"},
    {"PW0260", kRules, R"(foreign relu(x) = relu(x))", "`relu` does not name the library of the op",
     R"(foreign mine.relu(x) = relu(x))"},
    {"PW0261", kRules, R"(foreign mine.sum(x, x) = add(x, x))",
     "`x` is already an argument of this op", R"(foreign mine.sum(x, y) = add(x, y))"},
    {"PW0262", kRules, R"(foreign mine.relu_(mut x: number) { x = relu(x) })",
     "an argument that is written must be a tensor",
     R"(foreign mine.relu_(mut x) { x = relu(x) })"},
    {"PW0263", kRules, R"(foreign mine.add_out(out q, x) { q = add(x, q) })",
     "`q` is write-only, so it has no contents to read",
     R"(foreign mine.add_(mut q, x) { q = add(x, q) })"},
    {"PW0264", kRules, R"(foreign mine.on(x, device: _) = add(x, device))",
     "`device` is declared as ignored, but used here",
     R"(foreign mine.on(x, device: _) = relu(x))"},
    {"PW0265", kRules, R"(foreign mine.shifted(x) = add(x, z))",
     "`z` is not bound in this foreign op", R"(foreign mine.shifted(x, z) = add(x, z))"},
    {"PW0266", kRules, R"(foreign mine.twice(x) -> y { x = relu(x)  y = neg(x) })",
     "`x` is an argument that is not written",
     R"(foreign mine.twice(x) -> y { h = relu(x)  y = neg(h) })"},
    {"PW0267", kRules, R"(foreign mine.relu(x) -> z { y = relu(x) })",
     "the body does not bind `z`, which is returned",
     R"(foreign mine.relu(x) -> y { y = relu(x) })"},
    {"PW0268", kRules, R"(foreign mine.scale_(mut x, w) -> y { y = mul(x, w) })",
     "the body does not say what `x` holds afterwards",
     R"(foreign mine.scale_(mut x, w) { x = mul(x, w) })"},
    {"PW0269", kRules, R"(foreign mine.relu(x, inplace) = relu(x))",
     "nothing uses argument `inplace`", R"(foreign mine.relu(x, inplace: _) = relu(x))"},
    {"PW0270", kRules, R"(rule r { y = neg(neg(x: T[n])) where m > 1 => y = x })",
     "`m` is not bound by the pattern", R"(rule r { y = neg(neg(x: T[n])) where n > 1 => y = x })"},
    {"PW0271", kRules, R"(rule r { y = neg(neg(x)) where len(x) == 2 => y = x })",
     "unknown function `len`", R"(rule r { y = neg(neg(x)) where rank(x) == 2 => y = x })"},
    {"PW0272", kRules, R"(rule r { y = neg(neg(_)) => y = _ })", "`_` has no value to read",
     R"(rule r { y = neg(neg(x)) => y = x })"},
    {"PW0273", kRules, R"(rule r { y = neg(neg(x)) => y = z })", "`z` is not bound",
     R"(rule r { y = neg(neg(x)) => y = x })"},
    {"PW0274", kRules, R"(rule r { y = neg(neg(x)) => h = relu(y)  y = neg(h) })",
     "`y` is read before the right side binds it again",
     R"(rule r { y = neg(neg(x)) => h = relu(x)  y = neg(neg(x)) _ = h })"},
    {"PW0275", kRules, R"(rule r { h = neg(x)  y = neg(neg(h)) => y = h })",
     "`h` is consumed by this rule, so the right side cannot read it",
     R"(rule r { given { h = neg(_) }  y = neg(neg(h)) => y = h })"},
    {"PW0276", kRules, R"(rule r { y = neg(neg(x)) => y = x  y = relu(x) })",
     "`y` is bound twice on the right", R"(rule r { y = neg(neg(x)) => y = x })"},
    {"PW0277", kRules, R"(rule r { y = neg(neg(x)) => x = neg(x)  y = x })",
     "`x` is an input of the pattern, so it cannot be bound again",
     R"(rule r { y = neg(neg(x)) => h = neg(x)  y = neg(h) })"},
    {"PW0278", kRules, R"(rule r { y = neg(neg(x)) => y = reshape(x){..} })",
     "`..` copies the attributes of the one node `reshape` of the pattern, and there are none",
     R"(rule r { y = reshape(neg(neg(x))){..} => y = reshape(x){..} })"},
    {"PW0279", kRules, R"(rule r { y = neg(neg(x: T[n])) where n % 8 => y = x })",
     "`n % 8` is a number, but a guard must be true or false",
     R"(rule r { y = neg(neg(x: T[n])) where n % 8 == 0 => y = x })"},
    {"PW0280", kRules, R"(rule r { y = neg(neg(x: T[n])) where n > 4, n < 3 => y = x })",
     "`n < 3` never holds: nothing satisfies it and `n > 4`",
     R"(rule r { y = neg(neg(x: T[n])) where n > 2, n < 5 => y = x })"},
    {"PW0281", kRules, R"(rule r { y = neg(neg(amax(x){dim})) => y = x })",
     "attribute `dim` is captured and then dropped",
     R"(rule r { y = neg(neg(amax(x){dim})) => y = amax(x){dim} })"},
    {"PW0282", kRules, R"(rule r { h = relu(x)  y = neg(neg(x)) => y = x })", "`h` is never used",
     R"(rule r { y = neg(neg(x)) => y = x })"},
    {"PW0283", kRules, R"(rule r { y = neg(neg(x)) => h = neg(x)  y = x })",
     "`h` is computed here and never used", R"(rule r { y = neg(neg(x)) => y = x })"},
    {"PW0284", kRules, R"(rule r { given { y = neg(neg(x)) } => z = neg(x)  _ = y })",
     "this rule replaces nothing: its whole pattern is `given`",
     R"(rule r { given { h = neg(x) }  y = neg(h) => y = x })"},
    {"PW0285", kRules, R"(rule r { y = neg(neg(x)) => _ = x })",
     "this rule does not rebind any result of its pattern, so it would only delete nodes",
     R"(rule r { y = neg(neg(x)) => y = x })"},
    {"PW0286", kRules, R"(rule r { y = neg(neg(x))  z = relu(w) => y = x  z = relu(w) })",
     "this part of the pattern is not connected to the rest, so it would match any pair of places",
     R"(rule r { y = neg(neg(x))  z = relu(y) => y = x  z = relu(y) })"},
    {"PW0287", kRules, R"(rule r { y = f32(x: bf16[n]) => y = x })",
     "the type of output `y` changes", R"(rule r { y = f32(x: f32[n]) => y = x })"},
    {"PW0288", kRules, R"(rule r {
  h = neg(x)
  given { g = relu(h) }
  y = neg(h)
  => y = x  _ = g
})",
     "`h` is consumed, but read here in `given`, which survives",
     R"(rule r {
  given { h = neg(x) }
  y = neg(h)
  => y = x
})"},
    {"PW0289", kRules, R"(rule r { y = add(relu(x), relu(x)) => y = mul(relu(x), 2) })",
     "this is `relu` of the same operands twice, which requires two nodes, but `cse` merges them "
     "into one",
     R"(rule r { h = relu(x)  y = add(h, h) => y = mul(relu(x), 2) })"},
    {"PW0290", kRules, R"(rule r { y = cat(xs...){dim} => y = relu(xs) _ = dim })",
     "`xs` is a list, and one value is expected here",
     R"(rule r { y = relu(cat(xs...){dim}) => y = cat(relu(xs)...){dim} })"},
    {"PW0291", kRules, R"(rule r { y = neg(neg(x)) where x[0] == 1 => y = x })",
     "`x` is not a list", R"(rule r { y = neg(neg(x)) where size(x, 0) == 1 => y = x })"},
    {"PW0292", kRules, R"(rule r { y = cat(as..., bs...){dim} => y = cat(bs..., as...){dim} })",
     "a list has at most one `...`",
     R"(rule r { y = neg(neg(cat(xs...){dim})) => y = cat(xs...){dim} })"},
    {"PW0293", kRules, R"(rule r { y = neg(neg(x)) => many y = abs(x) })",
     "`many` is allowed only on the left side", R"(rule r { y = neg(neg(x)) => y = x })"},
    {"PW0294", kRules, R"(rule r {
  many y = mm(x: T[n, k], w: T[k, m])
  =>
  z = mm(cat(x...){dim = 0}, cat(w...){dim = 1})
  y... = split(z){dim = 1, sizes = [m...]}
})",
     "nothing determines where to find these members: no operand is the same for all of them",
     R"(rule r {
  many y = mm(x: T[n, k], w: T[k, m])
  =>
  z = mm(x, cat(w...){dim = 1})
  y... = split(z){dim = 1, sizes = [m...]}
})"},
    {"PW0295", kRules, R"(rule r { y = neg(neg(x)) unless { h = relu(y) } => y = add(x, h) })",
     "`h` is bound in `unless`, so it has no value",
     R"(rule r { y = neg(neg(x)) unless { _ = relu(y) } => y = x })"},
    {"PW0296", kRules, R"(pattern rec views(x) -> y { y = x | y = reshape(views(x)){..} }
rule r { y = neg(neg(x)) unless { _ = neg(views(y)) } => y = x })",
     "pattern `views` is recursive, so it cannot be used in `unless`",
     R"(rule r { y = neg(neg(x)) unless { _ = neg(reshape(y){..}) } => y = x })"},
    {"PW0299", kRules, R"(rule r {
  y = cat(xs...){dim} where size(xs[dim], 0) == 3
  => y = neg(cat(xs...){dim})
})",
     "the index of a list element must be a number",
     R"(rule r {
  y = neg(neg(cat(xs...){dim})) where size(xs[0], 0) == 3
  => y = cat(xs...){dim}
})"},
    {"PW0371", kRules, R"(table Sizes (size) { s: 8 }
rule r for k in Sizes { y = k.size(neg(neg(x))) => y = x })",
     "this cell is called as an op, but does not contain one",
     R"(table Acts (act) { a: abs }
rule r for k in Acts { y = k.act(neg(neg(x))) => y = k.act(x) })"},
    {"PW0372", kRules, R"(table Acts (act) { a: abs  a: sin })", "row `a` is declared twice",
     R"(table Acts (act) { a: abs  s: sin })"},
    {"PW0373", kRules, R"(table Acts (act) { }
rule r for k in Acts { y = k.act(neg(neg(x))) => y = k.act(x) })",
     "table `Acts` has no rows, so its families have no rules",
     R"(table Acts (act) { a: abs }
rule r for k in Acts { y = k.act(neg(neg(x))) => y = k.act(x) })"},
    {"PW0374", kRules, R"(table Acts (act, least) { a: abs  s: sin, 8 })",
     "row `a` has 1 cells for 2 columns", R"(table Acts (act, least) { a: abs, 1  s: sin, 8 })"},
    {"PW0375", kRules, R"(table Acts (act) { a: abs  s: 3 })", "column `act` mixes ops and values",
     R"(table Acts (act) { a: abs  s: sin })"},
    {"PW0376", kRules, R"(table Acts (act) { a: abs  s: sin }
rule r for k in Actss { y = k.act(neg(neg(x))) => y = k.act(x) })",
     "no table is called `Actss`",
     R"(table Acts (act) { a: abs  s: sin }
rule r for k in Acts { y = k.act(neg(neg(x))) => y = k.act(x) })"},
    {"PW0377", kRules, R"(rule r { op f: pointwise  y = neg(neg(x)) => y = x })",
     "the pattern does not call `f`, so it could be any op",
     R"(rule r { op f: pointwise  y = f(neg(neg(x))) => y = f(x) })"},
    {"PW0378", kRules, R"(rule r { op f: pointwise  y = f(neg(neg(x))){no_such = 3} => y = x })",
     "no op that is `pointwise` can be called like `f` is here",
     R"(rule r { op f: pointwise  y = f(neg(neg(x))) => y = f(x) })"},
    {"PW0379", kRules,
     R"(pattern scaled(x: T[*b, d], w: U[d]) -> y { y = mul(x, w) | y = neg(x) })",
     "an alternative of pattern `scaled` has no node that reads `w`, so its type is not checked "
     "there",
     R"(pattern scaled(x: T[*b, d], w: U[d]) -> y { y = mul(x, w) | y = mul(w, x) })"},
    {"PW0380", kRules, R"(op doubled(x: T[*s]) -> y: T[*s] { y = add(x, x) }
pattern doubled(x) -> y { y = neg(x) })",
     "an op is already called `doubled`",
     R"(op doubled(x: T[*s]) -> y: T[*s] { y = add(x, x) }
pattern negated(x) -> y { y = neg(x) })"},
    {"PW0381", kRules, R"(pattern either(x) -> y { y = neg(x) | z = abs(x) })",
     "this alternative of pattern `either` does not bind `y`",
     R"(pattern either(x) -> y { y = neg(x) | y = abs(x) })"},
    {"PW0382", kRules, R"(pattern ping(x) -> y { y = pong(x) }
pattern pong(x) -> y { y = ping(x) })",
     "pattern `ping` calls itself",
     R"(pattern ping(x) -> y { y = pong(neg(x)) }
pattern pong(x) -> y { y = neg(x) })"},
    {"PW0383", kRules, R"(pattern same(x) -> y { y = neg(neg(x)) }
rule r { y = same(x, x) => y = x })",
     "pattern `same` takes 1 operand, here are 2",
     R"(pattern same(x) -> y { y = neg(neg(x)) }
rule r { y = same(x) => y = x })"},
    {"PW0386", kRules, R"(rule r {
  y = neg?(neg?(neg?(neg?(neg?(neg?(neg?(neg?(neg?(neg?(neg?(neg?(neg?(relu(x))))))))))))))
  => y = relu(x)
})",
     "rule `r` has more than 4096 variants", R"(rule r { y = relu(neg(neg(x))) => y = relu(x) })"},
    {"PW0387", kRules, R"(rule r { y = neg(neg(add?(x, w))) => y = add(x, w) })",
     "an optional node must have exactly one operand, which replaces it when it is absent",
     R"(rule r { y = neg(neg(x)) => y = x })"},
    {"PW0388", kRules, R"(pattern rec level(x) -> y { y = x | y = level(x) })",
     "this call of `level` in the recursive pattern `level` is not deeper than the pattern itself",
     R"(pattern rec level(x) -> y { y = x | y = neg(level(x)) })"},
    {"PW0389", kRules, R"(pattern rec chain(x) -> y { y = neg(chain(x)) })",
     "every alternative of pattern `chain` calls it again, so it never ends",
     R"(pattern rec chain(x) -> y { y = x | y = neg(chain(x)) })"},
    {"PW0390", kRules, R"(rule r { h = neg(x)  y = relu(h) => y = fuse  h = neg(x) })",
     "`fuse` must be the whole right side of a rule",
     R"(rule r { h = neg(x)  y = relu(h) => y = fuse })"},
    {"PW0391", kRules, R"(rule r { many y = mm(x, _) => y... = fuse })",
     "the fused op needs a name for this operand",
     R"(rule r { many y = mm(x, w) => y... = fuse })"},
    {"PW0392", kRules, R"(rule r { y = relu(x) <=> y = maximum(x, 0) }
pass p = greedy { r })",
     "equivalence `r` would be applied back and forth",
     R"(rule r { y = relu(x) <=> y = maximum(x, 0) }
pass p = greedy { r[forward] })"},
    {"PW0393", kRules, R"(extern pred fused_output_quants(layer: str, kind: str))",
     "extern `fused_output_quants` is not bound",
     R"(extern pred fused_output_quant(layer: str, kind: str))"},
    {"PW0394", kRules, R"(extern fn min_tokens(d: int, tp: int, sm: int) -> int
rule r { y = neg(neg(x: T[n, d])) where n >= min_tokens(d, 2) => y = x })",
     "`min_tokens` takes 3 arguments, here are 2",
     R"(extern fn min_tokens(d: int, tp: int, sm: int) -> int
rule r { y = neg(neg(x: T[n, d])) where n >= min_tokens(d, 2, 90) => y = x })"},
    {"PW0395", kRules, R"(extern fn min_tokens(d: int, tp: int, sm: int))",
     "extern `min_tokens` has no result",
     R"(extern fn min_tokens(d: int, tp: int, sm: int) -> int)"},
    {"PW0396", kRules, R"(table Acts (act) { r: relu }
rule f for k in Acts { y = k.act(x) <=> y = maximum(x, 0) })",
     "equivalence `f` cannot be a family", R"(rule f { y = relu(x) <=> y = maximum(x, 0) })"},
    {"PW0401", kRules, R"(rule r { y = neg(neg(x)) => y = x }
rule r { y = relu(relu(x)) => y = relu(x) })",
     "rule `r` is declared twice",
     R"(rule r { y = neg(neg(x)) => y = x }
rule s { y = relu(relu(x)) => y = relu(x) })"},
    {"PW0402", kRules, R"(rule r { y = neg(neg(x)) => y = x }
graph g { in x: f32[4]  y = neg(x)  out y })",
     "a graph is not allowed at top level", kTested},
    {"PW0403", kRules, R"(rule r { y = neg(neg(x)) => y = x }
pass dce = greedy { r })",
     "`dce` is a built-in pass",
     R"(rule r { y = neg(neg(x)) => y = x }
pass clean = greedy { r })"},
    {"PW0410", kRules, R"(rule merge { y = neg(neg(x)) => y = x }
pass p = greedy { merg })",
     "no rule, group or pass is called `merg`",
     R"(rule merge { y = neg(neg(x)) => y = x }
pass p = greedy { merge })"},
    {"PW0411", kRules, R"(rule r { y = neg(neg(x)) => y = x }
pass p = greedy { r, dce })",
     "`dce` is a pass, and only rules are allowed here",
     R"(rule r { y = neg(neg(x)) => y = x }
pass p = greedy { r } ; dce)"},
    {"PW0412", kRules, R"(pass p = q ; dce
pass q = cse ; p)",
     "`p` runs itself",
     R"(pass p = q ; dce
pass q = cse)"},
    {"PW0413", kRules, R"(rule r { y = neg(neg(x)) => y = x }
pass p = greedy { r } fuel 0)",
     "`fuel` must be at least 1",
     R"(rule r { y = neg(neg(x)) => y = x }
pass p = greedy { r } fuel 100)"},
    {"PW0414", kRules, R"(pass p = greedy { })", "`greedy` of nothing",
     R"(rule r { y = neg(neg(x)) => y = x }
pass p = greedy { r })"},
    {"PW0415", kRules, R"(param tp: int = 1
pipeline all { dce when tpp > 1 })",
     "no param is called `tpp`",
     R"(param tp: int = 1
pipeline all { dce when tp > 1 })"},
    {"PW0416", kRules, R"(rule r { y = neg(neg(x)) => y = x }
pass p = repeat greedy { r } rounds 3)",
     "`rounds` belongs to `saturate`, not to `repeat`",
     R"(rule r { y = neg(neg(x)) => y = x }
pass p = repeat greedy { r } fuel 3)"},
    {"PW0417", kRules, R"(pass p = best of { dce | cse })", "`best of` has no cost",
     R"(pass p = best of { dce | cse } by nodes)"},
    {"PW0418", kRules, R"(pass p = atomic dce ensures size(relu, 0) == 0)",
     "the only function of `ensures` is `count(op)`",
     R"(pass p = atomic dce ensures count(relu) == 0)"},
    {"PW0419", kRules, R"(rule r { y = neg(neg(x)) => y = x }
pass p = atomic (greedy { r } ; dce))",
     "`atomic` without `ensures` has no effect",
     R"(rule r { y = neg(neg(x)) => y = x }
pass p = atomic (greedy { r } ; dce) ensures count(neg) == 0)"},
    {"PW0420", kRules, R"(param shape: dims = [1])",
     "a param is int, float, bool, str or dtype, not `dims`", R"(param size: int = 1)"},
    {"PW0421", kRules, R"(rule r { y = neg(neg(x)) => y = x }
pass p = greedy { r }
test t {
  graph { in x: f32[2]  y = neg(neg(x))  out y }
  apply p with tp = 2
  expect r == 1
})",
     "no param is called `tp`", kTested},
    {"PW0430", kRules, R"(rule merge { y = neg(neg(x)) => y = x }
rule wide over merg { y = neg(neg(neg(x))) => y = neg(x) })",
     "no rule is called `merg`",
     R"(rule merge { y = neg(neg(x)) => y = x }
rule wide over merge { y = neg(neg(neg(x))) => y = neg(x) })"},
    {"PW0431", kRules, R"(rule a over b { y = neg(neg(x)) => y = x }
rule b over a { y = neg(neg(neg(x))) => y = neg(x) })",
     "rule `a` is, through a chain of `over`, preferred over itself",
     R"(rule a { y = neg(neg(x)) => y = x }
rule b over a { y = neg(neg(neg(x))) => y = neg(x) })"},
    {"PW0432", kRules, R"(rule a { y = neg(neg(x)) => y = x }
rule b { y = relu(relu(x: f32[n])) => y = relu(x) }
pass p = greedy { a }
pipeline all { p })",
     "no pipeline reaches rule `b`",
     R"(rule a { y = neg(neg(x)) => y = x }
rule b { y = relu(relu(x: f32[n])) => y = relu(x) }
pass p = greedy { a, b }
pipeline all { p })"},
    {"PW0434", kRules, R"(pipeline ranged { for tokens in ranges(256) { dce } }
pipeline all { cse ranged })",
     "`ranged` makes a graph for each token range, so it cannot be a step of another strategy",
     R"(pipeline ranged { for tokens in ranges(256) { cse dce } })"},
    {"PW0435", kRules, R"(pipeline ranged { for m in ranges(256) { dce } })",
     "ranges must be over tokens, not over `m`",
     R"(pipeline ranged { for tokens in ranges(256) { dce } })"},
    {"PW0436", kRules, R"(pipeline ranged { for tokens in ranges(256, 64) { dce } })",
     "ranges rise: 64 does not come after 256",
     R"(pipeline ranged { for tokens in ranges(64, 256) { dce } })"},
    {"PW0441", kRules, R"(rule r { y = neg(neg(x)) => y = x }
pass p = greedy { r }
test t { apply p expect r == 1 })",
     "test `t` has no graph", kTested},
    {"PW0442", kRules, R"(rule r { y = neg(neg(x)) => y = x }
pass p = greedy { r }
test t {
  graph { in x: f32[2]  y = neg(neg(x))  out y }
  apply p
})",
     "test `t` expects nothing, so it cannot fail", kTested},
    {"PW0443", kRules, R"(rule r { y = neg(neg(x)) => y = x }
pass p = greedy { r }
test t {
  graph { in x: f32[2]  y = neg(neg(x))  out y }
  apply q
  expect r == 1
})",
     "no pipeline, pass or rule is called `q`", kTested},
    {"PW0444", kRules, R"(rule r { y = neg(neg(x)) => y = x }
pass p = greedy { r }
test t {
  graph { in x: f32[2]  y = neg(neg(x))  out y }
  apply p
  expect nodes(neg) == 0
})",
     "the functions of a test are `count(op)`, which counts nodes, `diagnostics(CODE)`, which "
     "counts warnings, and `orders(20)`, which counts the results of 20 orders of rewrites",
     R"(rule r { y = neg(neg(x)) => y = x }
pass p = greedy { r }
test t {
  graph { in x: f32[2]  y = neg(neg(x))  out y }
  apply p
  expect count(neg) == 0
})"},
    {"PW0445", kRules, R"(rule r { y = neg(neg(x)) => y = x }
pass p = greedy { r }
test t {
  graph { in x: f32[2]  y = neg(neg(x))  out y }
  apply p
  expect rr == 1
})",
     "no rule, group or param is called `rr`", kTested},
    {"PW0446", kRules, R"(rule r { y = neg(neg(x)) => y = x }
rule s { y = abs(neg(x)) => y = abs(x) }
pass p = greedy { r }
test t {
  graph { in x: f32[2]  y = neg(neg(x))  out y }
  apply p
  expect s == 0
})",
     "the strategy of this test never runs rule `s`", kTested},
    {"PW0451", kRules, R"(capture { sizes 8..4 mode piecewise })",
     "capture sizes must ascend from at least 1 in steps of at least 1",
     R"(capture { sizes 4..8 mode piecewise })"},
    {"PW0453", kRules, R"(capture { sizes 1..8 mode piecewize })",
     "unknown capture mode `piecewize`", R"(capture { sizes 1..8 mode piecewise })"},
    {"PW0454", kRules, R"(rule a { y = neg(neg(x)) => y = x }
pass p = greedy { a }
pipeline all { p }
explore e { of all by nodes by bytes })",
     "this clause is repeated",
     R"(rule a { y = neg(neg(x)) => y = x }
pass p = greedy { a }
pipeline all { p }
explore e { of all by nodes, bytes })"},
    {"PW0455", kRules, R"(rule a { y = neg(neg(x)) => y = x }
pass p = greedy { a }
pipeline all { p }
explore e { of al by nodes })",
     "no pipeline, pass or rule is called `al`",
     R"(rule a { y = neg(neg(x)) => y = x }
pass p = greedy { a }
pipeline all { p }
explore e { of all by nodes })"},
    {"PW0456", kRules, R"(rule a { y = neg(neg(x)) => y = x }
pass p = greedy { a }
pipeline all { p }
explore e { of all tokens in 8..4 })",
     "a token range must ascend from at least 1",
     R"(rule a { y = neg(neg(x)) => y = x }
pass p = greedy { a }
pipeline all { p }
explore e { of all tokens in 4..8 })"},
    {"PW0462", kRules, R"(use "mine/missing.pwr")",
     "there is no `mine/missing.pwr` next to this file or in the library", R"(use "noop")"},
    {"PW1152", kRules, R"(rule r { y = add(x, z) => y = add(z, x) }
pass p = greedy { r })",
     "`p` may not terminate: `r` → `r`",
     R"(rule r { y = add(x, z) => y = add(z, x) }
pass p = once { r })"},
    {"PW1153", kRules, R"(rule r { y = sum(x){dim = -1} => y = mean(x){dim = -1} })",
     "`r` changes the numbers: y[0] is -0.926757812 before and -0.0289611816 after (of ordinary "
     "numbers); without rounding they differ by 0.8977",
     R"(rule r { y = neg(neg(x)) => y = x })"},
    {"PW1154", kRules, R"(rule r { y = add(x: f16[n], x) => y = sub(mul(x, 4.0), mul(x, 2.0)) })",
     "`r` may overflow: for x[i0] = -19856 the left is -39712 and the right -inf",
     R"(rule r { y = add(x: f16[n], x) => y = mul(x, 2.0) })"},
    {"PW1156", kRules, R"(rule r { y = neg(neg(x)) => y = x }
test t {
  graph { in x: f32[2]  y = neg(neg(x))  out y }
  apply p
  expect r == 2
}
pass p = greedy { r })",
     "test `t` fails: expected r == 2, got 1",
     R"(rule r { y = neg(neg(x)) => y = x }
test t {
  graph { in x: f32[2]  y = neg(neg(x))  out y }
  apply p
  expect r == 1
}
pass p = greedy { r })"},
};

}  // namespace

std::span<const DiagnosticExample> rule_examples() { return kExamples; }

}  // namespace pw
