"""Random rules with their truth, which numpy computes and the project does not.

A rule is a law, such as `a + b => b + a`, whose variables are small random expressions. Truth comes from evaluating both sides:
over all values of i8, u8, and f16 (all pairs of the 8-bit types), and over the ends, powers of two, and random values of the wider types.
A law of wider integers also counts as true only if the same law holds for all pairs of i8.
"""

import random

import numpy as np

INTEGERS = {"i8": np.int8, "u8": np.uint8, "i32": np.int32, "i64": np.int64}
FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
TYPES = {**INTEGERS, **FLOATS}
WIDER = {"i8": ["i32", "i64"], "u8": ["i32", "i64"], "i32": ["i64"], "i64": []}


class Node:
    """A call, a variable (`op` is x or y), or a number (`op` is a Python number)."""

    def __init__(self, op, *args):
        self.op, self.args = op, args


def variables(node):
    if node.op in ("x", "y"):
        return {node.op}
    return set().union(*(variables(arg) for arg in node.args)) if node.args else set()


def text(node, declared=None):
    """Returns the rule text; `declared` holds the type of each variable that is not written yet."""
    if node.op in ("x", "y"):
        kind = declared.pop(node.op, None) if declared is not None else None
        return f"{node.op}: {kind}" if kind else node.op
    if not node.args:
        return str(node.op)
    op, attributes = node.op, ""
    if op in ("sum", "amax", "amin"):
        attributes = "{dim = -1}"
    return f"{op}({', '.join(text(arg, declared) for arg in node.args)}){attributes}"


def value(node, env):
    """Evaluates in machine arithmetic: integers wrap, f16 rounds after each op."""
    if node.op in env:
        return env[node.op]
    if not node.args:
        return np.asarray(node.op)
    return apply(node.op, [value(arg, env) for arg in node.args])


def weak(args):
    """Numbers take the dtype of the other operand."""
    strong = [a for a in args if a.ndim > 0]
    if not strong:
        return args
    return [a if a.ndim > 0 else a.astype(strong[-1].dtype) for a in args]


def wide(array):
    return array.astype(np.float32) if array.dtype == np.float16 else array


def apply(op, args):
    args = args if op == "select" else weak(args)
    a = args[0]
    if op in TYPES:
        return a.astype(TYPES[op])
    kind = a.dtype
    reals = [wide(arg) for arg in args]
    functions = {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum, "neg": np.negative, "abs": np.abs,
        "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "tanh": np.tanh, "div": np.divide,
    }  # fmt: skip
    if op in functions:
        return functions[op](*reals).astype(kind)
    if op == "b8":
        return a.astype(bool)
    if op in ("shift_left", "shift_right", "remainder"):
        return {"shift_left": np.left_shift, "shift_right": np.right_shift, "remainder": np.remainder}[op](*args).astype(kind)
    compare = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal}
    if op in compare:
        return compare[op](*args)
    bits = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor, "bitwise_not": np.invert}
    if op in bits:
        return bits[op](*args)
    if op == "select":
        return np.where(a, *weak(args[1:]))
    if op == "sum":
        if np.issubdtype(kind, np.integer):
            return np.add.reduce(a, axis=-1, dtype=kind)
        return np.add.reduce(wide(a), axis=-1).astype(kind)
    if op == "amax":
        return a.max(axis=-1)
    if op == "amin":
        return a.min(axis=-1)
    raise ValueError(op)


def c(op, *args):
    return Node(op, *args)


def number(n):
    return Node(n)


def integer_laws(kind):
    """Laws over one integer type: (left, right) of the expressions a, b, and c."""
    wider = WIDER[kind]
    laws = [
        lambda a, b, d: (c("add", a, b), c("add", b, a)),
        lambda a, b, d: (c("add", c("add", a, b), d), c("add", a, c("add", b, d))),
        lambda a, b, d: (c("mul", c("mul", a, b), d), c("mul", a, c("mul", b, d))),
        lambda a, b, d: (c("mul", a, c("add", b, d)), c("add", c("mul", a, b), c("mul", a, d))),
        lambda a, b, d: (c("sub", a, b), c("add", a, c("neg", b))),
        lambda a, b, d: (c("neg", c("neg", a)), c("mul", a, number(1))),
        lambda a, b, d: (c("mul", a, number(2)), c("add", a, a)),
        lambda a, b, d: (c("mul", c("add", a, b), c("sub", a, b)), c("sub", c("mul", a, a), c("mul", b, b))),
        lambda a, b, d: (c("neg", c("mul", a, b)), c("mul", c("neg", a), b)),
        lambda a, b, d: (c("sub", c("add", a, b), b), c("mul", a, number(1))),
        lambda a, b, d: (c("maximum", a, b), c("maximum", b, a)),
        lambda a, b, d: (c("minimum", c("minimum", a, b), d), c("minimum", a, c("minimum", b, d))),
        lambda a, b, d: (c("maximum", c("minimum", a, b), b), c("add", b, number(0))),
        lambda a, b, d: (c("lt", a, b), c("gt", b, a)),
        lambda a, b, d: (c("bitwise_not", c("lt", a, b)), c("ge", a, b)),
        lambda a, b, d: (c("bitwise_not", c("eq", a, b)), c("ne", a, b)),
        lambda a, b, d: (c("select", c("lt", a, b), a, b), c("minimum", a, b)),
        lambda a, b, d: (c("abs", c("neg", a)), c("abs", a)),
        lambda a, b, d: (c("abs", c("abs", a)), c("abs", a)),
        lambda a, b, d: (c("bitwise_and", a, b), c("bitwise_and", b, a)),
        lambda a, b, d: (c("bitwise_not", c("bitwise_not", a)), c("add", a, number(0))),
        lambda a, b, d: (c("bitwise_xor", c("bitwise_xor", a, b), b), c("add", a, number(0))),
        lambda a, b, d: (c("bitwise_and", a, c("bitwise_or", a, b)), c("add", a, number(0))),
        lambda a, b, d: (c("bitwise_not", c("bitwise_and", a, b)), c("bitwise_or", c("bitwise_not", a), c("bitwise_not", b))),
        lambda a, b, d: (c("bitwise_not", a), c("sub", c("neg", a), number(1))),
        lambda a, b, d: (c("add", c("bitwise_or", a, b), c("bitwise_and", a, b)), c("add", a, b)),
        lambda a, b, d: (c("shift_left", a, number(2)), c("mul", a, number(4))),
        lambda a, b, d: (c("shift_right", c("shift_right", a, number(1)), number(2)), c("shift_right", a, number(3))),
        lambda a, b, d: (c("remainder", a, number(8)), c("bitwise_and", a, number(7))),
        lambda a, b, d: (c("select", c("ge", a, b), a, b), c("maximum", a, b)),
        lambda a, b, d: (c("select", c("lt", a, b), c("add", a, d), c("add", b, d)), c("add", c("minimum", a, b), d)),
        lambda a, b, d: (c("b8", a), c("ne", a, number(0))),
        lambda a, b, d: (c("eq", c("bitwise_xor", a, b), number(0)), c("eq", a, b)),
        lambda a, b, d: (c("maximum", c("bitwise_not", a), c("bitwise_not", b)), c("bitwise_not", c("minimum", a, b))),
        lambda a, b, d: (c("bitwise_or", c("lt", a, b), c("eq", a, b)), c("le", a, b)),
        lambda a, b, d: (c("lt", c("maximum", a, b), d), c("bitwise_and", c("lt", a, d), c("lt", b, d))),
        lambda a, b, d: (c("maximum", a, c("minimum", b, d)), c("minimum", c("maximum", a, b), c("maximum", a, d))),
        lambda a, b, d: (c("mul", c("abs", a), c("abs", b)), c("abs", c("mul", c("abs", a), b))),
        # Returns False where bits are shifted out or a remainder is lost.
        lambda a, b, d: (c("shift_right", c("add", a, b), number(1)), c("add", c("shift_right", a, number(1)), c("shift_right", b, number(1)))),
        lambda a, b, d: (c("shift_left", c("shift_right", a, number(1)), number(1)), c("add", a, number(0))),
        lambda a, b, d: (c("shift_right", c("mul", a, number(2)), number(1)), c("add", a, number(0))),
        lambda a, b, d: (c("remainder", c("add", a, b), number(4)), c("add", c("remainder", a, number(4)), c("remainder", b, number(4)))),
        lambda a, b, d: (c("remainder", c("mul", a, number(3)), number(3)), c("mul", a, number(0))),
        # False where something wraps.
        lambda a, b, d: (c("lt", a, c("add", a, number(1))), c("eq", a, a)),
        lambda a, b, d: (c("ge", c("abs", a), number(0)), c("eq", a, a)),
        lambda a, b, d: (c("lt", c("add", a, b), c("add", a, d)), c("lt", b, d)),
        lambda a, b, d: (c("lt", c("sub", a, b), number(0)), c("lt", a, b)),
        lambda a, b, d: (c("maximum", c("add", a, b), c("add", a, d)), c("add", a, c("maximum", b, d))),
        lambda a, b, d: (c("minimum", c("mul", a, number(2)), c("mul", b, number(2))), c("mul", c("minimum", a, b), number(2))),
        lambda a, b, d: (c("maximum", c("neg", a), c("neg", b)), c("neg", c("minimum", a, b))),
        lambda a, b, d: (c("lt", c("neg", a), c("neg", b)), c("lt", b, a)),
        lambda a, b, d: (c("abs", c("mul", a, b)), c("mul", c("abs", a), c("abs", b))),
        lambda a, b, d: (c("maximum", c("abs", a), number(0)), c("abs", a)),
        lambda a, b, d: (c("abs", c("add", a, b)), c("add", c("abs", a), c("abs", b))),
        lambda a, b, d: (c("eq", c("mul", a, number(2)), c("mul", b, number(2))), c("eq", a, b)),
        lambda a, b, d: (c("eq", c("add", a, b), c("add", a, d)), c("eq", b, d)),
        lambda a, b, d: (c("maximum", a, b), c("add", a, b)),
        lambda a, b, d: (c("sub", a, b), c("sub", b, a)),
    ]
    for other in wider:
        laws += [
            lambda a, b, d, t=other: (c(kind, c("add", c(t, a), c(t, b))), c("add", a, b)),
            lambda a, b, d, t=other: (c(kind, c("mul", c(t, a), c(t, b))), c("mul", a, b)),
            lambda a, b, d, t=other: (c(kind, c("neg", c(t, a))), c("neg", a)),
            lambda a, b, d, t=other: (c(t, c("maximum", a, b)), c("maximum", c(t, a), c(t, b))),
            lambda a, b, d, t=other: (c("lt", c(t, a), c(t, b)), c("lt", a, b)),
            lambda a, b, d, t=other: (c("eq", c(t, a), c(t, b)), c("eq", a, b)),
            # False where the narrow side wraps.
            lambda a, b, d, t=other: (c(t, c("add", a, b)), c("add", c(t, a), c(t, b))),
            lambda a, b, d, t=other: (c(t, c("mul", a, b)), c("mul", c(t, a), c(t, b))),
            lambda a, b, d, t=other: (c(t, c("neg", a)), c("neg", c(t, a))),
            lambda a, b, d, t=other: (c(t, c("abs", a)), c("abs", c(t, a))),
        ]
    return laws


def integer_reductions(kind):
    laws = [
        lambda a, b: (c("sum", c("add", a, b)), c("add", c("sum", a), c("sum", b))),
        lambda a, b: (c("sum", c("mul", a, number(3))), c("mul", c("sum", a), number(3))),
        lambda a, b: (c("sum", c("neg", a)), c("neg", c("sum", a))),
        lambda a, b: (c("amax", c("maximum", a, b)), c("maximum", c("amax", a), c("amax", b))),
        # False where something wraps.
        lambda a, b: (c("amax", c("neg", a)), c("neg", c("amin", a))),
        lambda a, b: (c("amax", c("add", a, number(1))), c("add", c("amax", a), number(1))),
        lambda a, b: (c("amin", c("mul", a, number(2))), c("mul", c("amin", a), number(2))),
        lambda a, b: (c("sum", c("abs", a)), c("abs", c("sum", a))),
    ]
    for other in WIDER[kind]:
        laws.append(lambda a, b, t=other: (c("sum", c(t, a)), c(t, c("sum", a))))
        laws.append(lambda a, b, t=other: (c(kind, c("sum", c(t, a))), c("sum", a)))
    return laws


def float_laws(kind):
    """Laws over one float type, each with True if it holds bit for bit; the others fail for some finite input beyond rounding."""
    laws = [
        (True, lambda a, b, d: (c("add", a, b), c("add", b, a))),
        (True, lambda a, b, d: (c("mul", a, b), c("mul", b, a))),
        (True, lambda a, b, d: (c("neg", c("neg", a)), c("mul", a, number(1.0)))),
        (True, lambda a, b, d: (c("sub", a, b), c("add", a, c("neg", b)))),
        (True, lambda a, b, d: (c("neg", c("mul", a, b)), c("mul", c("neg", a), b))),
        (True, lambda a, b, d: (c("abs", c("neg", a)), c("abs", a))),
        (True, lambda a, b, d: (c("abs", c("mul", a, b)), c("mul", c("abs", a), c("abs", b)))),
        (True, lambda a, b, d: (c("mul", a, number(2.0)), c("add", a, a))),
        (True, lambda a, b, d: (c("div", a, number(2.0)), c("mul", a, number(0.5)))),
        (True, lambda a, b, d: (c("lt", a, b), c("gt", b, a))),
        (True, lambda a, b, d: (c("select", c("eq", a, b), d, d), c("mul", d, number(1.0)))),
        (False, lambda a, b, d: (c("mul", c("exp", a), c("exp", b)), c("exp", c("add", a, b)))),
        (False, lambda a, b, d: (c("div", c("exp", a), c("exp", b)), c("exp", c("sub", a, b)))),
        (False, lambda a, b, d: (c("mul", c("mul", a, b), d), c("mul", a, c("mul", b, d)))),
        (False, lambda a, b, d: (c("sqrt", c("mul", a, a)), c("abs", a))),
        (False, lambda a, b, d: (c("div", a, b), c("mul", a, c("div", number(1.0), b)))),
        (False, lambda a, b, d: (c("log", c("exp", a)), c("mul", a, number(1.0)))),
        (False, lambda a, b, d: (c("exp", c("log", a)), c("mul", a, number(1.0)))),
        (False, lambda a, b, d: (c("log", c("mul", a, b)), c("add", c("log", a), c("log", b)))),
        (False, lambda a, b, d: (c("sqrt", c("mul", a, b)), c("mul", c("sqrt", a), c("sqrt", b)))),
        (False, lambda a, b, d: (c("div", c("mul", a, b), b), c("mul", a, number(1.0)))),
        (False, lambda a, b, d: (c("ge", c("mul", a, a), number(0.0)), c("eq", number(0.0), c("mul", a, number(0.0))))),
        (False, lambda a, b, d: (c("bitwise_not", c("lt", a, b)), c("ge", a, b))),
        (False, lambda a, b, d: (c("maximum", a, b), c("add", a, b))),
        (False, lambda a, b, d: (c("lt", a, c("add", a, number(1.0))), c("eq", a, a))),
    ]
    if kind in ("f32", "f64"):
        narrow = "f16" if kind == "f32" else "f32"
        laws += [
            (False, lambda a, b, d: (c(kind, c(narrow, a)), c("mul", a, number(1.0)))),
            (False, lambda a, b, d: (c(kind, c("add", c(narrow, a), c(narrow, b))), c("add", a, b))),
        ]
    if kind == "f16":
        laws += [
            (True, lambda a, b, d: (c("f16", c("f32", a)), c("mul", a, number(1.0)))),
            (True, lambda a, b, d: (c("f16", c("add", c("f32", a), c("f32", b))), c("add", a, b))),
        ]
    return laws


def expression(rng, depth, names, ops):
    if depth == 0 or rng.random() < 0.4:
        return Node(rng.choice(names))
    op = rng.choice(ops)
    if op == "number":
        return c("add", expression(rng, depth - 1, names, ops), number(rng.choice([1, 2, 3, 5])))
    if op in ("neg", "abs"):
        return c(op, expression(rng, depth - 1, names, ops))
    return c(op, expression(rng, depth - 1, names, ops), expression(rng, depth - 1, names, ops))


def special_integers(kind):
    info = np.iinfo(TYPES[kind])
    values = {0, 1, 2, 3, 5, 7, info.min, info.min + 1, info.max, info.max - 1, info.max // 2, info.max // 2 + 1, info.min // 2}
    values |= {sign * 2**k for k in range(0, info.bits - 1, 3) for sign in (1, -1)} | {-1, -2, -3}
    values |= {end for k in range(12) for end in (info.min + k, info.max - k)}
    return np.array(sorted(v for v in values if info.min <= v <= info.max), dtype=TYPES[kind])


def domain(kind, rng, reduced):
    """Arrays x and y of all pairs that are tried; rows of two elements for reductions."""
    if kind in FLOATS:
        base = float_values(kind, rng)
        x, y = np.meshgrid(base, base)
        return x.ravel(), y.ravel()
    if kind in ("i8", "u8") and not reduced:
        all_of = np.arange(256).astype(np.uint8).view(TYPES[kind])
        x, y = np.meshgrid(all_of, all_of)
        return x.ravel(), y.ravel()
    base = special_integers(kind)
    draws = np.random.default_rng(rng.randrange(2**32))
    info = np.iinfo(TYPES[kind])
    if not reduced:
        x, y = np.meshgrid(base, base)
        some = draws.integers(info.min, info.max, size=(2, 4000), dtype=TYPES[kind], endpoint=True)
        return np.concatenate([x.ravel(), some[0]]), np.concatenate([y.ravel(), some[1]])
    pick = lambda: draws.choice(base, size=(6000, 2))
    return pick(), pick()


def float_values(kind, rng):
    info = np.finfo(TYPES[kind])
    large = [float(info.max), float(info.max) / 2, float(np.sqrt(np.float64(info.max)))]
    small = [float(info.tiny), float(info.smallest_subnormal), float(info.smallest_subnormal) * 3, float(info.eps)]
    plain = [0.0, 1.0, 2.0, 3.0, 0.1, 0.5, 1.5, 7.25, 10.0, 11.0, 12.0, 60.0, 89.0, 100.0, 105.0, 710.0, 750.0]
    values = [v for v in plain + large + small if abs(v) <= float(info.max)]
    values += [rng.uniform(-4, 4) for _ in range(12)] + [
        2.0 ** rng.uniform(np.log2(float(info.tiny)) / 2, np.log2(float(info.max))) for _ in range(8)
    ]
    values += [-v for v in values]
    return np.array(values, dtype=TYPES[kind])


def same(left, right):
    if left.dtype != right.dtype:
        return np.zeros(left.shape, dtype=bool)
    if left.dtype.kind != "f":
        return left == right
    bits = left.view(f"u{left.dtype.itemsize}") == right.view(f"u{left.dtype.itemsize}")
    return bits | (np.isnan(left) & np.isnan(right))


def apart(left, right):
    """Returns True if some finite input gives results that no rounding explains."""
    if left.dtype.kind != "f":
        return bool((left != right).any())
    most = float(np.finfo(left.dtype).max)
    a, b = left.astype(np.float64), right.astype(np.float64)
    finite = np.isfinite(a) & np.isfinite(b)
    with np.errstate(all="ignore"):
        far = finite & (np.abs(a - b) > 0.05 * np.maximum(np.abs(a), np.abs(b)))
        lost = (np.isfinite(a) ^ np.isfinite(b)) & (np.where(np.isfinite(a), np.abs(a), np.abs(b)) < most / 4)
    return bool((far | lost).any())


def evaluated(rule_sides, kind, rng, reduced):
    x, y = domain(kind, rng, reduced)
    with np.errstate(all="ignore"):
        return [np.ascontiguousarray(value(side, {"x": x, "y": y})) for side in rule_sides]


class Rule:
    def __init__(self, name, kind, left, right, reduced, true):
        self.name, self.kind, self.left, self.right, self.reduced, self.true = name, kind, left, right, reduced, true

    def text(self):
        shape = "[n, d]" if self.reduced else "[*s]"
        declared = {v: self.kind + shape for v in sorted(variables(self.left))}
        return f"rule {self.name} {{ y0 = {text(self.left, declared)} => y0 = {text(self.right)} }}"


def make_integer(rng):
    kind = rng.choice(list(INTEGERS))
    reduced = rng.random() < 0.2
    ops = ["add", "sub", "mul", "neg", "maximum", "minimum", "abs", "number"]
    inner = lambda: expression(rng, rng.choice([0, 0, 1, 2]), ["x", "y"], ops)
    if reduced:
        left, right = rng.choice(integer_reductions(kind))(inner(), inner())
    else:
        left, right = rng.choice(integer_laws(kind))(inner(), inner(), inner())
    return kind, left, right, reduced


def truth_of(kind, left, right, reduced, rng):
    """True if no pair differs."""
    a, b = evaluated((left, right), kind, rng, reduced)
    if not same(a, b).all():
        return False
    if kind in ("i32", "i64") and not reduced:
        # The same law over i8, where all pairs are tried, unless it widens: then over i8 and i32.
        narrow = {"i32": "i8", "i64": "i32"} if "i32" in text(left) + text(right) or "i64" in text(left) + text(right) else {}
        if not narrow:
            a, b = evaluated((left, right), "i8", rng, False)
            return bool(same(a, b).all())
    return True


def make_float(rng):
    kind = rng.choice(list(FLOATS))
    true, law = rng.choice(float_laws(kind))
    inner = lambda: expression(rng, rng.choice([0, 0, 0, 1]), ["x", "y"], ["neg", "abs", "maximum"])
    left, right = law(inner(), inner(), inner())
    return kind, left, right, true


def rules(count, seed):
    """Yields `count` rules, half of them false."""
    rng = random.Random(seed)
    wanted = {True: (count + 1) // 2, False: count // 2}
    seen = set()
    made = 0
    while sum(wanted.values()) > 0:
        name = f"r{made}"
        floats = rng.random() < 0.3
        if floats:
            kind, left, right, true = make_float(rng)
            reduced = False
            a, b = evaluated((left, right), kind, rng, False)
            equal = bool(same(a, b).all())
            if equal != true or not (true or apart(a, b)):  # the law needs values that this expression does not take, or the other way round
                continue
        else:
            kind, left, right, reduced = make_integer(rng)
            true = truth_of(kind, left, right, reduced, rng)
        if wanted[true] == 0 or not left.args or not variables(right) <= variables(left) or not variables(left):
            continue
        rule = Rule(name, kind, left, right, reduced, true)
        key = rule.text().partition("{")[2]
        if key in seen or text(left) == text(right):
            continue
        seen.add(key)
        wanted[true] -= 1
        made += 1
        yield rule
