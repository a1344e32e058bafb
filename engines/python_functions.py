"""Runs the host functions of a Python file for the parent process: reads calls from standard input, and answers on it."""

import sys

# Imports from the working directory are disabled: only the named file may run.
sys.path[:] = [place for place in sys.path if place not in ("", ".")]

import importlib.util  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import traceback  # noqa: E402

try:
    import numpy
except ImportError as missing:
    numpy = None
    NO_NUMPY = str(missing)

# A frame consists of the length of a JSON text (8 bytes, lowest first), the text, and the bytes of the tensors that it describes.
NUMPY = {"b8": "bool", "i8": "int8", "i32": "int32", "i64": "int64", "u8": "uint8", "f16": "float16", "f32": "float32", "f64": "float64"}
BITS = {"bf16": "uint16", "f8e4m3": "uint8", "f8e5m2": "uint8"}
OTHERS = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}  # names in ml_dtypes


def open_channel():
    """Returns the connection; afterwards functions print to standard error and read empty input."""
    channel = os.fdopen(os.dup(0), "r+b", buffering=0)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    return channel


def take(channel, size):
    out = bytearray()
    while len(out) < size:
        part = channel.read(min(size - len(out), 1 << 24))
        if not part:
            sys.exit(0)
        out += part
    return out


def answer(channel, text, arrays=()):
    data = json.dumps(text).encode()
    for part in (len(data).to_bytes(8, "little") + data, *(memoryview(a.reshape(-1).view(numpy.uint8)) for a in arrays if a.size)):
        while part:
            part = part[channel.write(part) :]


class Wrong(Exception):
    """Raised if a function's result does not fit the op."""


def as_array(given, what):
    if not isinstance(given, numpy.ndarray) and hasattr(given, "__dlpack__") and not isinstance(given, numpy.generic):
        try:
            given = numpy.from_dlpack(given)
        except (TypeError, BufferError, RuntimeError, AttributeError) as reason:
            raise Wrong(f"{what} cannot be converted from {type(given).__name__}: {reason}") from None
    array = numpy.ascontiguousarray(given).reshape(numpy.shape(given))
    return array.view(OTHERS[array.dtype.name]) if array.dtype.name in OTHERS else array


def value_of(argument, operands):
    kind, value = argument["kind"], argument.get("value")
    if kind == "operand":
        return operands[value]
    if kind == "real":
        return float.fromhex(value)
    if kind == "reals":
        return [float.fromhex(v) for v in value]
    if kind in ("list", "tuple", "slice"):
        items = [value_of(item, operands) for item in value]
        return items if kind == "list" else tuple(items) if kind == "tuple" else slice(*items)
    if kind == "dict":
        return {item["keyword"]: value_of(item, operands) for item in value}
    return value


def results_of(returned, call):
    wanted = len(call["results"])
    if wanted == 0:
        return []
    if isinstance(returned, (tuple, list)):
        results = list(returned)
    else:
        results = [] if returned is None else [returned]
    if len(results) != wanted:
        number = "nothing" if returned is None else f"{len(results)} results"
        raise Wrong(f"it returned {number}, but the op has {wanted}")
    return [as_array(value, f"result {i}") for i, value in enumerate(results) if call["results"][i]]


def run(function, call, operands):
    positional = [value_of(a, operands) for a in call["arguments"] if not a["keyword"]]
    keywords = {a["keyword"]: value_of(a, operands) for a in call["arguments"] if a["keyword"]}
    returned = function(*positional, **keywords)
    return [as_array(operands[i], f"operand {i}") for i in call["writes"]] + results_of(returned, call)


def read_operands(channel, call):
    out = []
    for described in call["operands"]:
        if described is None:
            out.append(None)
        elif "same" in described:  # the same tensor twice is one array
            out.append(out[described["same"]])
        else:
            dtype = numpy.dtype(NUMPY.get(described["dtype"]) or BITS[described["dtype"]])
            count = dtype.itemsize
            for extent in described["shape"]:
                count *= extent
            out.append(numpy.frombuffer(take(channel, count), dtype).reshape(described["shape"]))
    return out


def failure(error, path):
    """Returns the last line of the traceback, and the last place in the file itself."""
    last = traceback.format_exception_only(type(error), error)[-1].strip()
    frames = [f for f in traceback.extract_tb(error.__traceback__) if os.path.abspath(f.filename) == path]
    return {"error": last, "place": f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""}


def load(path):
    if numpy is None:
        return None, {"error": f"the interpreter {sys.executable} has no numpy: {NO_NUMPY}", "place": ""}
    sys.path.append(os.path.dirname(path))
    try:
        spec = importlib.util.spec_from_file_location("host_functions", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # noqa: BLE001: any error of the file
        return None, failure(error, path)
    functions = getattr(module, "functions", None)
    if not isinstance(functions, dict) or not all(isinstance(k, str) and callable(f) for k, f in functions.items()):
        return None, {"error": "it lacks `functions`, a dict of callables by the names of ops", "place": ""}
    return functions, {"functions": sorted(functions)}


def main():
    channel = open_channel()
    path = os.path.abspath(sys.argv[1])
    functions, reply = load(path)
    answer(channel, reply)
    while functions is not None:
        call = json.loads(take(channel, int.from_bytes(take(channel, 8), "little")))
        operands = read_operands(channel, call)
        try:
            arrays = run(functions[call["function"]], call, operands)
        except Wrong as reason:
            answer(channel, {"error": str(reason), "place": ""})
        except (Exception, SystemExit) as error:  # noqa: BLE001: any error of the function
            answer(channel, failure(error, path))
        else:
            answer(channel, {"arrays": [{"dtype": a.dtype.name, "shape": list(a.shape)} for a in arrays]}, arrays)


main()
