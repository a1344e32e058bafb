"""Sampling with the random numbers of Philox."""

import math

import torch

from .common import BF16, F16, F32, case, label, rows


def philox(counter, key, rounds=range(10)):
    """Philox4x32 of Salmon and others, 2011, in whole numbers; 10 rounds from the first, or others."""
    c, mask = list(counter), 2**32 - 1
    for r in rounds:
        k = [(key[0] + r * 0x9E3779B9) & mask, (key[1] + r * 0xBB67AE85) & mask]
        first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [second >> 32 ^ c[1] ^ k[0], second & mask, first >> 32 ^ c[3] ^ k[1], first & mask]
    return c


# Inputs and results of the authors' own test (kat_vectors of Random123).
PHILOX = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([2**32 - 1] * 4, [2**32 - 1] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0], [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]),
]


def exponentials(seeds, places, count):
    """From the upper 24 bits of two words, in f64. Near u = 1, the rounding of u to f32 is many steps of the result."""
    out = []
    for seed, at in zip(seeds.tolist(), places.tolist()):
        key = [seed & 2**32 - 1, seed >> 32 & 2**32 - 1]
        words = [philox([i, at & 2**32 - 1, at >> 32 & 2**32 - 1, 0], key) for i in range(count)]
        out.append([-math.log1p(-((w[0] >> 8) * 2.0**-24 + ((w[1] >> 8) + 0.5) * 2.0**-48)) for w in words])
    return torch.tensor(out, dtype=torch.float64)


def nearest_with(y, w, least):
    """The distance at which the sorted weights reach the requested sum."""
    order = y.argsort(-1)
    reached = w.gather(-1, order).cumsum(-1) >= least
    sums = y.gather(-1, order).masked_fill(~reached, float("inf"))
    return sums.amin(-1, keepdim=True)


def sampling():
    expected = [philox(counter, key) for counter, key, _ in PHILOX]
    assert expected == [words for _, _, words in PHILOX]
    inputs = [torch.tensor(column) for column in zip(*([*c, *k] for c, k, _ in PHILOX))]
    case("philox", "the authors' vectors", inputs, [(torch.tensor(column), {}) for column in zip(*expected)])
    one = [philox(counter, key, [3]) for counter, key, _ in PHILOX]
    case("philox_round", "the fourth round", inputs, [(torch.tensor(column), {}) for column in zip(*one)], {"round": 3})
    seeds, places = torch.tensor([0, 1, -1, 2**40 + 5]), torch.tensor([0, 7, 2**35, 7])
    e = exponentials(seeds, places, 50)
    case("exponential", "50 a row", [seeds, places], [(e.float(), {"ulps": 256})], {"count": 50})
    for dtype in (BF16, F16, F32):
        x = rows(dtype, 4, 50)
        x[1, 3:9], x[2] = x[1].amax(), 1.0
        case("argmax_in_rows", label(x), [x], [(x.argmax(-1), {})])
        case("argmax_in_rows", label(x, "columns"), [x], [(x.argmax(0, True), {})], {"dim": 0, "keepdim": True})
        case("largest_logit", label(x), [x], [(x.amax(-1, True).float(), {})])
        z = (x.double() - x.double().amax(-1, keepdim=True)) / 0.7
        case("sample_token", label(x), [x, seeds, places], [((z - e.log()).argmax(-1), {})], {"temperature": 0.7})
        lowest = torch.tensor(-float("inf"), dtype=dtype)
        for k in (1, 5, 50, 60):
            least = x.sort(-1, descending=True).values[:, min(k, 50) - 1 :][:, :1]
            case("top_k_logits", label(x, f"k {k}"), [x], [(torch.where(x >= least, x, lowest), {})], {"k": k})
        for p in (0.01, 0.5, 0.9):
            odds = z.softmax(-1)
            larger = (odds[:, None, :] * (x[:, None, :] > x[:, :, None])).sum(-1)
            case("top_p_logits", label(x, f"p {p}"), [x], [(torch.where(larger < p, x, lowest), {})], {"p": p, "temperature": 0.7})
    y, w = rows(F32, 5, 40).abs(), torch.randint(0, 9, (5, 40))
    y[1, ::3], y[2, :20] = 0.25, 0.0
    least = (w.sum(-1, keepdim=True) * torch.tensor([[0.0], [0.3], [0.5], [1.0], [1.1]])).long().clamp(min=1)
    case("mass_within", label(y), [y, w, least], [(nearest_with(y, w, least).clamp(min=2.0**-126), {})])
    t, c = torch.full((5, 1), 0.25), torch.tensor([[0.5], [0.5], [0.25], [9.0], [1.0]])
    few = (w * (y < c)).sum(-1, keepdim=True) < least
    case("mass_within_step", label(y), [y, w, least, t, c], [(torch.where(few, c, t), {})])
    r, bit = t, torch.full((5, 1), 0.125)
    for i in range(8):
        c = r + bit * 0.5**i
        r = torch.where((w * (y < c)).sum(-1, keepdim=True) < least, c, r)
    case("mass_within_bits", label(y), [y, w, least, t, bit], [(r, {})])
