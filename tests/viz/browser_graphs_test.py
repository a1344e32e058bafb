#!/usr/bin/python3
"""Pages of many kinds of graphs in a real browser: folded, nested, long and wide ones, real models, hostile names, journals."""
import json
import subprocess
import sys
import unittest
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from a_page import TINY, Page  # noqa: E402
from browser import BIN, SHARED, run  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402

LLAMA = SHARED / "fx" / "vllm-0.33/model/llama/full/before.txt"
QWEN = SHARED / "fx" / "qwen2-1.5b.tp2.rank0.layer1.fx.txt"


def run_any(program, *arguments):
    """The program's standard output, whatever its exit code."""
    return subprocess.run([str(BIN / program), *map(str, arguments)], capture_output=True, text=True, check=False).stdout


class Folded(Page):
    @classmethod
    def prepare(cls):
        model = Path(cls.folder.name, "model.json")
        run("pwr", "generate", "llama", "--layers", "40", "-o", model)
        numbers = Path(cls.folder.name, "ms.json")
        numbers.write_text(json.dumps({f"l{i}_attn_qkv": float(i) for i in range(40)}), encoding="utf-8")
        cls.arguments = [model, "-q", "--overlay", numbers]

    def test_equal_pieces_are_drawn_once_and_unfold(self):
        self.assertRegex(self.text("#caption"), r"showing \d+ of 722 nodes; equal pieces drawn once")
        self.assertLess(self.ask("shown()"), 60)
        self.shot("folded")
        self.keys("a")
        self.assertEqual(len([i for i in self.ask("items()") if i["kind"] == "group"]), 81)
        self.assertIn("81 closed boxes", self.text("#caption"))
        self.keys("e")
        self.assertEqual(self.ask("shown()"), 722)
        self.assertIn("showing 722 of 722 nodes", self.text("#caption"))
        self.assertEqual(len(self.ask("places()")), 722)

    def test_a_node_of_any_copy_is_reached(self):
        node = self.ask("find('l31_attn_qkv')")
        self.driver.execute_script("stage.pick({ node: arguments[0] }, true)", node)
        self.assertTrue(self.on_screen(node))
        self.assertIn("l31_attn_qkv", self.text("#detail"))

    def test_another_copy_is_shown(self):
        self.driver.execute_script("stage.pick({ group: data.groups.findIndex(g => g.siblings.length > 30) }, true)")
        choice = self.driver.find_element(By.CSS_SELECTOR, "#detail select")
        options = choice.find_elements(By.TAG_NAME, "option")
        self.assertGreater(len(options), 30)
        name = options[7].text
        options[7].click()
        self.assertEqual(name, self.driver.execute_script("return data.groups[app.state.picked.group].name"))

    def test_long_lists_say_how_much_they_show(self):
        self.tab("table")
        self.assertEqual(len(self.driver.find_elements(By.CSS_SELECTOR, "#table tbody tr")), 300)
        self.assertIn("showing 300 of 722", self.text("#table"))
        self.driver.find_element(By.XPATH, "//section[@id='table']//button[text()='show 300 more']").click()
        self.assertIn("showing 600 of 722", self.text("#table"))

    def test_far_edges_are_counted_among_what_is_drawn(self):
        """Every layer reads the positions: a far edge shows only its end until it is selected."""
        self.keys("a")
        far = self.driver.execute_script("return stage.places().edges.filter(e => e.far && !e.whole).length")
        self.assertEqual(far, 0)
        self.assertIn("from far above, or another column; drawn whole when chosen", self.text(".legend"))

    def test_a_long_chain_stands_in_columns(self):
        """All copies of 40 layers, closed: as wide as a screen, with the order of the chain from the top of each column to its bottom."""
        self.keys("a")
        width, height = self.driver.execute_script("return [stage.places().width, stage.places().height]")
        self.assertLess(height, 4 * width)
        places = [(i["x"], i["y"]) for i in self.ask("items()") if i["kind"] == "group"]
        turns = [b for a, b in zip(places, places[1:]) if b[1] <= a[1]]
        self.assertGreater(len(turns), 0)
        self.assertEqual(len({round(y) for _, y in turns}), 1)  # each begins at the top
        self.assertEqual(turns, sorted(turns))
        self.shot("columns")

    def test_a_long_schedule_is_shown_around_its_peak(self):
        self.tab("memory")
        self.assertRegex(self.text("#memory"), r"showing nodes 1–400 of 722")
        self.driver.find_element(By.XPATH, "//section[@id='memory']//button[text()='all']").click()
        self.assertIn("showing nodes 1–722 of 722", self.text("#memory"))

    def test_overlay(self):
        self.assertIn("ms: 0", self.text(".legend"))
        self.assertIn("40 nodes have a number, 40 were given", self.text(".legend"))
        self.assertEqual(self.driver.execute_script("const f = searchAll('overlay>=35'); return f.reduce((a, b) => a + b, 0)"), 5)
        node = self.ask("find('l3_attn_qkv')")
        self.driver.execute_script("stage.pick({ node: arguments[0] }, true)", node)
        self.shot("overlay")


class Nested(Page):
    """Two stages of six blocks of eight experts, as module paths say, and then a chain of 600 nodes in one piece."""

    @classmethod
    def prepare(cls):
        lines, x = [], "x0"

        def put(text, path):
            lines.append(f"  v{len(lines)} = {text}" + (f' @ "{path}"' if path else ""))
            return f"v{len(lines) - 1}"

        for stage in range(2):
            for block in range(6):
                path = f"stages.{stage}.blocks.{block}"
                x = put(f"silu({x})", path)
                parts = []
                for expert in range(8):
                    inner = f"{path}.moe.experts.{expert}"
                    parts.append(put(f"exp({put(f'sigmoid({x})', inner)})", inner))
                for part in parts:
                    x = put(f"add({x}, {part})", f"{path}.moe")
        for i in range(600):
            x = put(f"{('exp', 'relu')[i % 2]}({x})", "")
        model = Path(cls.folder.name, "model.pwg")
        model.write_text(
            "\n".join(["graph nested {", "  symbol n in 1..64 tokens", "  in x0: bf16[n, 64]", *lines, f"  out {x}", "}", ""]), encoding="utf-8"
        )
        cls.arguments = [model, "-q", "--collapse", "layers", "--most-boxes", "2000"]

    def titles(self):
        return self.driver.execute_script(
            "const out = []; stage.places().each(i => { if (i.kind === 'group') out.push(groupTitle(i.index)); }); return out;"
        )

    def test_groups_in_groups(self):
        """Equal ones are drawn once at every level; each opens and closes separately, and unfolding draws all copies."""
        self.keys("g")
        experts = "×8 experts.0 … experts.7"
        self.assertEqual(self.titles(), ["×2 stages.0 … stages.1", "×6 blocks.0 … blocks.5", "moe", experts])
        self.shot("nested")
        shown = self.ask("shown()")
        self.driver.execute_script("stage.toggle(data.groups.findIndex(g => groupTitle(data.groups.indexOf(g)) === arguments[0]))", experts)
        self.assertEqual(self.ask("shown()"), shown - 2)
        self.keys("o")
        self.assertEqual(self.titles(), ["×2 stages.0 … stages.1"])
        self.keys("a", "e")
        self.assertEqual(self.ask("shown()"), self.ask("nodes()"))
        self.assertEqual(len(self.titles()), 2 * (1 + 6 * (1 + 1 + 8)))

    def test_a_node_of_any_depth_is_reached(self):
        self.keys("o")
        node = self.driver.execute_script("return data.groups.find(g => g.name === 'stages.1.blocks.4.moe.experts.5').nodes[1]")
        self.driver.execute_script("stage.pick({ node: arguments[0] }, true)", node)
        self.assertTrue(self.on_screen(node))
        self.assertEqual(self.driver.execute_script("return stage.places().rectOf(arguments[0]).index", node), node)
        for name in ("stages.1", "blocks.4", "moe", "experts.5"):
            self.assertIn(name, self.text("#detail"))

    def test_a_link_holds_groups_in_groups(self):
        self.keys("g")
        self.driver.execute_script("stage.pick({ group: data.groups.findIndex(g => g.name === 'stages.0.blocks.0.moe') }, true)")
        self.driver.execute_script("stage.toggle(app.state.picked.group)")
        titles, link = self.titles(), self.driver.execute_script("return share.text()")
        self.driver.get("about:blank")
        self.driver.get(self.path.as_uri() + link)
        self.assertEqual(self.titles(), titles)
        self.assertEqual(self.driver.execute_script("return data.groups[app.state.picked.group].name"), "stages.0.blocks.0.moe")

    def test_a_chain_of_hundreds_stands_in_columns(self):
        self.keys("g")
        width, height = self.driver.execute_script("return [stage.places().width, stage.places().height]")
        self.assertLess(height, 4 * width)
        self.driver.execute_script("stage.fit()")
        self.shot("chain")


class Long(Page):
    """One piece of 2 000 nodes."""

    @classmethod
    def prepare(cls):
        lines = [f"  v{i} = {('exp', 'relu')[i % 2]}({f'v{i - 1}' if i else 'x'})" for i in range(2000)]
        model = Path(cls.folder.name, "model.pwg")
        model.write_text(
            "\n".join(["graph long {", "  symbol n in 1..64 tokens", "  in x: bf16[n, 64]", *lines, "  out v1999", "}", ""]), encoding="utf-8"
        )
        cls.arguments = [model, "-q", "-r", "llm", "-p", "o2", "--most-boxes", "5000"]

    def test_the_inside_of_a_group_stands_in_columns(self):
        self.keys("g")
        level = "stage.places().items.find(i => i.inner).inner"
        width, height, columns = self.driver.execute_script(f"const l = {level}; return [l.width, l.height, new Set(l.rows.map(r => r.column)).size]")
        self.assertGreater(columns, 3)
        self.assertLess(height, 2 * width)
        # Every node is below the one that it reads, or at the top of a later column.
        turns = self.driver.execute_script(
            f"const l = {level}, nodes = l.items.filter(i => i.kind === 'node'); return nodes.filter((b, i) => i && b.y <= nodes[i - 1].y + nodes[i - 1].h).map(b => [b.x, b.y, b.h]);"
        )
        self.assertEqual(len(turns), columns - 1)
        self.assertEqual(turns, sorted(turns))
        self.driver.execute_script("stage.fit()")
        self.assertGreater(self.drawn(), 10)
        self.shot("long")


class FanOut(Page):
    """One value that 400 ops read, each of which is an output."""

    @classmethod
    def prepare(cls):
        lines = ["  s = exp(x)", *(f"  r{i} = relu(s)" for i in range(400))]
        outputs = ", ".join(f"r{i}" for i in range(400))
        model = Path(cls.folder.name, "model.pwg")
        model.write_text("\n".join(["graph fan {", "  symbol n in 1..64 tokens", "  in x: bf16[n, 64]", *lines, "  out " + outputs, "}", ""]))
        cls.arguments = [model, "-q"]

    def test_it_is_a_block(self):
        width, height = self.driver.execute_script("return [stage.places().width, stage.places().height]")
        beside = self.driver.execute_script("return drawing().boxes.filter(b => b.kind === 'node').reduce((sum, b) => sum + b.w, 0)")
        self.assertLess(width, beside / 3)
        self.assertLess(height, width)
        ranks = self.driver.execute_script(
            "const l = stage.places().items.find(i => i.inner).inner; return new Set(l.items.filter(i => i.kind === 'node').map(i => i.rank)).size;"
        )
        self.assertGreater(ranks, 10)

    def test_it_opens_where_something_can_be_read(self):
        shown = self.driver.execute_script("return drawing().boxes.filter(b => b.kind === 'node').map(b => b.index)")
        self.assertGreater(len([n for n in shown if self.on_screen(n)]), 8)
        self.shot("fan-out")


class Far(Page):
    """6 000 nodes in open groups, of which a pass changes some: all of it at once."""

    @classmethod
    def prepare(cls):
        lines = [f"  v{i} = {('exp', 'relu')[i % 2]}({f'v{i - 1}' if i else 'x'})" for i in range(5600)]
        lines += [f"  v{i} = silu(v{i - 1})" for i in range(5600, 6000)]
        model, rules = Path(cls.folder.name, "model.pwg"), Path(cls.folder.name, "one.pwr")
        model.write_text("\n".join(["graph far {", "  symbol n in 1..64 tokens", "  in x: bf16[n, 64]", *lines, "  out v5999", "}", ""]))
        rules.write_text("rule one { y = silu(x) => y = mul(x, sigmoid(x)) }\npipeline p { once { one } }\n")
        cls.arguments = [model, "-q", "-r", rules, "-p", "p", "--most-boxes", "20000"]

    def painted(self):
        """Counts the pixels of each colour after fitting the picture."""
        return self.driver.execute_script(
            "stage.openAll(); stage.fit(); stage.drawNow(); const c = stage.picture.canvas, d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, seen = {};"
            "for (let i = 0; i < d.length; i += 4) { const k = '#' + [d[i], d[i + 1], d[i + 2]].map(v => v.toString(16).padStart(2, '0')).join(''); seen[k] = (seen[k] || 0) + 1; }"
            "return seen;"
        )

    def test_nodes_and_marks_are_seen_from_far_away(self):
        seen = self.painted()
        self.assertLess(self.ask("camera()")["k"], 0.05)
        colors = self.driver.execute_script("return {soft: ink.soft, added: ink.added}")
        self.assertGreater(seen.get(colors["soft"], 0), 2 * seen.get(colors["added"], 0))
        self.assertGreater(seen.get(colors["added"], 0), 500)
        self.shot("far")
        self.keys("[", "[", "[")  # the input: nothing is new
        self.assertEqual(self.ask("version()"), 0)
        self.assertEqual(self.painted().get(colors["added"], 0), 0)


class OneInAThousand(Page):
    """A pass that changes one node of 1 171."""

    @classmethod
    def prepare(cls):
        model, rules = Path(cls.folder.name, "model.json"), Path(cls.folder.name, "one.pwr")
        run("pwr", "generate", "llama", "--layers", "65", "-o", model)
        rules.write_text(
            "rule one {\n  y = embedding(w, i)\n  =>\n  y = look_up(i, w)\n}\n"
            "op look_up(i: i64[n], w: T[v, d]) -> y: T[n, d]\npipeline p { once { one } }\n",
            encoding="utf-8",
        )
        cls.arguments = [model, "-q", "-r", rules, "-p", "p", "--collapse", "none", "--most-boxes", "5000"]

    def test_no_other_node_moves(self):
        self.keys("e")
        after = self.ask("places()")
        changed = self.driver.execute_script("return Object.keys(piecewise.places()).filter(n => stateOf(+n) !== 'plain').length")
        self.assertEqual(changed, 2)  # one is gone, one is new
        self.keys("[")
        self.assertEqual(self.ask("version()"), 0)
        self.assertEqual(self.ask("places()"), after)
        self.assertGreater(len(after), 1100)


@unittest.skipUnless(QWEN.exists(), f"SKIPPED: no dump at {QWEN}")
class AllReduce(Page):
    arguments = [QWEN, "--symbol", "n=arg0_1.0,arg6_1.0", "-r", "rules/llm.pwr", "-p", "o2", "-D", "tp=2", "-q"]

    def test_the_three_matches_of_the_all_reduce_rule(self):
        found = self.driver.execute_script(
            "return data.rewrites.map((r, i) => [i, r]).filter(([i, r]) => r.rule >= 0 && data.steps[r.version].pass === 'allreduce').map(([i, r]) => [i, data.ruleName(r), r.matched])"
        )
        self.assertEqual(len(found), 3)
        self.tab("rewrites")
        self.assertIn("pass allreduce · 3 matches", self.text("#rewrite-list"))
        for number, (index, rule, matched) in enumerate(found):
            self.driver.execute_script("showRewrite(arguments[0])", index)
            self.assertEqual(self.driver.execute_script("return data.steps[app.state.now].pass"), "allreduce")
            for node in matched:
                self.assertIn(str(node), self.ask("places()"))
            self.assertTrue(self.on_screen(self.ask("picked()")["node"]))
            self.shot(f"all-reduce-{number}")


@unittest.skipUnless(LLAMA.exists(), f"SKIPPED: no dump at {LLAMA}")
class Questions(Page):
    """Questions about a page, each answered by a sentence on the opened page or one click away."""

    arguments = [LLAMA, "--symbol", "n=arg1_1.0,arg7_1.0", "-r", "llm", "-p", "o2", "-q"]

    def first_view(self):
        self.assertEqual(self.driver.execute_script("return tabs.current()"), "graph")
        return self.text("#summary")

    def test_which_pass_changed_most(self):
        steps = self.driver.execute_script("return data.steps")
        most = max(steps[1:], key=lambda s: s["added"] + s["removed"] + s["changed"])
        self.assertIn(
            f"Pass {most['pass']} changed most: {most['added']} nodes added, {most['removed']} removed, {most['changed']} changed.", self.first_view()
        )

    def test_which_rule_fired_where(self):
        trace = Path(self.folder.name, "trace")
        run("pwr", "opt", *self.arguments, "-o", Path(self.folder.name, "o.json"), "--trace", trace)
        fired = Counter()
        for line in (trace / "journal.jsonl").read_text(encoding="utf-8").splitlines():
            event = json.loads(line)
            if event.get("rule"):
                fired[event["rule"]] += 1
        self.assertTrue(fired)
        words = self.first_view()
        for name, count in fired.items():
            self.assertRegex(words, rf"{name} ×{count} in \S+ (first )?at \S+")
        self.driver.find_element(By.XPATH, "//div[@id='summary']//p[contains(., 'fired')]//button[text()='more']").click()
        for name in fired:
            self.assertIn(name, self.text("#rewrite-list"))

    def test_why_a_norm_was_not_fused(self):
        norm = self.ask("find('rms_norm')")
        self.driver.execute_script("stage.show({ node: arguments[0] })", norm)
        self.next_frame()
        self.click_node(norm)  # one click
        words = self.text("#why-not")
        self.assertRegex(words, r"rms_quant\S* matched 1 of \d nodes?, then stopped at \S+: .+\(N\d\d\)\.")
        messages = run_any("pwr", "explain", "rms_quant", *self.arguments[:3], "-r", "llm", "-q")  # without a match it ends with 1
        self.assertIn("y has no user that is `static_scaled_fp8_quant`", messages)
        self.assertIn("y has no user that is `static_scaled_fp8_quant`", words)
        self.shot("why-not")

    def test_how_many_pieces_are_captured(self):
        plan = json.loads(run("pwr", "plan", *self.arguments))
        captured = sum(step["captured"] for step in plan["steps"])
        self.assertIn(f"{captured} pieces of {len(plan['steps'])} are captured", self.first_view())

    def test_what_300_tokens_pad_to(self):
        self.assertIn("300 tokens pad to 304 rows: 4 of them padding (1.3 %)", self.first_view())

    def test_where_memory_peaks(self):
        plan = json.loads(run("pwr", "plan", *self.arguments))
        peak = plan["memory"]["live_bytes"] / 2**20
        self.assertRegex(self.first_view(), rf"The peak is {peak:.1f} MiB live at once, in piece_\d+ when \S+ is computed \(node \d+ of \d+\)")


class Hostile(Page):
    """Names that would be markup or script, were they not text."""

    value = "y<svg/onload=window.hit=3>"
    title = "</script><script>window.hit=1</script>"

    @classmethod
    def prepare(cls):
        model, numbers = Path(cls.folder.name, "model.json"), Path(cls.folder.name, "<img src=x onerror=window.hit=5>.json")
        x, w = "<img src=x onerror=window.hit=2>", "\"'><b>w"
        model.write_text(
            json.dumps(
                {
                    "format": "piecewise.graph/1",
                    "name": cls.title,
                    "symbols": {"n": {"min": 1, "max": 64, "role": "tokens"}},
                    "inputs": [{"name": x, "type": "bf16[n, 8]", "kind": "input"}, {"name": w, "type": "bf16[8, 8]", "kind": "weight"}],
                    "nodes": [
                        {
                            "name": cls.value,
                            "op": "mm",
                            "operands": [x, w],
                            "results": [{"name": cls.value, "type": "bf16[n, 8]"}],
                            "group": "<i>layers.0</i>",
                            "source": "</textarea>${window.hit=4}",
                        }
                    ],
                    "outputs": [cls.value],
                }
            ),
            encoding="utf-8",
        )
        numbers.write_text(json.dumps({cls.value: 1}), encoding="utf-8")
        cls.arguments = [model, "-q", "--overlay", numbers]

    def test_names_stay_text(self):
        self.assertEqual(self.text("h1"), self.title)
        self.driver.execute_script("stage.pick({ node: 0 }, true)")
        self.assertIn(self.value, self.text("#detail"))
        for name in ("pieces", "sizes", "memory", "table", "graph"):
            self.tab(name)
            self.driver.execute_script("stage.drawNow()")
        self.assertIsNone(self.driver.execute_script("return window.hit === undefined ? null : window.hit"))
        self.assertEqual(self.driver.find_elements(By.CSS_SELECTOR, "img, b b, i, textarea, section svg:not(.chart)"), [])


class Traced(Page):
    @classmethod
    def prepare(cls):
        trace = Path(cls.folder.name, "trace")
        run("pwr", "opt", *TINY, "-r", "llm", "-p", "o2", "-o", Path(cls.folder.name, "o.json"), "--trace", trace)
        cls.arguments = [trace / "journal.jsonl", "-r", "llm", "-q", "--view", "rewrites"]

    def test_a_journal_is_read_with_its_rules(self):
        self.assertEqual(self.driver.execute_script("return tabs.current()"), "rewrites")
        self.assertIn("pass norm_quant · 4 matches", self.text("#rewrite-list"))
        self.assertIn("norm_quant.pwr:6", self.text("#rewrite-list"))
        self.assertEqual(self.driver.execute_script("return data.steps[1].pass"), "clean")


if __name__ == "__main__":
    unittest.main()
