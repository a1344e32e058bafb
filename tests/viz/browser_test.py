#!/usr/bin/python3
"""Pages in a real browser: what is on the screen, stepping, searching, opening, comparing, and the keyboard alone."""
import json
import subprocess
import sys
import tempfile
import time
import unittest
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from browser import BIN, SHARED, SHOTS, chromium, errors, require_chromium, run  # noqa: E402

require_chromium()
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

TINY = ["examples/tiny-decoder.fx.txt", "--symbol", "n=arg0_1.0,arg1_1.0", "-q"]
LLAMA = SHARED / "fx" / "vllm-0.33/model/llama/full/before.txt"
QWEN = SHARED / "fx" / "qwen2-1.5b.tp2.rank0.layer1.fx.txt"


def run_any(program, *arguments):
    """The program's standard output, whatever its exit code."""
    return subprocess.run([str(BIN / program), *map(str, arguments)], capture_output=True, text=True, check=False).stdout


class Page(unittest.TestCase):
    arguments = []

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = Path(cls.folder.name, "page.html")
        cls.prepare()
        run("pwviz", *cls.arguments, "-o", cls.path)
        cls.driver = chromium()
        cls.addClassCleanup(cls.driver.quit)
        SHOTS.mkdir(parents=True, exist_ok=True)

    @classmethod
    def prepare(cls):
        """Writes what the page is made of, and sets the arguments."""

    def setUp(self):
        self.driver.get("about:blank")
        self.driver.get(self.path.as_uri())

    def tearDown(self):
        self.assertEqual(errors(self.driver), [])

    def ask(self, expression):
        return self.driver.execute_script(f"return piecewise.{expression}")

    def keys(self, *keys):
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def text(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector).text

    def tab(self, name):
        self.driver.find_element(By.ID, "tab-" + name).click()

    def shot(self, name):
        time.sleep(0.2)  # the next frame
        self.driver.save_screenshot(str(SHOTS / f"{name}.png"))

    def on_screen(self, node):
        x, y = self.ask(f"onScreen({node})")
        canvas = self.driver.find_element(By.CSS_SELECTOR, ".picture:not([hidden]) canvas").rect
        return canvas["x"] <= x <= canvas["x"] + canvas["width"] and canvas["y"] <= y <= canvas["y"] + canvas["height"]

    def click_node(self, node):
        from selenium.webdriver.common.action_chains import ActionChains

        x, y = self.ask(f"onScreen({node})")
        ActionChains(self.driver).move_by_offset(0, 0).w3c_actions.pointer_action.move_to_location(int(x), int(y))
        actions = ActionChains(self.driver)
        actions.w3c_actions.pointer_action.move_to_location(int(x), int(y))
        actions.w3c_actions.pointer_action.click()
        actions.perform()

    def drawn(self):
        """How many colours the picture has: a blank canvas has one."""
        return self.driver.execute_script(
            "stage.drawNow(); const c = stage.picture.canvas, d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, seen = new Set();"
            "for (let i = 0; i < d.length; i += 4) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return seen.size;"
        )


class Rewritten(Page):
    arguments = [*TINY, "-r", "rules/llm.pwr", "-p", "o2"]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        outline = run("pwviz", *cls.arguments, "--collapse", "none", "--pass", "9")
        cls.products = outline.count("= scaled_mm(")  # none of them comes or goes

    def test_opens_and_draws(self):
        self.assertEqual(self.driver.title, "tiny_decoder")
        self.assertRegex(self.text("#caption"), r"showing \d+ of \d+ nodes of input → ")
        self.assertGreater(self.drawn(), 20)
        self.shot("graph-light")

    def test_opens_on_all_that_the_passes_changed_and_reads(self):
        self.assertEqual([self.ask("base()"), self.ask("version()")], [0, self.driver.execute_script("return data.versions - 1")])
        self.assertGreaterEqual(self.ask("camera()")["k"] * 11, 10 - 1e-6)  # pixels of text
        self.assertGreater(len(self.changes_on_screen()), 0)

    def changes_on_screen(self):
        return [n for n in self.driver.execute_script("return data.differences(app.state.base, app.state.now)") if self.on_screen(n)]

    def test_every_pass_that_changed_something_shows_some_of_it(self):
        last = self.driver.execute_script("return data.versions - 1")
        stepped = 0
        for _ in range(last):
            self.keys("[")
            if self.driver.execute_script("return data.differences(app.state.base, app.state.now).length"):
                self.assertGreater(len(self.changes_on_screen()), 0)
                self.assertGreaterEqual(self.ask("camera()")["k"] * 11, 10 - 1e-6)
                stepped += 1
        self.assertGreater(stepped, 4)

    def test_j_and_k_go_through_all_changes(self):
        wanted = set(self.driver.execute_script("return data.differences(app.state.base, app.state.now)"))
        shown = {n for n in wanted if str(n) in self.ask("places()")}
        windows = self.driver.execute_script("return stage.windows().length")
        self.assertGreater(windows, 1)
        seen = set(self.changes_on_screen())  # it opens at the first
        for _ in range(windows - 1):
            self.keys("j")
            self.assertTrue(self.on_screen(self.ask("picked()")["node"]))
            seen |= set(self.changes_on_screen())
        self.assertEqual(seen, shown)
        said = lambda: self.driver.find_element(By.ID, "said").get_attribute("textContent")  # noqa: E731
        self.assertIn(f"change {windows} of {windows}", said())
        self.keys("j")
        self.assertIn(f"change 1 of {windows}", said())
        self.keys("k")
        self.assertIn(f"change {windows} of {windows}", said())

    def test_what_is_in_neither_version_is_hidden_until_asked_for(self):
        gone = "return drawing().boxes.filter(box => box.state === 'off').length"
        nodes = "return drawing().boxes.filter(box => box.kind === 'node').length"
        self.keys("[")
        self.assertEqual(self.driver.execute_script(gone), 0)
        before = self.driver.execute_script(nodes)
        self.keys("h")
        self.assertGreater(self.driver.execute_script(gone), 0)
        self.assertEqual(self.driver.execute_script(nodes), 75)
        self.keys("h")
        self.assertEqual(self.driver.execute_script(nodes), before)

    def test_stepping_moves_nothing(self):
        first = self.ask("places()")
        self.assertEqual(len(first), 75)
        self.keys("i")
        seen = {self.ask("version()")}
        for _ in range(12):
            self.keys("[")
            seen.add(self.ask("version()"))
            self.assertEqual(self.ask("places()"), first)
        self.assertEqual(self.ask("version()"), 0)
        self.assertGreater(len(seen), 5)
        self.keys("]")
        self.assertEqual(self.ask("version()"), 1)
        self.assertIn("now", self.driver.find_element(By.CSS_SELECTOR, "#passes tr[data-step='1']").get_attribute("class"))

    def test_unchanged_passes_are_hidden_until_asked_for(self):
        rows = len(self.driver.find_elements(By.CSS_SELECTOR, "#passes tbody tr"))
        button = self.driver.find_element(By.XPATH, "//button[starts-with(text(), 'show ') and contains(text(), ' unchanged')]")
        hidden = int(button.text.split()[1])
        self.assertGreater(hidden, 0)
        button.click()
        self.assertEqual(len(self.driver.find_elements(By.CSS_SELECTOR, "#passes tbody tr")), rows + hidden)

    def test_the_pass_that_changed_most_is_named(self):
        self.assertIn("Pass clean changed most: 0 nodes added, 16 removed, 0 changed.", self.text("#summary"))

    def test_the_bar_is_one_line(self):
        tops = {
            round(b.rect["y"] + b.rect["height"] / 2) for b in self.driver.find_elements(By.CSS_SELECTOR, "#bar > *") if b.is_displayed() and b.text
        }
        self.assertLess(max(tops) - min(tops), 8)

    def test_searching(self):
        self.keys("/")
        self.keys("op:scaled_mm")
        self.assertEqual(self.ask("hits()"), self.products)
        self.assertIn(f"{self.products} of 75 nodes", self.text("#bar .count"))
        self.keys(Keys.ENTER)
        picked = self.ask("picked()")["node"]
        self.assertTrue(self.on_screen(picked))
        self.assertIn("scaled_mm", self.text("#detail"))
        self.keys(Keys.ESCAPE)
        self.assertIsNone(self.ask("hits()"))

    def test_search_words(self):
        for query, test in {
            "rule:add_rms_quant_dyn": lambda n: n > 0,
            "users>3": lambda n: n >= 0,
            "dtype:bf16 op:split": lambda n: n > 0,
            "no such words": lambda n: n == 0,
            "state:plain": lambda n: n > 10,
            "piece:piece_0": lambda n: 10 < n < 75,
        }.items():
            count = self.driver.execute_script("const f = searchAll(arguments[0]); return f.reduce((a, b) => a + b, 0)", query)
            self.assertTrue(test(count), f"{query}: {count}")

    def test_a_click_tells_where_a_node_came_from(self):
        node = self.ask("find('getitem_15')")
        self.driver.execute_script("stage.show({ node: arguments[0] })", node)
        time.sleep(0.2)
        self.click_node(node)
        self.assertEqual(self.ask("picked()"), {"node": node})
        detail = self.text("#detail")
        self.assertIn("rule add_rms_quant", detail)
        self.assertIn("rules/norm_quant.pwr:13", detail)
        self.assertIn("in place of", detail)
        self.assertIn("rule add_rms_quant {", detail)  # the rule's text, beside
        self.shot("made-by")

    def test_one_rewrite(self):
        self.tab("rewrites")
        self.driver.find_element(By.XPATH, "//div[@id='rewrite-list']//button[text()='rms_quant']").click()
        words = self.text("#rewrite")
        self.assertIn("rms_quant in pass norm_quant", words)
        self.assertIn("rules/norm_quant.pwr:6", words)
        self.assertIn("rule rms_quant {", words)
        self.assertEqual(len(self.driver.find_elements(By.CSS_SELECTOR, "#rewrite table.before tbody tr")), 2)
        self.shot("rewrite")
        self.driver.find_element(By.XPATH, "//div[@id='rewrite']//button[text()='show in the graph']").click()
        self.assertEqual(self.driver.execute_script("return data.steps[app.state.now].pass"), "norm_quant")
        self.assertEqual(self.ask("version()") - self.ask("base()"), 1)
        self.assertTrue(self.on_screen(self.ask("picked()")["node"]))
        self.shot("rewrite-in-graph")

    def test_alike_rewrites_are_one_line(self):
        self.tab("rewrites")
        row = self.driver.find_element(By.XPATH, "//div[@id='rewrite-list']//tr[.//button[text()='noop.detach']]")
        self.assertEqual(row.find_elements(By.TAG_NAME, "td")[1].text, "5")

    def test_opening_and_closing(self):
        self.keys("o")
        self.assertEqual(self.ask("shown()"), 0)
        self.assertEqual(self.ask("open()"), 0)
        self.assertRegex(self.text("#caption"), r"showing 0 of \d+ nodes")
        self.shot("overview")
        closed = {i["index"]: i for i in self.ask("items()") if i["kind"] == "group"}
        self.driver.execute_script("stage.pick({ group: 0 }, true)")
        self.keys(Keys.ENTER)
        self.assertEqual(self.ask("open()"), 1)
        self.assertGreater(self.ask("shown()"), 15)
        for item in self.ask("items()"):  # order is kept: what was below is below
            if item["kind"] == "group" and item["index"] != 0:
                self.assertGreater(item["y"], closed[item["index"]]["y"])
        self.keys(Keys.ENTER)
        self.assertEqual({i["index"]: i for i in self.ask("items()") if i["kind"] == "group"}, closed)

    def test_boxes_do_not_overlap(self):
        self.keys("g")
        boxes = list(self.ask("places()").values())
        for i, (x, y, w, h) in enumerate(boxes):
            for x2, y2, w2, h2 in boxes[i + 1 :]:
                self.assertFalse(x < x2 + w2 - 1 and x2 < x + w - 1 and y < y2 + h2 - 1 and y2 < y + h - 1)

    def test_side_by_side(self):
        self.keys("s")
        shown = [p for p in self.driver.find_elements(By.CSS_SELECTOR, ".picture") if p.is_displayed()]
        self.assertEqual(len(shown), 2)
        self.assertEqual([p.find_element(By.CLASS_NAME, "note").text for p in shown], ["after input", "after clean"])
        marks = self.driver.execute_script(
            "return stage.pictures.map(p => [...Array(data.count).keys()].map(n => p.state(n)).filter(s => s !== 'plain' && s !== 'off'))"
        )
        self.assertIn("removed", marks[0])  # the left one has what is gone, the right one what is new
        self.assertNotIn("added", marks[0])
        self.assertIn("added", marks[1])
        self.assertNotIn("removed", marks[1])
        before = self.ask("camera()")
        self.driver.execute_script("stage.left.canvas.focus()")
        self.keys("+")
        self.assertGreater(self.ask("camera()")["k"], before["k"])  # one camera for both
        self.shot("side-by-side")
        self.keys("s")
        self.assertEqual(len([p for p in self.driver.find_elements(By.CSS_SELECTOR, ".picture") if p.is_displayed()]), 1)

    def test_keyboard_alone(self):
        self.keys("?")
        self.assertTrue(self.driver.find_element(By.ID, "help").is_displayed())
        self.assertIn("walk from box to box", self.text("#help"))
        self.shot("help")
        self.keys(Keys.ESCAPE)
        self.assertFalse(self.driver.find_element(By.ID, "help").is_displayed())
        self.keys(Keys.ARROW_DOWN)
        start = self.ask("picked()")
        self.assertIsNotNone(start)
        seen = []
        for _ in range(6):
            self.keys(Keys.ARROW_DOWN)
            seen.append(json.dumps(self.ask("picked()")))
        self.assertGreater(len(set(seen)), 3)
        self.keys(Keys.ESCAPE)
        self.assertIsNone(self.ask("picked()"))
        opened = []
        for _ in range(6):
            self.keys("t")
            opened.append(self.driver.execute_script("return tabs.current()"))
        self.assertEqual(opened, ["changes", "rewrites", "misses", "pieces", "sizes", "memory"])

    def test_every_control_has_a_name_and_is_reached_by_tab(self):
        for name in ("graph", "changes", "rewrites", "misses", "pieces", "sizes", "memory", "ops", "table"):
            self.tab(name)
            for control in self.driver.find_elements(By.CSS_SELECTOR, "button, input, select, canvas"):
                label = self.driver.execute_script(
                    "const e = arguments[0]; return e.textContent.trim() || e.getAttribute('aria-label') || e.title || (e.labels && e.labels[0] && e.labels[0].textContent)",
                    control,
                )
                self.assertTrue(label, control.get_attribute("outerHTML")[:120])

    def test_pieces(self):
        self.tab("pieces")
        self.assertIn("3 pieces of 5 are captured", self.text("#pieces .answer"))
        self.shot("pieces")

    def test_what_300_tokens_pad_to(self):
        self.tab("sizes")
        self.assertIn("300 tokens pad to 304 rows", self.text("#padded"))
        field = self.driver.find_element(By.ID, "tokens")
        field.clear()
        field.send_keys("17")
        self.assertIn("17 tokens pad to 24 rows", self.text("#padded"))
        self.shot("sizes")

    def test_where_the_peak_is(self):
        self.tab("memory")
        plan = json.loads(self.driver.execute_script("return JSON.stringify(data.plan)"))
        sentence = self.text("#memory .answer")
        self.assertRegex(sentence, r"The peak is [\d.]+ MiB alive at once, in piece_\d+ when \S+ is made")
        peak = float(sentence.split()[3])
        self.assertAlmostEqual(peak, plan["live"] / 2**20, delta=0.0051)  # what the plan says is what the page adds up
        self.shot("memory")

    def test_the_table_says_the_same(self):
        self.driver.execute_script("app.change({base: app.state.now})")
        self.tab("table")
        rows = self.driver.find_elements(By.CSS_SELECTOR, "#table tbody tr")
        self.assertEqual(len(rows), 39)
        self.driver.find_element(By.ID, "tab-graph").click()
        self.keys("/")
        self.keys("op:scaled_mm")
        self.tab("table")
        self.assertEqual(len(self.driver.find_elements(By.CSS_SELECTOR, "#table tbody tr")), self.products)
        self.shot("table")

    def column(self, number):
        return [td.text for td in self.driver.find_elements(By.CSS_SELECTOR, f"#table tbody td:nth-child({number})")]

    def test_the_table_sorts(self):
        self.tab("table")
        heads = lambda: self.driver.find_elements(By.CSS_SELECTOR, "#table th")  # noqa: E731
        given = self.column(3)
        heads()[2].find_element(By.TAG_NAME, "button").click()
        self.assertEqual(self.column(3), sorted(given))
        self.assertEqual(heads()[2].get_attribute("aria-sort"), "ascending")
        heads()[2].find_element(By.TAG_NAME, "button").click()
        self.assertEqual(self.column(3), sorted(given, reverse=True))
        heads()[6].find_element(By.TAG_NAME, "button").click()  # numbers, as numbers
        self.assertEqual(self.column(7), sorted(self.column(7), key=int))
        heads()[6].find_element(By.TAG_NAME, "button").click()
        heads()[6].find_element(By.TAG_NAME, "button").click()
        self.assertEqual(self.column(3), given)

    def test_the_changes_of_a_pass_are_a_text_diff(self):
        self.tab("changes")
        lines = self.text("#changes").splitlines()
        plus, minus = (sum(line.startswith(mark) for line in lines) for mark in ("+ ", "− "))
        self.assertGreater(plus, 0)
        self.assertGreater(minus, 0)
        self.assertIn(f"{plus} lines added, {minus} removed", self.text("#changes p"))
        self.assertTrue(any("fused_add_rms_norm" in line for line in lines if line.startswith("+")))
        self.driver.find_element(By.CSS_SELECTOR, "#changes select option[value='1']").click()
        self.assertEqual([self.ask("base()"), self.ask("version()")], [0, 1])
        self.shot("changes")

    def test_a_trace_up_and_down(self):
        node = self.ask("find('getitem_15')")
        self.driver.execute_script("stage.pick({ node: arguments[0] }, true)", node)
        self.keys("<")
        up = self.ask("hits()")
        self.keys(Keys.ESCAPE)
        self.assertIsNone(self.ask("hits()"))
        self.driver.execute_script("stage.pick({ node: arguments[0] }, true)", node)
        self.keys(">")
        down = self.ask("hits()")
        alive = self.driver.execute_script("return [...Array(data.count).keys()].filter(n => data.last[n] === data.versions - 1).length")
        self.assertGreater(up, 1)
        self.assertGreater(down, 1)
        self.assertLessEqual(up + down, alive + 1)  # it is in both

    def test_a_link_holds_what_is_seen(self):
        self.keys("[", "[", "h", "x")
        self.driver.execute_script("stage.pick({ node: piecewise.find('getitem_15') }, true); piecewise.look(300.5, 400, 1.5)")
        seen = [self.ask(q) for q in ("base()", "version()", "camera()", "picked()")]
        address = self.driver.execute_script("return location.href.split('#')[0] + share.text()")
        self.driver.get("about:blank")
        self.driver.get(address)
        self.assertEqual([self.ask(q) for q in ("base()", "version()", "camera()", "picked()")], seen)
        self.assertTrue(self.driver.execute_script("return app.state.ghosts && app.state.labels"))
        for bad in ("#graph;pass=99;base=-1;camera=x,1,0;pick=node:nothing;open=%;view=no", "#;;;=;=1", "#graph;camera=1,2,NaN"):
            self.driver.get("about:blank")
            self.driver.get(self.path.as_uri() + bad)
            self.assertGreater(self.drawn(), 10)

    def test_what_is_seen_as_svg_and_png(self):
        import xml.etree.ElementTree

        svg = self.ask("svg()")
        picture = xml.etree.ElementTree.fromstring(svg)
        words = {text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")}
        on_screen = [
            n
            for n in range(75)
            if str(n) in self.ask("places()") and self.on_screen(n) and self.driver.execute_script("return stateOf(arguments[0])", n) != "off"
        ]
        self.assertGreater(len(on_screen), 3)
        for node in on_screen:
            self.assertIn(self.driver.execute_script("return data.op(arguments[0])", node)[:12], {w[:12] for w in words})
        size = self.driver.execute_async_script(
            "const done = arguments[0]; exporting.png(blob => createImageBitmap(blob).then(b => done([blob.type, b.width, b.height])))"
        )
        canvas = self.driver.execute_script("return [stage.picture.canvas.width, stage.picture.canvas.height]")
        self.assertEqual(size, ["image/png", *canvas])
        self.keys("s")
        xml.etree.ElementTree.fromstring(self.ask("svg()"))

    def test_types_on_edges(self):
        self.keys("x")
        words = self.ask("svg()")
        self.keys("x")
        self.assertGreater(words.count("bf16["), self.ask("svg()").count("bf16["))

    def test_focus_stays_in_the_list_of_passes(self):
        row = self.driver.find_element(By.CSS_SELECTOR, "#passes tr[data-step='1']")
        self.driver.execute_script("arguments[0].focus()", row)
        self.keys(Keys.ENTER)
        focus = lambda: self.driver.execute_script("return document.activeElement.dataset.step")  # noqa: E731
        self.assertEqual([focus(), self.ask("version()")], ["1", 1])
        self.keys(Keys.ARROW_DOWN)
        self.assertNotEqual(focus(), "1")
        for row in self.driver.find_elements(By.CSS_SELECTOR, "#passes tbody tr"):
            self.assertTrue(row.get_attribute("aria-label"))
            self.assertIn(row.get_attribute("aria-selected"), ("true", "false"))
        self.assertEqual(len(self.driver.find_elements(By.CSS_SELECTOR, "#passes tr[aria-selected=true]")), 1)
        self.assertEqual(self.driver.find_element(By.CSS_SELECTOR, "#passes table").get_attribute("role"), "grid")

    def test_two_fingers_zoom(self):
        before = self.ask("camera()")["k"]
        self.driver.execute_script(
            "const c = stage.picture.canvas, r = c.getBoundingClientRect();"
            "const at = (type, id, x) => c.dispatchEvent(new PointerEvent(type, { pointerId: id, clientX: r.left + x, clientY: r.top + 200, bubbles: true }));"
            "at('pointerdown', 11, 100); at('pointerdown', 12, 200); at('pointermove', 12, 300); at('pointerup', 11, 100); at('pointerup', 12, 300);"
        )
        self.assertAlmostEqual(self.ask("camera()")["k"], 2 * before, delta=0.01)
        self.assertIsNone(self.ask("picked()"))

    def test_what_sizes_refuses_it_clears(self):
        self.tab("sizes")
        field = self.driver.find_element(By.ID, "tokens")
        for refused in ("0", "-3"):
            field.clear()
            field.send_keys(refused)
            self.assertNotIn("pad to", self.text("#padded"))

    CONTRAST = """
    const light = c => { const [r, g, b] = c.map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
    const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + .05) / (y + .05); };
    const rgb = c => { const p = document.createElement('canvas').getContext('2d'); p.fillStyle = c; p.fillRect(0, 0, 1, 1); return [...p.getImageData(0, 0, 1, 1).data].slice(0, 3); };
    const bad = [];
    const grounds = ['paper', 'node', 'product', 'splitting', 'io', 'captured', 'stripe1', 'stripe2', 'layer'];
    for (const on of grounds) for (const of of ['ink', 'soft', 'added', 'removed', 'changed', 'matched'])
      if (ratio(rgb(ink[on]), rgb(ink[of])) < 4.5) bad.push(of + ' on ' + on + ' ' + ratio(rgb(ink[on]), rgb(ink[of])).toFixed(2));
    for (let x = 0; x <= 1; x += .02) {
      const of = fillOf(x);
      if (ratio(rgb(of.fill), rgb(of.text)) < 4.5) bad.push('overlay ' + x);
    }
    for (const e of document.querySelectorAll('body *')) {
      if (!e.offsetParent || ![...e.childNodes].some(c => c.nodeType === 3 && c.textContent.trim())) continue;
      let ground = e;
      while (ground && /rgba\\(0, 0, 0, 0\\)|transparent/.test(getComputedStyle(ground).backgroundColor)) ground = ground.parentElement;
      const color = ground ? getComputedStyle(ground).backgroundColor : 'white';
      if (ratio(rgb(color), rgb(getComputedStyle(e).color)) < 4.5) bad.push(e.tagName + ' ' + e.textContent.slice(0, 30));
    }
    for (const e of document.querySelectorAll('input')) {
      if (!e.offsetParent || !e.placeholder) continue;
      const style = getComputedStyle(e, '::placeholder');
      if (style.opacity !== '1' || ratio(rgb(style.color), rgb(getComputedStyle(e).backgroundColor)) < 4.5) bad.push('placeholder ' + e.placeholder);
    }
    return bad;"""

    def test_contrast(self):
        for _ in ("light", "dark"):
            for name in ("graph", "changes", "rewrites", "misses", "pieces", "sizes", "memory", "ops", "table"):
                self.tab(name)
                self.assertEqual(self.driver.execute_script(self.CONTRAST), [])
            self.keys("d")

    def test_ops_are_counted_after_each_pass(self):
        self.tab("ops")
        rows = {
            cells[0]: cells[1:]
            for cells in (
                [td.text for td in tr.find_elements(By.TAG_NAME, "td")] for tr in self.driver.find_elements(By.CSS_SELECTOR, "#ops tbody tr")
            )
        }
        self.assertEqual(rows["scaled_mm"][-1], str(self.products))
        before, after = (sum(int(row[at]) for row in rows.values()) for at in (0, -1))
        self.assertEqual(after, 39)
        self.assertGreater(before, after)
        self.driver.find_element(By.XPATH, "//section[@id='ops']//button[text()='scaled_mm']").click()
        self.assertEqual(self.driver.execute_script("return tabs.current()"), "graph")
        self.assertEqual(self.ask("hits()"), self.products)
        self.shot("ops")

    def test_dark(self):
        light = self.driver.execute_script("return ink.paper")
        self.keys("d")
        self.assertNotEqual(self.driver.execute_script("return ink.paper"), light)
        self.assertEqual(self.driver.execute_script("return getComputedStyle(document.body).backgroundColor"), "rgb(21, 23, 26)")
        self.shot("graph-dark")
        self.tab("memory")
        self.shot("memory-dark")

    def test_the_system_may_be_dark(self):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
        self.addCleanup(self.driver.execute_cdp_cmd, "Emulation.setEmulatedMedia", {"features": []})
        self.driver.refresh()
        self.assertEqual(self.driver.execute_script("return ink.paper"), "#15171a")

    def test_states_differ_in_grey(self):
        """Each mark has a glyph; the colours of its frames differ in lightness from the paper."""
        glyphs = self.driver.execute_script("return glyphs")
        self.assertEqual(len({glyphs[s] for s in ("added", "removed", "changed", "matched")}), 4)
        lightness = lambda c: sum(int(c[i : i + 2], 16) * w for i, w in ((1, 0.299), (3, 0.587), (5, 0.114)))  # noqa: E731
        colors = self.driver.execute_script("return ['added', 'removed', 'changed', 'matched', 'paper'].map(s => ink[s])")
        for color in colors[:4]:
            self.assertGreater(abs(lightness(color) - lightness(colors[4])), 80)


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
        self.driver.execute_script("stage.pick({ group: data.groups.findIndex(g => g.beside.length > 30) }, true)")
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
        """Positions are read by every layer: from far above only the end of an edge, whole when chosen."""
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
        """Equal ones are drawn once at every level; each opens and closes by itself, and all copies are there unfolded."""
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
        # Every node stands below the one that it reads, or at the top of a later column.
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
        """How many pixels have each colour, after all was fitted."""
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
    """What one asks of a page, answered by a sentence that is there when it opens, or one click from it."""

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
        time.sleep(0.2)
        self.click_node(norm)  # one click
        words = self.text("#why-not")
        self.assertRegex(words, r"rms_quant\S* matched 1 of \d nodes?, then stopped at \S+: .+\(N\d\d\)\.")
        said = run_any("pwr", "explain", "rms_quant", *self.arguments[:3], "-r", "llm", "-q")  # without a match it ends with 1
        self.assertIn("y has no user that is `static_scaled_fp8_quant`", said)
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
        self.assertRegex(self.first_view(), rf"The peak is {peak:.1f} MiB alive at once, in piece_\d+ when \S+ is made \(node \d+ of \d+\)")


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
