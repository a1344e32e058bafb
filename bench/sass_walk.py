"""Walks through the machine code of a kernel as one thread would, and counts the instructions that it issues.

The text is the output of `cuobjdump -sass`. Integers, addresses and predicates are computed (thread, block, parameters are given), so that each loop runs
its actual number of times. Values read from memory or received from other threads are unknown, and so are their results. A branch on an unknown value is not
taken, unless a call (such as the slow path of a division) would follow: the count assumes ordinary numbers. Instructions whose guard is false count too,
because they are issued. NOPs do not.
"""
import re
import struct
from dataclasses import dataclass, field

MASK = 0xFFFFFFFF
MOST = 20_000  # instructions of a thread: beyond this the walk is lost
# Offsets of parameters, block extents and grid extents in the constant bank, by major compute capability.
PARAMS = {8: 0x160, 9: 0x210, 10: 0x380, 12: 0x380}
EXTENTS = {8: (0x0, 0xC), 9: (0x0, 0xC), 10: (0x360, 0x370), 12: (0x360, 0x370)}


@dataclass
class Instruction:
    at: int
    guard: str
    op: list
    operands: list


@dataclass
class Walk:
    issued: int = 0
    calls: int = 0
    unknown: set = field(default_factory=set)  # addresses of branches on unknown values
    by_op: dict = field(default_factory=dict)
    lost: bool = False  # how often a loop runs depends on an unknown value: the count is too small


def parse(text):
    """Returns the instructions by address."""
    out = {}
    for line in text.splitlines():
        found = re.match(r"\s*/\*([0-9a-f]{4,})\*/\s+(?:\{?\s*)(?:@(!?U?P[0-9T]+)\s+)?([A-Z][A-Z0-9_.a-z]*)\s*([^;]*);", line)
        if not found:
            continue
        at, guard, op, rest = found.groups()
        operands = [o.strip() for o in re.split(r",\s*(?![^\[]*\])", rest.strip()) if o.strip()]
        out[int(at, 16)] = Instruction(int(at, 16), guard or "", op.split("."), operands)
    return out


def signed(x, bits=32):
    return x - (1 << bits) if x >> (bits - 1) else x


def as_float(bits):
    return struct.unpack("<f", struct.pack("<I", bits & MASK))[0]


def as_bits(number):
    try:
        return struct.unpack("<I", struct.pack("<f", number))[0]
    except OverflowError:
        return 0x7F800000 if number > 0 else 0xFF800000


class Thread:
    def __init__(self, code, arch, constants, special):
        self.code, self.constants, self.special = code, constants, special
        self.places = sorted(code)
        self.follows = dict(zip(self.places, self.places[1:]))
        self.registers, self.predicates = {}, {}

    # ---- operands
    def predicate(self, name):
        if name.startswith("!"):
            value = self.predicate(name[1:])
            return None if value is None else not value
        return True if name in ("PT", "UPT") else self.predicates.get(name)

    def word(self, text, offset=0):
        """Returns a 32-bit operand; with an offset of 1 the upper word of a pair."""
        text = re.sub(r"\.(reuse|64|H0_H0|H1_H1|U32|S32|UR|X\d+)", "", text.strip())
        if text.startswith("-") and not text.startswith("-0x"):
            value = self.word(text[1:], offset)
            return None if value is None else -value & MASK
        if text.startswith("~"):
            value = self.word(text[1:], offset)
            return None if value is None else ~value & MASK
        if text.startswith("|"):
            return None
        if text in ("RZ", "URZ", "SRZ"):
            return 0
        found = re.fullmatch(r"(U?R)(\d+)", text)
        if found:
            return self.registers.get(f"{found[1]}{int(found[2]) + offset}")
        found = re.fullmatch(r"c\[(0x[0-9a-f]+)\]\[(.*)\]", text)
        if found:
            return self.constant(int(found[1], 16), found[2], offset)
        found = re.fullmatch(r"(-?)0x([0-9a-f]+)", text)
        if found:
            value = int(found[2], 16) * (-1 if found[1] else 1)
            return value >> (32 * offset) & MASK if offset else value & MASK
        found = re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", text)
        return as_bits(float(text)) if found else None

    def constant(self, bank, place, offset=0):
        base = 0
        for part in place.split("+"):
            part = part.strip()
            value = int(part, 16) if part.startswith("0x") else self.word(part)
            if value is None:
                return None
            base += value
        return self.constants.get(base + 4 * offset) if bank == 0 else None

    def pair(self, text):
        low, high = self.word(text), self.word(text, 1)
        return None if low is None or high is None else high << 32 | low

    def put(self, name, value, offset=0):
        found = re.fullmatch(r"(U?R)(\d+)(\.\w+)?", name)
        if found:
            self.registers[f"{found[1]}{int(found[2]) + offset}"] = None if value is None else value & MASK

    def put_pair(self, name, value):
        self.put(name, value)
        self.put(name, None if value is None else value >> 32, 1)

    def put_predicate(self, name, value):
        if re.fullmatch(r"U?P\d", name):
            self.predicates[name] = value

    # ---- the walk
    def run(self):
        walk, at, stack = Walk(), self.places[0], {}
        while walk.issued < MOST:
            i = self.code[at]
            guard = self.predicate(i.guard) if i.guard else True
            name = i.op[0]
            if name != "NOP":
                walk.issued += 1
                walk.by_op[name] = walk.by_op.get(name, 0) + 1
            following = self.follows.get(at)
            if name == "EXIT" and guard:
                return walk
            if name in ("BRA", "JMP", "RET", "CALL", "BRX"):
                following = self.jump(i, guard, following, walk, stack)
            elif guard is None:
                self.forget(i)
            elif guard:
                self.step(i)
            if following is None:
                return walk
            at = following
        walk.lost = True
        return walk

    def jump(self, i, guard, following, walk, stack):
        operands = list(i.operands)
        if "DIV" in i.op:
            return following
        conditions = [o for o in operands if re.fullmatch(r"!?U?P[0-9T]+", o)]
        for o in conditions:
            value = self.predicate(o)
            guard = None if value is None and guard is not False else (guard and value)
        target = next((int(o, 16) for o in reversed(operands) if re.fullmatch(r"0x[0-9a-f]+", o)), None)
        if i.op[0] == "RET":
            back = self.word(operands[0].split()[0])
            return back if guard and back in self.code else None
        if i.op[0] == "CALL":
            walk.calls += 1 if guard else 0
            return target if guard else following
        if guard is None:
            walk.unknown.add(i.at)
            walk.lost = walk.lost or (target is not None and target <= i.at)
            return target if self.calls_soon(following) and not self.calls_soon(target) else following
        return target if guard else following

    def calls_soon(self, at):
        for _ in range(16):
            if at is None or at not in self.code or self.code[at].op[0] in ("BRA", "EXIT", "RET"):
                return False
            if self.code[at].op[0] == "CALL":
                return True
            at = self.follows.get(at)
        return False

    def forget(self, i):
        """Marks the results of an instruction as unknown."""
        wide = 4 if "128" in i.op else 2 if "64" in i.op or "WIDE" in i.op else 1
        for o in i.operands[:2]:
            if re.fullmatch(r"U?P\d", o):
                self.put_predicate(o, None)
        if i.operands:
            for k in range(wide):
                self.put(i.operands[0], None, k)

    def step(self, i):
        name = i.op[0]
        known = getattr(self, "do_" + (name[1:] if name[0] == "U" and hasattr(self, "do_" + name[1:]) else name), None)
        if known is None:
            return self.forget(i) if name[:2] not in ("ST", "BA", "RE") else None
        return known(i)

    # ---- instructions
    def carries(self, i):
        """Returns the destination, the carry-out predicates, the sources, and the carry-in predicates."""
        rest = i.operands[1:]
        out = []
        while rest and re.fullmatch(r"U?P[0-9T]", rest[0]):
            out.append(rest.pop(0))
        into = []
        while rest and re.fullmatch(r"!?U?P[0-9T]", rest[-1]):
            into.insert(0, rest.pop())
        return i.operands[0], out, rest, into

    def do_MOV(self, i):
        self.put(i.operands[0], self.word(i.operands[1]))
        if "64" in i.op:
            self.put(i.operands[0], self.word(i.operands[1], 1), 1)

    def do_R2UR(self, i):
        self.put(i.operands[0], self.word(i.operands[-1] if len(i.operands) == 2 else i.operands[1]))

    def do_S2R(self, i):
        self.put(i.operands[0], self.special.get(i.operands[1]))

    do_S2UR = do_S2R

    def do_CS2R(self, i):
        value = 0 if i.operands[1] == "SRZ" else self.special.get(i.operands[1])
        self.put(i.operands[0], value)
        if "32" not in i.op:
            self.put(i.operands[0], 0 if value is not None else None, 1)

    def do_LDC(self, i):
        self.put(i.operands[0], self.word(i.operands[1]))
        for k in range(1, 4 if "128" in i.op else 2 if "64" in i.op else 1):
            self.put(i.operands[0], self.word(i.operands[1], k), k)

    do_ULDC = do_LDCU = do_LDC

    def do_IADD3(self, i):
        to, out, sources, into = self.carries(i)
        if "64" in i.op:
            values = [self.pair(s) for s in sources]
            return self.put_pair(to, None if None in values else sum(values))
        values = [self.word(s) for s in sources]
        if "X" in i.op:
            values += [int(p) if (p := self.predicate(q)) is not None else None for q in into]
        total = None if None in values else sum(values)
        self.put(to, total)
        for k, p in enumerate(out):
            self.put_predicate(p, None if total is None else total >> 32 > k)

    do_IADD = do_VIADD = do_IADD3

    def do_IMAD(self, i):
        to, out, sources, into = self.carries(i)
        a, b = self.word(sources[0]), self.word(sources[1])
        if "WIDE" in i.op:
            c = self.pair(sources[2])
            if 0 in (a, b):
                return self.put_pair(to, c)
            if None in (a, b, c):
                return self.put_pair(to, None)
            product = a * b if "U32" in i.op else signed(a) * signed(b)
            self.put_pair(to, product + c & (1 << 64) - 1)
            for p in out:
                self.put_predicate(p, (product & (1 << 64) - 1) + c >> 64 > 0)
            return None
        c = self.word(sources[2])
        if 0 in (a, b):
            a = b = 0
        if None in (a, b, c):
            return self.put(to, None)
        if "HI" in i.op:
            product = a * b if "U32" in i.op else signed(a) * signed(b)
            return self.put(to, (product >> 32) + c)
        carry = sum(int(bool(self.predicate(p))) for p in into) if "X" in i.op else 0
        return self.put(to, a * b + c + carry)

    def do_LEA(self, i):
        to, out, sources, into = self.carries(i)
        a, b = self.word(sources[0]), self.word(sources[1])
        if "HI" in i.op:
            c = self.word(sources[2]) if len(sources) > 3 else 0
            shift = self.word(sources[-1])
            if None in (a, b, c):
                return self.put(to, None)
            if "SX32" in i.op:
                c = MASK if a >> 31 else 0
            high = (c << 32 | a) << shift >> 32
            carry = int(bool(self.predicate(into[0]))) if "X" in i.op and into else 0
            return self.put(to, high + b + carry)
        shift = self.word(sources[-1])
        if None in (a, b):
            self.put(to, None)
            return [self.put_predicate(p, None) for p in out]
        total = (a << shift & MASK) + b
        self.put(to, total)
        return [self.put_predicate(p, total >> 32 > 0) for p in out]

    def do_SHF(self, i):
        a, s, c = (self.word(o) for o in i.operands[1:4])
        if None in (a, s, c):
            return self.put(i.operands[0], None)
        whole = c << 32 | a
        wide = "U64" in i.op or "S64" in i.op
        if "L" in i.op:
            value = whole << s >> 32 if "HI" in i.op else a << s
        elif "HI" in i.op:
            value = (signed(c) if i.op[2].startswith("S") else c) >> s
        else:
            value = (signed(whole, 64) if wide and "S64" in i.op else whole) >> s
        return self.put(i.operands[0], value)

    def do_SHL(self, i):
        a, s = self.word(i.operands[1]), self.word(i.operands[2])
        self.put(i.operands[0], None if None in (a, s) else a << s)

    def do_LOP3(self, i):
        operands = list(i.operands)
        into = operands.pop(0) if re.fullmatch(r"U?P[0-9T]", operands[0]) else None
        to, lut = operands[0], self.word(operands[4])
        a, b, c = (self.word(o) for o in operands[1:4])
        value = None
        if lut == 0xC0 and 0 in (a, b):
            value = 0
        elif None not in (a, b, c):
            value = 0
            for k in range(8):
                if lut >> k & 1:
                    value |= (a if k & 4 else ~a) & (b if k & 2 else ~b) & (c if k & 1 else ~c)
            value &= MASK
        self.put(to, value)
        if into:
            self.put_predicate(into, None if value is None else value != 0)

    def do_PLOP3(self, i):
        values = [self.predicate(o) for o in i.operands[2:5]]
        lut = self.word(i.operands[5])
        results = set()
        for k in range(8):
            bits = [bool(k & 4), bool(k & 2), bool(k & 1)]
            if all(v is None or v == b for v, b in zip(values, bits)):
                results.add(bool(lut >> k & 1))
        self.put_predicate(i.operands[0], results.pop() if len(results) == 1 else None)
        self.put_predicate(i.operands[1], None)

    def do_ISETP(self, i):
        wide = "U64" in i.op or "S64" in i.op
        a, b = ((self.pair(o) if wide else self.word(o)) for o in i.operands[2:4])
        unsigned = "U32" in i.op or "U64" in i.op
        result = None
        if None not in (a, b):
            x, y = (a, b) if unsigned else (signed(a, 64 if wide else 32), signed(b, 64 if wide else 32))
            result = self.compared(i.op[1], x, y, self.predicate(i.operands[-1]) if "EX" in i.op else None)
        other = self.predicate(i.operands[4])
        joined = self.joined(i.op, result, other)
        self.put_predicate(i.operands[0], joined)
        opposite = None if result is None else not result
        self.put_predicate(i.operands[1], self.joined(i.op, opposite, other))

    @staticmethod
    def compared(how, x, y, low):
        if low is not None and x == y:
            return low
        return {"EQ": x == y, "NE": x != y, "LT": x < y, "LE": x <= y, "GT": x > y, "GE": x >= y}[how]

    @staticmethod
    def joined(op, a, b):
        if "OR" in op:
            return True if True in (a, b) else None if None in (a, b) else False
        if "XOR" in op:
            return None if None in (a, b) else a != b
        return False if False in (a, b) else None if None in (a, b) else True

    def do_SEL(self, i):
        which = self.predicate(i.operands[3])
        self.put(i.operands[0], None if which is None else self.word(i.operands[1 if which else 2]))

    def do_IMNMX(self, i):
        sources = [o for o in i.operands[1:] if not re.fullmatch(r"!?U?P[0-9T]", o)]
        which = self.predicate(i.operands[-1])
        a, b = self.word(sources[0]), self.word(sources[1])
        if None in (a, b, which):
            return self.put(i.operands[0], None)
        key = (lambda v: v) if "U32" in i.op else signed
        return self.put(i.operands[0], min(a, b, key=key) if which else max(a, b, key=key))

    do_VIMNMX = do_IMNMX

    def do_VIADDMNMX(self, i):
        a, b, c = (self.word(o) for o in i.operands[1:4])
        which = self.predicate(i.operands[-1])
        if None in (a, b, c, which):
            return self.put(i.operands[0], None)
        key = (lambda v: v) if "U32" in i.op else signed
        return self.put(i.operands[0], (min if which else max)(a + b & MASK, c, key=key))

    def do_IABS(self, i):
        a = self.word(i.operands[1])
        self.put(i.operands[0], None if a is None else abs(signed(a)))

    def do_PRMT(self, i):
        a, s, b = (self.word(o) for o in i.operands[1:4])
        if None in (a, s, b):
            return self.put(i.operands[0], None)
        parts = (b << 32 | a).to_bytes(8, "little")
        value = 0
        for k in range(4):
            pick = s >> 4 * k & 15
            byte = parts[pick & 7]
            value |= (0xFF if byte >> 7 and pick & 8 else 0 if pick & 8 else byte) << 8 * k
        return self.put(i.operands[0], value)

    def do_HFMA2(self, i):
        """Computes a constant if nothing is multiplied: two 16-bit halves."""
        value = None
        if len(i.operands) == 5 and all(o.strip("-") == "RZ" for o in i.operands[1:3]):
            high, low = (struct.unpack("<H", struct.pack("<e", float(o)))[0] for o in i.operands[3:5])
            value = high << 16 | low
        self.put(i.operands[0], value)

    # Floating-point numbers, as far as integer divisions use them.
    def do_I2F(self, i):
        a = self.word(i.operands[1])
        if a is None:
            return self.put(i.operands[0], None)
        number = a if "U32" in i.op else signed(a)
        bits = as_bits(float(number))
        if "RP" in i.op and as_float(bits) < number:
            bits += 1
        return self.put(i.operands[0], bits)

    do_I2FP = do_I2F

    def do_F2I(self, i):
        a = self.word(i.operands[1])
        self.put(i.operands[0], None if a is None else max(0, min(int(as_float(a)), MASK)))

    def do_MUFU(self, i):
        a = self.word(i.operands[1])
        number = None if a is None else as_float(a)
        self.put(i.operands[0], as_bits(1 / number) if i.op[1] == "RCP" and number not in (None, 0) else None)


def constants_of(arch, block, grid, params):
    """Returns the words of constant bank 0. `params`: (bytes, value) of each parameter, in order."""
    major = int(arch[3:]) // 10
    out = {}
    for base, extents in zip(EXTENTS[major], (block, grid)):
        for k, extent in enumerate((*extents, 1, 1)[:3]):
            out[base + 4 * k] = extent
    at = PARAMS[major]
    for size, value in params:
        at = -(-at // size) * size
        for k in range(max(size // 4, 1)):
            out[at // 4 * 4 + 4 * k] = value >> 32 * k & MASK
        at += size
    return out


def walk_block(text, arch, block, grid, params, at=(0, 0)):
    """Returns the instructions that the warps of one block issue, each counted by its first thread, and the calls and unknown branches of all."""
    code = parse(text)
    constants = constants_of(arch, block, grid, params)
    total = Walk()
    for first in range(0, block[0], 32):
        special = {
            "SR_TID.X": first,
            "SR_TID.Y": 0,
            "SR_TID.Z": 0,
            "SR_CTAID.X": at[0],
            "SR_CTAID.Y": at[1],
            "SR_CTAID.Z": 0,
            "SR_LANEID": 0,
            "SR_CgaCtaId": 0,
        }
        walk = Thread(code, arch, constants, special).run()
        total.issued += walk.issued
        total.calls += walk.calls
        total.lost = total.lost or walk.lost
        total.unknown |= walk.unknown
        for name, times in walk.by_op.items():
            total.by_op[name] = total.by_op.get(name, 0) + times
        if total.lost:
            break
    return total
