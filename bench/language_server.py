#!/usr/bin/python3
"""Times answers of `pwr lsp` on a file of the library and on one of 10 000 lines, against their limits.

language_server.py [PWR]     exit 1 if an answer exceeds its limit
"""
import os
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
os.environ.setdefault("PW_BIN", str(Path(sys.argv[1]).parent if len(sys.argv) > 1 else ROOT / "build/release/bin"))
sys.path.insert(0, str(ROOT / "tests/cli"))
from lsp_client import Client  # noqa: E402

ROUNDS = 15
MAY_BE_EMPTY = {"textDocument/inlayHint", "textDocument/codeAction", "textDocument/codeLens", "textDocument/formatting"}
RULE = """rule r{0} {{
  y = rms_norm(x: T[*b, d], w: T[d]){{eps}}
  q = static_scaled_fp8_quant(y, s: f32[1])
  where d % {1} == 0
  =>
  q = rms_norm_static_fp8_quant(x, w, s){{eps}}
}}

"""


def library():
    path = ROOT / "rules/norm_quant.pwr"
    return path, path.read_text(), "rms_norm(x"


def large():
    text = "".join(RULE.format(i, i + 2) for i in range(1250))
    assert text.count("\n") == 10000
    return ROOT / "build/large.pwr", text, "rms_norm(x"


def requests(uri, text, code):
    index = text.index(code)
    at = {"position": {"line": text.count("\n", 0, index), "character": index - text.rfind("\n", 0, index) - 1}}
    inside = {"position": {**at["position"], "character": at["position"]["character"] + len(code) - 1}}
    shown = {"range": {"start": {"line": 0, "character": 0}, "end": {"line": 60, "character": 0}}}
    for method, more in [
        ("hover", at),
        ("definition", at),
        ("references", at),
        ("documentHighlight", at),
        ("prepareRename", {"position": {**at["position"], "character": 2}}),
        ("rename", {"position": {**at["position"], "character": 2}, "newName": "other"}),
        ("completion", inside),
        ("signatureHelp", inside),
        ("documentSymbol", {}),
        ("semanticTokens/full", {}),
        ("semanticTokens/range", shown),
        ("inlayHint", shown),
        ("codeAction", {**shown, "context": {"diagnostics": []}}),
        ("codeLens", {}),
        ("formatting", {"options": {}}),
    ]:
        yield "textDocument/" + method, {"textDocument": {"uri": uri}, **more}


def measure(path, text, code):
    """Returns milliseconds of each method: the median, and the longest after the first round."""
    client = Client()
    client.initialize(rootUri=ROOT.as_uri())
    client.open(path.as_uri(), text)
    begun = time.perf_counter()
    client.notification("textDocument/publishDiagnostics")
    yield "diagnostics of a new text, during the answers", [time.perf_counter() - begun]
    query = list(requests(path.as_uri(), text, code))
    times = {method: [] for method, _ in query}
    for round_number in range(ROUNDS):
        # Each round first types a key at the end of the text, so that nothing of the previous round is reused.
        end = {"line": text.count("\n") + round_number, "character": 0}
        change = [{"range": {"start": end, "end": end}, "text": "\n"}]
        client.notify("textDocument/didChange", textDocument={"uri": path.as_uri(), "version": round_number + 2}, contentChanges=change)
        for method, params in query:
            begun = time.perf_counter()
            answer = client.answer(client.request(method, params))
            times[method].append(time.perf_counter() - begun)
            assert "result" in answer, answer
            assert answer["result"] or method in MAY_BE_EMPTY, method
    yield from times.items()
    client.close()


def main():
    late = []
    for name, (path, text, code), limit in [("library", library(), 50), ("10 000 lines", large(), 200)]:
        print(f"\n{name}: {text.count(chr(10))} lines, {len(text)} bytes; an answer within {limit} ms")
        print(f"{'method':48} median ms")
        for method, seconds in measure(path, text, code):
            median = 1000 * statistics.median(seconds)
            print(f"{method:48} {median:9.1f}")
            if median > limit and method.startswith("textDocument/"):
                late.append(f"{name}: {method} took {median:.1f} ms")
    print("\n".join(late) or "\nall within their limits")
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
