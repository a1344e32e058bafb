"""Writes one JSON file an op of rules/ops with a body: inputs, attributes and the results PyTorch computes on a CPU.

    "$(python3 requirements/environments.py peer-torch env)" tests/vectors/make_vectors.py

Where PyTorch has the op, it computes the result, in f64 and rounded once unless the op's meaning has a rounding point in
its middle; else a tensor expression does that shares nothing with our bodies (rotary embedding by complex numbers).
README.md in this folder states the format. The seed is fixed: running it again changes nothing.
"""

import json
import pathlib

from reference import elementwise, norms, products, quantisation, sampling
from reference.common import files

HERE = pathlib.Path(__file__).parent


def main():
    for make in (
        elementwise.pointwise,
        elementwise.layout,
        norms.norms,
        quantisation.quantised_norms,
        quantisation.quantisations,
        quantisation.gated,
        norms.rope,
        quantisation.groups,
        norms.norm_and_rope,
        products.products_of_one_rank,
        elementwise.copies,
        quantisation.sums_in_f32,
        elementwise.powers_of_two,
        quantisation.more_quantisations,
        elementwise.error_function,
        elementwise.halves,
        products.parallel_embedding,
        products.block_products,
        elementwise.truths,
        elementwise.quotients,
        quantisation.four_bits,
        quantisation.before_four_bits,
        quantisation.eight_bits,
        norms.norms_with_gates,
        norms.three_positions,
        elementwise.padded_rows,
        elementwise.placing,
        products.followed_products,
        sampling.sampling,
    ):
        make()
    for op, cases in files.items():
        lines = ",\n".join("  " + json.dumps(c, separators=(",", ":")) for c in cases)
        (HERE / f"{op}.json").write_text(f'{{"op":"{op}","cases":[\n{lines}\n]}}\n')
    print(f"{len(files)} ops, {sum(map(len, files.values()))} cases")


if __name__ == "__main__":
    main()
