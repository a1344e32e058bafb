"""ONNX's own tests of its operators, those up to opset 21 of tensors alone: each model imported, run by eager, compared with
the outputs that come with it, within the tolerances of the test. Run by run.py.

    onnx_nodes.py [NAME …] [--least PERCENT] [--newest OPSET] [--list]
"""
import argparse
import collections
import re
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

NEWEST = 21
STRING, COMPLEX = 8, (14, 15)
SUBGRAPH = (5, 10)  # of attributes: a graph, graphs
DTYPES = {"FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E5M2", "BOOL", "INT8", "UINT8", "INT32", "INT64"}
BITS = {"bfloat16": np.uint16, "float8_e4m3fn": np.uint8, "float8_e5m2": np.uint8}


def is_tried(case, newest):
    """Whether a test is one of tensors of numbers and booleans, without subgraphs and training."""
    model = case.model
    if model is None or any(o.version > newest for o in model.opset_import if o.domain in ("", "ai.onnx")):
        return False
    if any(o.domain == "ai.onnx.preview.training" for o in model.opset_import):
        return False
    for value in [*model.graph.input, *model.graph.output]:
        if value.type.WhichOneof("value") != "tensor_type" or value.type.tensor_type.elem_type in (STRING, *COMPLEX):
            return False
    return not any(a.type in SUBGRAPH for node in model.graph.node for a in node.attribute)


def with_constants(model, arrays):
    """The model with its inputs of few numbers (axes, shapes and scales, not data) as initialisers: how exporters
    write them. A first input of reals is data."""
    from onnx import numpy_helper

    changed = type(model)()
    changed.CopyFrom(model)
    for place, (value, array) in enumerate(zip(model.graph.input, arrays)):
        array = np.asarray(array)
        if array.dtype.kind != "O" and array.ndim < 2 and array.size <= 64 and (place > 0 or array.dtype.kind in "iu"):
            changed.graph.initializer.append(numpy_helper.from_array(array, value.name))
    return changed


def plain(value):
    """The array of what may be a TensorProto."""
    from onnx import TensorProto, numpy_helper

    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def given(array):
    array = np.ascontiguousarray(array) if np.ndim(array) else np.asarray(array)
    return array.view(BITS[array.dtype.name]) if array.dtype.name in BITS else array


def wide(array):
    return np.asarray(array).astype(np.float64) if np.asarray(array).dtype.kind not in "iub" else np.asarray(array)


def difference(wanted, got, rtol, atol):
    if len(wanted) != len(got):
        return f"{len(got)} outputs, not {len(wanted)}"
    for want, have in zip(wanted, got):
        want, have = np.asarray(want), np.asarray(have)
        if want.dtype.name in BITS:
            have = have.view(want.dtype)
        if want.dtype != have.dtype:
            return f"dtype {have.dtype}, not {want.dtype}"
        if want.shape != have.shape:
            return f"shape {have.shape}, not {want.shape}"
        if not np.allclose(wide(have), wide(want), rtol=rtol, atol=atol, equal_nan=True):
            return "other numbers"
    return ""


def opaque(graph):
    return sorted(op for op in graph.ops() if op.startswith("onnx.") or op.startswith("ai."))


def lacking(case):
    """The dtypes of a test that the library has not."""
    from onnx import TensorProto

    types = {v.type.tensor_type.elem_type for v in [*case.model.graph.input, *case.model.graph.output]}
    return sorted(name for number in types if (name := TensorProto.DataType.Name(number)) not in DTYPES)


def run(case, folder):
    """Nothing where all is well, else the reason."""
    import piecewise

    if lacks := lacking(case):
        return f"a dtype that the library has not: {', '.join(lacks)}"
    path = folder / "model.onnx"
    model = case.model
    for inputs, outputs in case.data_sets:
        inputs, outputs = [plain(x) for x in inputs], [plain(x) for x in outputs]
        for attempt in (model, with_constants(model, inputs)):
            path.write_bytes(attempt.SerializeToString())
            try:
                graph = piecewise.load(path)
            except piecewise.Error as error:
                said = str(error).splitlines()[0]
                continue
            said = f"no meaning here: {', '.join(opaque(graph))}" if opaque(graph) else ""
            if not said:
                break
        if said:
            return said
        names = {n for n, _, kind in graph.inputs if kind == "input"}
        arrays = {v.name: given(x) for v, x in zip(model.graph.input, inputs) if v.name in names}
        try:
            got = graph.run(arrays)
        except piecewise.Error as error:
            return str(error).splitlines()[0]
        if found := difference(outputs, got, case.rtol, case.atol):
            return found
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="tests whose names hold one of these")
    parser.add_argument("--least", type=float, default=90, help="percent that must pass")
    parser.add_argument("--newest", type=int, default=NEWEST, help="opset")
    parser.add_argument("--list", action="store_true", help="each test that does not pass")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    try:
        from onnx.backend.test.case.node import collect_testcases
    except ImportError as missing:
        print(f"SKIPPED: no onnx: {missing}", file=sys.stderr)
        return 0
    cases = [c for c in collect_testcases(None) if is_tried(c, arguments.newest)]
    if arguments.names:
        cases = [c for c in cases if any(n in c.name for n in arguments.names)]
    reasons = collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
        for case in cases:
            if reason := run(case, Path(folder)):
                reasons[re.sub(r"/\S*/model\.onnx|`[^`]*`", "…", reason)[:110]].append(case.name)
                if arguments.list:
                    print(f"{case.name}: {reason}", flush=True)
    passed = len(cases) - sum(map(len, reasons.values()))
    for reason, names in sorted(reasons.items(), key=lambda row: -len(row[1])):
        print(f"{len(names):4}  {reason}  ({', '.join(names[:2])}{', …' if len(names) > 2 else ''})")
    percent = 100 * passed / max(len(cases), 1)
    had = sum(not lacking(case) for case in cases)
    print(f"ONNX node tests up to opset {arguments.newest}: {passed} of {len(cases)} pass, {percent:.1f} %; of {had} whose dtypes the library has")
    return 0 if percent >= arguments.least or arguments.names else 1


if __name__ == "__main__":
    sys.exit(main())
