#!/usr/bin/python3
"""The page of a captured CUDA graph of 20,000 nodes: its size, its layout, and its tabs in a real browser."""
import json
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from browser import BIN, chromium, errors, require_chromium, run  # noqa: E402

NODES, MOST_BYTES = 20_000, 3_000_000
KERNELS = [f"void at::native::elementwise_kernel<{i}, at::native::F{i}<float> >(int, float*)" for i in range(6)] + ["gemm", "void attention<128>(P)"]


def captured(count):
    """Layers of 12 nodes in a chain with a second branch, with copies and fills among them."""
    nodes, edges = [], []
    for i in range(count):
        place = i % 12
        if place == 5:
            nodes.append({"kind": "memcpy", "bytes": 4096 * (1 + i % 3)})
        elif place == 7:
            nodes.append({"kind": "memset", "bytes": 512})
        else:
            nodes.append({"kind": "kernel", "name": KERNELS[place % len(KERNELS)], "grid": [1 + i % 7, 1, 1], "block": [128, 1, 1]})
        if i:
            edges.append([max(0, i - (2 if place == 9 else 1)), i])
        if place == 10 and i > 2:
            edges.append([i - 2, i])
    return {"format": "piecewise.captured/1", "name": "graph_0001", "nodes": nodes, "edges": edges}


class Large(unittest.TestCase):
    def test_page(self):
        sys.path.insert(0, str(BIN.parent / "python"))
        import _piecewise

        with tempfile.TemporaryDirectory() as folder:
            file, page = Path(folder, "graph_0001.json"), Path(folder, "graph_0001.html")
            file.write_text(json.dumps(captured(NODES)), encoding="utf-8")
            began = time.process_time()
            _piecewise.draw_captured_graph(str(file), str(page))
            drawn = time.process_time() - began
            self.assertLess(page.stat().st_size, MOST_BYTES)
            driver = chromium()
            self.addCleanup(driver.quit)
            driver.get(page.as_uri())
            self.assertEqual(errors(driver), [])
            loaded = driver.execute_script("const [n] = performance.getEntriesByType('navigation'); return n.loadEventEnd - n.responseEnd")
            caption = driver.find_element("css selector", "#caption").text
            self.assertIn(f"of {NODES} nodes", "".join(caption.split()).replace("nodes", " nodes").replace("of", "of "))
            self.assertIn("kernel", driver.find_element("css selector", ".verdict").text)
            sections = driver.find_elements("css selector", "section.report")
            self.assertEqual([section.get_attribute("data-title") for section in sections], ["Launches", "Critical path", "Dependencies"])
            self.assertIn("elementwise_kernel", sections[0].get_attribute("textContent"))
            print(f"{NODES} nodes: {drawn:.2f} s, {page.stat().st_size} bytes, loaded in {loaded / 1000:.2f} s (goal: 2 s each)", file=sys.stderr)

    def test_commands_read_the_file(self):
        with tempfile.TemporaryDirectory() as folder:
            one, two = Path(folder, "one.json"), Path(folder, "two.json")
            graph = captured(60)
            one.write_text(json.dumps(graph), encoding="utf-8")
            graph["nodes"][20]["grid"] = [99, 1, 1]
            two.write_text(json.dumps(graph), encoding="utf-8")
            self.assertIn("cuda.memcpy", run("pwr", "stats", one))
            self.assertIn("graph_0001: 60 nodes", run("pwviz", "-q", one))
            done = subprocess.run([BIN / "pwr", "diff", one, two], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("grid", done.stdout)

    def test_bodies_are_groups_of_the_page(self):
        sys.path.insert(0, str(BIN.parent / "python"))
        import _piecewise

        graph = captured(24)
        for first, kind, body in ((0, "if", 0), (6, "if", 1), (12, "while", 0)):
            for node in graph["nodes"][first : first + 6]:
                node |= {"inside": 24 if kind == "if" else 25, "body": body}
        graph["nodes"] += [{"kind": "conditional", "condition": "if", "bodies": 2}, {"kind": "conditional", "condition": "while"}]
        graph["edges"] = [edge for edge in graph["edges"] if edge[0] // 6 == edge[1] // 6] + [[5, 24], [11, 24], [17, 25], [24, 25]]
        with tempfile.TemporaryDirectory() as folder:
            file, page = Path(folder, "graph_0001.json"), Path(folder, "graph_0001.html")
            file.write_text(json.dumps(graph), encoding="utf-8")
            _piecewise.draw_captured_graph(str(file), str(page))
            driver = chromium()
            self.addCleanup(driver.quit)
            driver.get(page.as_uri() + "#graph")
            self.assertEqual(errors(driver), [])
            boxes = driver.execute_script("return window.piecewise.drawing().boxes")
            groups = [i for i, box in enumerate(boxes) if box["kind"] == "group"]
            self.assertEqual(sorted(sum(box["inside"] == i for box in boxes) for i in groups), [6, 6, 6])
            drawn = driver.execute_script("return window.piecewise.svg()")
            for name in ("if.24", "else.24", "while.25"):
                self.assertIn(name, drawn)

    def test_commands_read_bodies(self):
        """A loop around two kernels is a group of the picture; which body holds a kernel is a difference."""
        kernel = {"kind": "kernel", "name": "gemm", "grid": [1, 1, 1], "block": [32, 1, 1], "inside": 2}
        loop = {"kind": "conditional", "condition": "while", "bodies": 1}
        graph = {"format": "piecewise.captured/1", "name": "g", "nodes": [kernel, kernel, loop], "edges": [[0, 1], [1, 2]]}
        with tempfile.TemporaryDirectory() as folder:
            one, two, picture = Path(folder, "one.json"), Path(folder, "two.json"), Path(folder, "one.svg")
            one.write_text(json.dumps(graph), encoding="utf-8")
            loop |= {"condition": "switch", "bodies": 2}
            two.write_text(json.dumps(graph), encoding="utf-8")
            self.assertIn("cuda.conditional", run("pwr", "stats", one))
            imported = run("pwr", "import", one)
            self.assertIn("while.2", imported)
            self.assertIn('"while"', imported)
            run("pwviz", "-q", one, "-o", picture)
            self.assertIn("while.2", picture.read_text(encoding="utf-8"))
            done = subprocess.run([BIN / "pwr", "diff", one, two], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("condition", done.stdout)


if __name__ == "__main__":
    require_chromium()
    unittest.main()
