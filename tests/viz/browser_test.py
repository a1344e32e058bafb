#!/usr/bin/python3
"""A page in a real browser: what is on the screen, stepping, searching, opening, comparing, and the keyboard alone."""
import json
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from a_page import TINY, Page  # noqa: E402
from browser import run  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402


class Overview(Page):
    """The first screen of a report."""

    program = ["pwr", "report"]

    @classmethod
    def prepare(cls):
        rules = Path(cls.folder.name, "own.pwr")
        rules.write_text(
            'use "llm"\nrule twice { y = neg(neg(x)) => y = x }\npass own = greedy { twice }\npipeline both { own o2 }\n', encoding="utf-8"
        )
        cls.arguments = [*TINY, "-r", rules, "-p", "both"]

    def test_the_first_screen(self):
        topics = [button.text for button in self.driver.find_elements(By.CSS_SELECTOR, "#topics button")]
        self.assertEqual(topics, ["Overview", "Graph", "Changes", "Why not", "Plan"])
        text = self.text("[data-title=Overview]")
        for part in ("59 → 39", "ops that compute", "captured pieces", "peak memory", "Rules that fired", "rms_quant"):
            self.assertIn(part, text)
        self.assertIn("25.0 MiB → 16.9 MiB read and written at 512 tokens", text)
        self.assertRegex(text, r"Your rules that did not fire\s+rule\s+why\s+twice\s+no node has an op of its pattern")
        self.assertNotIn("SHA-256", text)  # folded
        self.assertGreater(self.driver.execute_script("return document.querySelector('img.thumbnail').naturalWidth"), 100)
        self.assertEqual(self.driver.find_elements(By.CSS_SELECTOR, ".verdict.good"), [])  # nothing was run
        self.shot("overview")

    def test_a_card_opens_its_tab(self):
        self.driver.find_element(By.CSS_SELECTOR, ".card").click()
        self.assertEqual(self.driver.execute_script("return tabs.current()"), "changes")
        shown = [tab.text for tab in self.driver.find_elements(By.CSS_SELECTOR, "[role=tab]") if tab.is_displayed()]
        self.assertEqual(shown, ["Diff", "Rewrites", "Passes", "Ops"])

    def test_near_misses_are_rows(self):
        self.tab("misses")
        rows = self.driver.find_elements(By.CSS_SELECTOR, "#misses > div table tbody tr")
        self.assertLess(len(rows), 40)
        self.assertEqual(len(self.driver.find_elements(By.CSS_SELECTOR, "#misses > details")), 1)


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
        return self.all_on_screen(self.driver.execute_script("return data.differences(app.state.base, app.state.now)"))

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
        places = self.ask("places()")
        shown = {n for n in wanted if str(n) in places}
        windows = self.driver.execute_script("return stage.windows().length")
        self.assertGreater(windows, 1)
        seen = set(self.changes_on_screen())  # it opens at the first
        for _ in range(windows - 1):
            self.keys("j")
            self.assertTrue(self.on_screen(self.ask("picked()")["node"]))
            seen |= set(self.changes_on_screen())
        self.assertEqual(seen, shown)
        messages = lambda: self.driver.find_element(By.ID, "announcement").get_attribute("textContent")  # noqa: E731
        self.assertIn(f"change {windows} of {windows}", messages())
        self.keys("j")
        self.assertIn(f"change 1 of {windows}", messages())
        self.keys("k")
        self.assertIn(f"change {windows} of {windows}", messages())

    def test_what_is_in_neither_version_is_hidden_until_asked_for(self):
        gone = "return drawing().boxes.filter(box => box.state === 'off').length"
        nodes = "return drawing().boxes.filter(box => box.kind === 'node').length"
        self.keys("[")
        self.assertEqual(self.driver.execute_script(gone), 0)
        before = self.driver.execute_script(nodes)
        self.keys("h")
        self.assertGreater(self.driver.execute_script(gone), 0)
        self.assertEqual(self.driver.execute_script(nodes), 69)
        self.keys("h")
        self.assertEqual(self.driver.execute_script(nodes), before)

    def test_stepping_moves_nothing(self):
        first = self.ask("places()")
        self.assertEqual(len(first), 69)
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
        self.assertIn("Pass norm_quant changed most: 4 nodes added, 8 removed, 0 changed.", self.text("#summary"))

    def test_the_bar_is_one_line(self):
        tops = {
            round(b.rect["y"] + b.rect["height"] / 2) for b in self.driver.find_elements(By.CSS_SELECTOR, "#bar > *") if b.is_displayed() and b.text
        }
        self.assertLess(max(tops) - min(tops), 8)

    def test_searching(self):
        self.keys("/")
        self.keys("op:scaled_mm")
        self.assertEqual(self.ask("hits()"), self.products)
        self.assertIn(f"{self.products} of 69 nodes", self.text("#bar .count"))
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
        self.next_frame()
        self.click_node(node)
        self.assertEqual(self.ask("picked()"), {"node": node})
        detail = self.text("#detail")
        self.assertIn("rule add_rms_quant", detail)
        self.assertIn("rules/norm_quant.pwr:13", detail)
        self.assertIn("in place of", detail)
        self.assertIn("rule add_rms_quant {", detail)  # with the rule's text
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

    def test_what_was_tried_adds_up(self):
        self.tab("rewrites")
        tried = self.driver.find_element(By.XPATH, "//div[@id='rewrite-list']/h2[starts-with(text(), 'pass norm_quant')]/following-sibling::details")
        tried.find_element(By.TAG_NAME, "summary").click()
        self.assertIn("attempts: nodes where a match", tried.text)
        rows = [[cell.text for cell in row.find_elements(By.TAG_NAME, "td")] for row in tried.find_elements(By.CSS_SELECTOR, "tbody tr")]
        taken = {row[0]: int(row[4]) for row in rows}
        for rule, attempts, found, guarded, made, _ in rows:
            self.assertEqual(int(found), int(guarded) + int(made), rule)
            self.assertGreater(int(attempts), 0, rule)
        matches = self.driver.execute_script("return data.steps.find(s => s.pass === 'norm_quant').matches")
        self.assertEqual(sum(taken.values()), matches)
        self.shot("tried")

    def test_alike_rewrites_are_one_line(self):
        self.tab("rewrites")
        row = self.driver.find_element(By.XPATH, "//div[@id='rewrite-list']//tr[.//button[text()='noop.reshape_chain']]")
        self.assertEqual(row.find_elements(By.TAG_NAME, "td")[1].text, "2")

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
        self.assertIn("move from box to box", self.text("#help"))
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
        self.assertEqual(opened, ["table", "changes", "rewrites", "ops", "misses", "pieces"])

    UNNAMED = """return [...document.querySelectorAll('button, input, select, canvas')].filter(e =>
      !(e.textContent.trim() || e.getAttribute('aria-label') || e.title || (e.labels && e.labels[0] && e.labels[0].textContent)))
      .map(e => e.outerHTML.slice(0, 120));"""

    def test_every_control_has_a_name_and_is_reached_by_tab(self):
        for name in ("graph", "changes", "rewrites", "misses", "pieces", "sizes", "memory", "ops", "table"):
            self.tab(name)
            self.assertEqual(self.driver.execute_script(self.UNNAMED), [])

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
        self.assertRegex(sentence, r"The peak is [\d.]+ MiB live at once, in piece_\d+ when \S+ is computed")
        peak = float(sentence.split()[3])
        self.assertAlmostEqual(peak, plan["live"] / 2**20, delta=0.0051)  # the page adds up to the plan
        self.shot("memory")

    def test_the_table_says_the_same(self):
        self.driver.execute_script("app.change({base: app.state.now})")
        self.tab("table")
        rows = self.driver.find_elements(By.CSS_SELECTOR, "#table tbody tr")
        self.assertEqual(len(rows), 39)
        self.tab("graph")
        self.keys("/")
        self.keys("op:scaled_mm")
        self.tab("table")
        self.assertEqual(len(self.driver.find_elements(By.CSS_SELECTOR, "#table tbody tr")), self.products)
        self.shot("table")

    def column(self, number):
        return self.texts(f"#table tbody td:nth-child({number})")

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
        places = self.ask("places()")
        on_screen = self.all_on_screen([n for n in range(75) if str(n) in places])
        ops = self.driver.execute_script("return arguments[0].filter(n => stateOf(n) !== 'off').map(n => data.op(n))", on_screen)
        self.assertGreater(len(ops), 3)
        self.assertLessEqual({op[:12] for op in ops}, {w[:12] for w in words})
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
    const pen = document.createElement('canvas').getContext('2d', {willReadFrequently: true}), known = {};
    const drawn = c => { pen.clearRect(0, 0, 1, 1); pen.fillStyle = c; pen.fillRect(0, 0, 1, 1); return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3); };
    const rgb = c => known[c] ??= drawn(c);
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
        rows = {name: counts for name, *counts in self.rows("#ops tbody tr")}
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


if __name__ == "__main__":
    unittest.main()
