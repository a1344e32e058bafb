#!/usr/bin/python3
"""Plants offences in a scratch tree and expects check_layers to find each of them, and nothing else."""
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from check_layers import LARGEST_FOLDER, check, crowded  # noqa: E402


def offences(files):
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return [message.split(": ")[0] for message in check(root)]


class Layers(unittest.TestCase):
    def test_upward_edge_is_caught(self):
        self.assertEqual(offences({"graph/a.cpp": '#include "base/id.hpp"\n#include "dsl/syntax/ast.hpp"\n'}), ["graph/a.cpp:2"])

    def test_viz_must_not_see_backends(self):
        self.assertEqual(offences({"viz/a.cpp": '#include "splitter/plan.hpp"\n#include "backends/b.hpp"\n'}), ["viz/a.cpp:2"])

    def test_labs_do_not_see_each_other(self):
        self.assertEqual(offences({"studies/a.cpp": '#include "pipeline/b.hpp"\n#include "failures/b.hpp"\n'}), ["studies/a.cpp:2"])
        self.assertEqual(offences({"cli/a.cpp": '#include "studies/b.hpp"\n#include "failures/b.hpp"\n'}), [])

    def test_crowded_folders_are_found(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "graph" / "text"
            folder.mkdir(parents=True)
            for i in range(LARGEST_FOLDER + 1):
                (folder / f"f{i}.cpp").write_text("")
            self.assertEqual([m.split(": ")[0] for m in crowded(Path(scratch))], ["graph/text:1"])

    def test_nothing_includes_the_command_line(self):
        self.assertEqual(offences({"verify/a.hpp": '#include "cli/opt.hpp"\n'}), ["verify/a.hpp:1"])

    def test_downward_edges_pass(self):
        self.assertEqual(offences({"verify/a.cpp": '#include "base/id.hpp"\n#include "cuda/k.hpp"\n#include <vector>\n'}), [])

    def test_libraries_stay_at_home(self):
        self.assertEqual(
            offences(
                {
                    "dsl/syntax/ast.hpp": "#include <boost/spirit/home/x3.hpp>\n",
                    "dsl/syntax/grammar_rules.cpp": "#include <boost/spirit/home/x3.hpp>\n",
                    "import/fx/text/grammar.cpp": "#include <boost/spirit/home/x3.hpp>\n",
                    "graph/graph.cpp": "#include <nlohmann/json.hpp>\n",
                    "graph/text/graph_json.cpp": "#include <nlohmann/json.hpp>\n",
                    "backends/k.hpp": "#include <Eigen/Core>\n",
                    "backends/eager/k.cpp": "#include <Eigen/Core>\n",
                    "cli/a.cpp": "#include <graphviz/gvc.h>\n",
                    "viz/layout.cpp": "#include <graphviz/gvc.h>\n",
                    "serve/http_module.cpp": "#include <httplib.h>\n",
                    "serve/site.cpp": "#include <httplib.h>\n",
                    "rewriter/extract/cbc.cpp": "#include <coin/Cbc_C_Interface.h>\n",
                    "rewriter/extract/solve.cpp": "#include <coin/Cbc_C_Interface.h>\n",
                    "studies/study_store.cpp": "#include <sqlite3.h>\n",
                    "studies/study.cpp": "#include <sqlite3.h>\n",
                    "cuda/device/driver.cpp": "#include <cuda.h>\n",
                    "backends/cpu/driver.cpp": "#include <cuda.h>\n",
                }
            ),
            [
                "backends/cpu/driver.cpp:1",
                "backends/k.hpp:1",
                "cli/a.cpp:1",
                "dsl/syntax/ast.hpp:1",
                "graph/graph.cpp:1",
                "rewriter/extract/solve.cpp:1",
                "serve/site.cpp:1",
                "studies/study.cpp:1",
            ],
        )

    def test_headers_say_more_than_names(self):
        self.assertEqual(offences({"base/a.cpp": "// Exports a.\n", "base/b.cpp": "// Pairs halves, as b(x) = a(x) + 1 does.\n"}), ["base/a.cpp:1"])

    def test_includes_are_written_from_the_root(self):
        self.assertEqual(offences({"base/a.cpp": '#include "a.hpp"\n'}), ["base/a.cpp:1"])


if __name__ == "__main__":
    unittest.main()
