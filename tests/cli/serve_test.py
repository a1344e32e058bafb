#!/usr/bin/python3
"""`pwr serve` over HTTP: answers while one types, files that are opened, share files, and who is kept out."""
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from program import BIN, ProgramTest  # noqa: E402
from serve_client import FORMAT, Serve, environment, require_server, wait_for  # noqa: E402

require_server()

RULES = "rule merge {\n  y = relu(relu(x))\n  =>\n  y = relu(x)\n}\npass p = greedy { merge }\n"
GRAPH = "graph g {\n  in x: f32[8]\n  a = relu(x)\n  y = relu(a)\n  out y\n}\n"
DUMP = Path("examples/tiny-decoder.fx.txt").read_text()
SYMBOLS = ["n=arg0_1.0,arg1_1.0"]


def data_of(html):
    """Returns the data that the viewer's page shows."""
    return json.loads(html.split('id="data">', 1)[1].split("</script>", 1)[0])


def errors(answer):
    return [(p["code"], p["where"]) for p in answer["problems"] if p["severity"] == "error"]


class Typing(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = Serve()
        cls.addClassCleanup(cls.server.end)

    def test_a_mistake_has_its_place_and_the_graph_follows_when_it_is_mended(self):
        wrong = self.server.run(RULES.replace("y = relu(x)\n}", "y = rleu(x)\n}"), GRAPH)
        self.assertEqual(errors(wrong), [("PW0220", "rules")])
        problem = wrong["problems"][0]
        self.assertEqual((problem["line"], problem["column"], problem["end_line"]), (3, 6, 3))
        self.assertIn("unknown op `rleu`", problem["message"])
        self.assertIn("did you mean `relu`?", problem["help"])
        self.assertEqual((wrong["picture"], wrong["ran"]), ("", ""))
        self.assertNotIn("html", wrong)
        right = self.server.run(RULES, GRAPH)
        self.assertEqual((right["problems"], right["ran"]), ([], "p"))
        self.assertEqual(right["strategies"], [{"name": "p", "kind": "pass"}, {"name": "merge", "kind": "rule"}])
        plain = self.server.run("", GRAPH)
        self.assertIn("merge", right["html"])
        self.assertNotIn("merge", plain["html"])
        self.assertNotEqual(right["picture"], plain["picture"])

    def test_mistakes_are_those_of_check(self):
        for text in (
            RULES.replace("relu(x)\n}", "rleu(x, x)\n}"),
            "rule r {\n  y = \n",
            'use "nowhere"\n',
            "pass p = greedy { none_such }\n",
            "param x = \n",
        ):
            with self.subTest(text=text):
                path = self.file("rules.pwr", text)
                done = subprocess.run(
                    [BIN / "pwr", "--no-config", "check", path, "--diagnostics", "json"], capture_output=True, text=True, check=False
                )
                messages = [(d["code"], d["line"] - 1, d["column"] - 1) for d in json.loads(done.stderr)["diagnostics"]]
                self.assertTrue(messages)
                found = self.server.run(text)["problems"]
                self.assertEqual(sorted((p["code"], p["line"], p["column"]) for p in found), sorted(messages))

    def test_columns_are_those_of_a_browser(self):
        text = "// 𝒙é\nrule r { y = relu(x){`𝒙é` = 1} => y = rleu(x) }\n"
        problem = next(p for p in self.server.run(text)["problems"] if p["code"] == "PW0220")
        line = text.split("\n")[1]
        utf16 = len(line[: line.index("rleu")].encode("utf-16-le")) // 2
        self.assertEqual((problem["line"], problem["column"]), (1, utf16))

    def test_a_picture_that_the_page_has_is_not_sent_again(self):
        first = self.server.run(RULES, GRAPH)
        again = self.server.run(RULES + "// a comment\n", GRAPH, picture=first["picture"])
        self.assertEqual(again["picture"], first["picture"])
        self.assertNotIn("html", again)

    def test_a_graph_is_sent_once(self):
        kept = "c0ffee"
        self.assertIn("html", self.server.run(RULES, GRAPH, kept=kept))
        share = {"format": FORMAT, "rules": RULES, "pipeline": "", "graph": {"name": "g.pwg", "symbols": [], "text": ""}}
        self.assertIn("html", self.server.ask({"ask": "run", "share": share}, kept=kept))
        status, _, _ = self.server.request("POST", "/ask", b"{}\n", X_Piecewise_Page="a1", X_Piecewise_Graph="abc123")
        self.assertEqual(status, 410)

    def test_what_is_run(self):
        two = RULES + "pass q = greedy { merge }\npipeline all { p q }\n"
        self.assertEqual(self.server.run(two, GRAPH)["ran"], "all")
        self.assertEqual(self.server.run(two, GRAPH, pipeline="q")["ran"], "q")
        unknown = self.server.run(two, GRAPH, pipeline="qq")
        self.assertEqual(errors(unknown), [("PW1101", "run")])
        library = self.server.run('use "llm"\n', DUMP, name="d.txt", symbols=SYMBOLS)
        self.assertEqual(library["ran"], "")
        self.assertIn({"name": "o2", "kind": "used pipeline"}, library["strategies"])

    def test_the_library_on_a_dump(self):
        answer = self.server.run('use "llm"\n', DUMP, name="d.txt", symbols=SYMBOLS, pipeline="o2")
        self.assertEqual(errors(answer), [])
        self.assertTrue(any(line.startswith("this is ") for line in answer["log"]), answer["log"])
        self.assertGreater(len(data_of(answer["html"])["steps"]), 3)

    def test_a_graph_with_a_mistake(self):
        graph = GRAPH.replace("relu(a)", "rleu(a)")
        done = self.pwr("stats", self.file("g.pwg", graph), "--diagnostics", "json", code=3)
        messages = json.loads(done.stderr)["diagnostics"][0]
        answer = self.server.run(RULES, graph)
        self.assertEqual(errors(answer), [(messages["code"], "graph")])
        self.assertEqual(answer["problems"][0]["place"], f"g.pwg:{messages['line']}:{messages['column']}")
        self.assertEqual(messages["line"], 4)


class Files(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = Serve()
        cls.addClassCleanup(cls.server.end)

    def open(self, name, content):
        return self.server.ask({"ask": "open", "file": name}, content)

    def test_what_is_dropped(self):
        self.assertEqual(self.open("model.fx.txt", DUMP)["opened"], "graph")
        self.assertEqual(self.open("g.pwg", GRAPH)["opened"], "graph")
        self.assertEqual(self.open("graph.json", self.pwr("export", self.file("g.pwg", GRAPH), "--format", "json").stdout)["opened"], "graph")
        rules = self.open("r.pwr", RULES)
        self.assertEqual((rules["opened"], rules["share"]["rules"]), ("rules", RULES))

    def test_what_is_something_else_is_named(self):
        for name, content, messages in (
            ("p.png", b"\x89PNG\r\n\x1a\n" + bytes(20), "PNG"),
            ("m.pt2", b"PK\x03\x04" + bytes(30), "zip"),
            ("n.txt", "nothing of interest\n", ""),
            ("e.txt", b"\xff\xfe\xfa", "not a text file"),
            ("s.share", '{"format": "piecewise.share/9", "rules": "", "pipeline": ""}', "piecewise.share/9"),
            ("s.share", "{", "not JSON"),
            ("plan.json", '{"format": "piecewise.plan/1"}', "piecewise.plan/1"),
        ):
            with self.subTest(name=name):
                answer = self.open(name, content)
                self.assertEqual(answer["opened"], "")
                self.assertEqual(len(errors(answer)), 1)
                self.assertIn(messages, answer["problems"][0]["message"])

    def test_a_share_is_checked_member_by_member(self):
        good = {"format": FORMAT, "rules": RULES, "pipeline": "p", "graph": {"name": "g.pwg", "symbols": [], "text": GRAPH}}
        self.assertEqual(self.open("a.share", json.dumps(good))["opened"], "share")
        for change, place in (
            ({"rules": 1}, "/rules"),
            ({"more": 1}, "/more"),
            ({"pipeline": None}, "/pipeline"),
            ({"rules": "a\0b"}, "/rules"),
            ({"rules": "x" * ((1 << 20) + 1)}, "/rules"),
            ({"graph": []}, "/graph"),
            ({"graph": {**good["graph"], "name": "../g"}}, "/graph/name"),
            ({"graph": {**good["graph"], "symbols": [1]}}, "/graph/symbols"),
            ({"graph": {**good["graph"], "path": "x"}}, "/graph/path"),
        ):
            with self.subTest(place=place):
                answer = self.open("a.share", json.dumps({**good, **change}))
                self.assertEqual((answer["opened"], errors(answer)), ("", [("PW1602", "graph")]))
                self.assertEqual(answer["problems"][0]["place"], "a.share at " + place)

    def test_a_share_file_goes_round(self):
        share = {"format": FORMAT, "rules": RULES, "pipeline": "p", "graph": {"name": "g.pwg", "symbols": SYMBOLS, "text": ""}}
        document = self.server.ask({"ask": "share", "share": share}, GRAPH)["document"]
        share["graph"]["text"] = GRAPH
        self.assertEqual(json.loads(document), share)
        with Serve(self.file("x.share", document)) as again:
            self.assertEqual(json.loads(again.request("GET", "/share")[2]), share)
        with Serve(self.path("x.share"), "-r", "llm", "-p", "o2") as other:
            self.assertEqual([json.loads(other.request("GET", "/share")[2])[key] for key in ("rules", "pipeline")], ['use "llm"\n', "o2"])

    def test_files_of_the_command_line(self):
        dump, rules = self.file("d.fx.txt", DUMP), self.file("r.pwr", RULES)
        with Serve(dump, "-r", rules, "--symbol", SYMBOLS[0]) as server:
            share = json.loads(server.request("GET", "/share")[2])
        self.assertEqual(share, {"format": FORMAT, "rules": RULES, "pipeline": "", "graph": {"name": "d.fx.txt", "symbols": SYMBOLS, "text": DUMP}})
        done = self.pwr("serve", self.file("bad.share", '{"format": "piecewise.share/1", "rules": 1}'), code=3)
        self.assertIn("PW1602", done.stderr)
        self.assertIn("/rules", done.stderr)
        self.pwr("serve", self.path("nowhere.pwg"), code=3)

    def test_the_example_to_begin_with_has_no_mistake(self):
        share = json.loads(self.server.request("GET", "/share")[2])
        answer = self.server.run(share["rules"], share["graph"]["text"], name=share["graph"]["name"])
        self.assertEqual((answer["problems"], answer["ran"]), ([], "fuse"))
        self.assertIn("fused_add_rms_norm", answer["html"])


class Guarded(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = Serve()
        cls.addClassCleanup(cls.server.end)
        cls.here = f"127.0.0.1:{cls.server.port}"

    def status(self, method, path, body=None, **headers):
        return self.server.request(method, path, body, **headers)[0]

    def test_the_page_opens_by_its_address(self):
        status, headers, text = self.server.request("GET", "/?token=" + self.server.token, X_Piecewise_Token=None)
        self.assertEqual(status, 200)
        self.assertNotIn(self.server.token, text)
        policy = headers["Content-Security-Policy"]
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)
        self.assertNotIn("http://", text.replace("http://www.w3.org", ""))  # nothing is fetched
        self.assertEqual(headers["Cache-Control"], "no-store")

    def test_other_names_sites_and_tokens_are_refused(self):
        port, token = self.server.port, self.server.token
        for path, headers, status in (
            ("/share", {}, 200),
            ("/share", {"Host": f"localhost:{port}"}, 200),
            ("/share", {"Host": f"evil.example:{port}"}, 403),
            ("/share", {"Host": "127.0.0.1"}, 403),
            ("/share", {"Host": f"127.0.0.1:{port}.evil.example"}, 403),
            ("/share", {"Host": None}, 403),
            ("/share", {"Origin": f"http://{self.here}"}, 200),
            ("/share", {"Origin": "http://evil.example"}, 403),
            ("/share", {"Origin": f"http://localhost:{port}"}, 403),  # not the requested name
            ("/share", {"Origin": "null"}, 403),
            ("/share", {"X_Piecewise_Token": None}, 403),
            ("/share", {"X_Piecewise_Token": "0" * 32}, 403),
            ("/share", {"X_Piecewise_Token": token[:-1]}, 403),
            ("/share?token=" + token, {"X_Piecewise_Token": None}, 403),
            ("/", {}, 403),
            ("/?token=", {}, 403),
            ("/?token=" + token + "0", {}, 403),
            ("/start/" + "0" * 32, {"X_Piecewise_Token": None}, 403),
            ("/picture/" + "0" * 32, {"X_Piecewise_Token": None}, 404),
            ("/../etc/passwd", {}, 404),
            ("/share/", {}, 404),
        ):
            with self.subTest(path=path, headers=headers):
                self.assertEqual(self.status("GET", path, **headers), status)
        good = {"X_Piecewise_Page": "a1"}
        question = json.dumps({"ask": "share", "share": {"format": FORMAT, "rules": "", "pipeline": ""}}).encode() + b"\n"
        self.assertEqual(self.status("POST", "/ask", question, **good), 200)
        for headers in ({"Origin": "http://evil.example"}, {"Sec_Fetch_Site": "cross-site"}, {"X_Piecewise_Token": None}, {"Host": "evil.example"}):
            with self.subTest(headers=headers):
                self.assertEqual(self.status("POST", "/ask", question, **good, **headers), 403)

    def test_only_this_machine_is_listened_on(self):
        listening = [
            line.split()[1] for line in Path(f"/proc/{self.server.process.pid}/net/tcp").read_text().splitlines()[1:] if line.split()[3] == "0A"
        ]
        own = [place for place in listening if int(place.split(":")[1], 16) == self.server.port]
        self.assertEqual(own, [f"0100007F:{self.server.port:04X}"])

    def test_methods(self):
        for method in ("PUT", "DELETE", "OPTIONS", "HEAD", "PATCH"):
            self.assertEqual(self.status(method, "/share"), 405, method)

    def test_what_is_too_large_or_no_request_is_refused(self):
        ids = {"X_Piecewise_Page": "a1"}
        for body, headers, status in (
            (b"{}\n", {"Content_Length": str(1 << 40)}, 413),
            (b"", {"Content_Length": "-1"}, 400),
            (b"{}\n", {"Content_Length": "3x"}, 400),
            (None, {}, 411),
            (b"3\r\n{}\n\r\n0\r\n\r\n", {"Content_Length": None, "Transfer_Encoding": "chunked"}, 411),
            (b"{}\n", {"Content_Encoding": "gzip"}, 415),
            (b"{}\n", {"Content_Type": "text/plain"}, 415),
            (b"{}\n", {"Content_Type": "multipart/form-data; boundary=x"}, 415),
            (b"{}", {}, 400),
            (b"{}\n", {"X_Piecewise_Page": None}, 400),
            (b"{}\n", {"X_Piecewise_Page": "../../x"}, 400),
            (b"{}\n", {"X_Piecewise_Graph": "A B"}, 400),
        ):
            with self.subTest(headers=headers, body=body):
                self.assertEqual(self.status("POST", "/ask", body, **{**ids, **headers}), status)
        self.assertEqual(self.status("POST", "/ask", b"{}\n" + bytes(54 << 20), **ids), 413)
        for text in ("nonsense", "[]", "{}", '{"ask": "steal"}', '{"ask": "open", "file": "../x"}', '{"ask": "run"}', "[" * 100000):
            with self.subTest(text=text[:20]):
                status, _, answer = self.server.request("POST", "/ask", text.encode() + b"\n", **ids)
                self.assertEqual((status, [p["severity"] for p in json.loads(answer)["problems"]]), (200, ["error"]))

    def test_bytes_that_are_no_http(self):
        for bytes_ in (b"\0" * 100, b"GET\r\n\r\n", b"x" * 100000 + b"\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 10):
            with socket.create_connection(("127.0.0.1", self.server.port), timeout=600) as connection:
                connection.sendall(bytes_)
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1)
        self.assertEqual(self.status("GET", "/share"), 200)

    def test_headers_without_end_are_cut_off(self):
        sent = 0
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=600) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n")
            line = b"A: " + b"b" * 4000 + b"\r\n"
            try:
                while sent < 200 << 20:
                    connection.sendall(line)
                    sent += len(line)
            except OSError:
                pass
        self.assertLess(sent, 100 << 20)
        self.assertEqual(self.status("GET", "/share"), 200)

    def retried_status(self, end):
        """Returns the status of a GET, which is sent again if the full server resets its connection, as browsers do."""
        while True:
            try:
                return self.status("GET", "/share")
            except ConnectionResetError:
                if time.monotonic() > end:
                    raise

    def test_waiting_clients_do_not_stop_others(self):
        for sent in (b"", b"GET / HTTP/1.1\r\nHost: ", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"):
            with self.subTest(sent=sent):
                waiting = [socket.create_connection(("127.0.0.1", self.server.port)) for _ in range(600)]
                for connection in waiting:
                    connection.sendall(sent)
                begin = time.monotonic()
                self.assertEqual(self.retried_status(begin + 30), 200)
                # Each would hold a thread for 30 seconds, or for 2 with all of its headers.
                self.assertLess(time.monotonic() - begin, 30)
                for connection in waiting:
                    connection.close()

    def test_headers_that_do_not_end_are_given_up(self):
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=600) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: ")
            self.assertEqual(connection.recv(1), b"")

    def test_headers_in_pieces_are_read(self):
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=600) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in b"GET /share HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-Piecewise-Token: %s\r\n\r\n" % (
                self.server.port,
                self.server.token.encode(),
            ):
                connection.sendall(bytes([byte]))
            self.assertIn(b" 200 ", connection.recv(64))

    def test_rules_reach_no_file(self):
        secret = self.file("secret.pwr", "rule leaked { y = relu(relu(x)) => y = relu(x) }\n")
        for path in (secret, "../" * 20 + secret.lstrip("/"), "/etc/passwd", "examples/first_rule.pwr", "/proc/self/environ"):
            with self.subTest(path=path):
                answer = self.server.run(f'use "{path}"\n', GRAPH)
                self.assertEqual(errors(answer), [("PW0462", "rules")])
                self.assertNotIn("leaked", json.dumps(answer))

    def test_names_in_a_graph_end_no_element(self):
        graph = GRAPH.replace(" a ", " `</script><b>a` ").replace("(a)", "(`</script><b>a`)")
        html = self.server.run(RULES, graph)["html"]
        self.assertNotIn("</script><b>", html)


class Ends(ProgramTest):
    """How long things last."""

    def slow(self):
        """A question that takes seconds."""
        large = self.make("large.pwg", "generate", "llama", "--layers", "600")
        text = Path(large).read_bytes()
        self.assertLess(len(text), 24 << 20)
        share = {"format": FORMAT, "rules": 'use "llm"\n', "pipeline": "o2", "graph": {"name": "large.pwg", "symbols": [], "text": ""}}
        return json.dumps({"ask": "run", "share": share}).encode() + b"\n" + text

    def start_request(self, server):
        """Sends a request in a thread, and stops the worker before it answers; returns the thread and the list for its outcome."""
        outcome = []

        def ask():
            try:
                outcome.append(server.request("POST", "/ask", question, X_Piecewise_Page="a1"))
            except (http.client.HTTPException, OSError) as cut_off:
                outcome.append(cut_off)

        question = self.slow()
        thread = threading.Thread(target=ask)
        thread.start()
        wait_for(server.workers)
        for pid in server.workers():
            os.kill(pid, signal.SIGSTOP)
        return thread, outcome

    def test_an_answer_that_takes_too_long_is_ended(self):
        with Serve(limit=1) as server:
            thread, outcome = self.start_request(server)
            thread.join(600)
            status, _, text = outcome[0]
            problem = json.loads(text)["problems"][0]
            self.assertEqual((status, problem["code"]), (200, "PW1604"))
            self.assertIn("longer than 1 s ", problem["message"])
            wait_for(lambda: not server.workers())

    def test_rules_without_an_end_stop_at_a_limit(self):
        with Serve() as server:
            endless = "rule grow { y = relu(x) => y = relu(relu(x)) }\npass p = greedy { grow }\n"
            answer = server.run(endless, GRAPH)
            self.assertIn(("PW1104", "rules"), [(p["code"], p["where"]) for p in answer["problems"]])

    def test_a_newer_question_ends_the_one_before(self):
        with Serve() as server:
            thread, old = self.start_request(server)
            first = server.workers()
            self.assertEqual(server.run(RULES, GRAPH, page="b2")["ran"], "p")  # another page's ends none
            self.assertEqual(server.workers(), first)
            self.assertEqual(server.run(RULES, GRAPH, page="a1")["ran"], "p")
            thread.join(600)
            self.assertEqual(old[0][0], 409)
            self.assertEqual(server.workers(), [])

    def test_an_interrupt_ends_it_cleanly(self):
        for by in (signal.SIGINT, signal.SIGTERM):
            server = Serve(limit=3600)  # six times as long as end() waits
            thread, outcome = self.start_request(server)
            workers = server.workers()
            idle = socket.create_connection(("127.0.0.1", server.port))
            code, messages = server.end(by)
            self.assertEqual(code, 0, messages)
            self.assertIn("the server has stopped", messages)
            for pid in workers:
                self.assertFalse(os.path.exists(f"/proc/{pid}"))
            idle.close()
            thread.join(600)
            # The connection has ended, or the answer with the reason arrived just in time.
            self.assertTrue(isinstance(outcome[0], Exception) or outcome[0][0] == 503, outcome[0])

    def test_a_port_in_use(self):
        with Serve() as server:
            done = self.pwr("serve", "--no-open", "--port", str(server.port), code=2)
            self.assertIn(f"error[PW1601]: port {server.port} is in use by another program", done.stderr)
            self.assertIn("leave out --port", done.stderr)
            self.assertEqual(done.stdout, "")
            port = server.port
        with Serve("--port", port) as again:
            self.assertEqual(again.port, port)

    def test_without_what_speaks_http(self):
        alone = Path(self.path("alone/bin"))
        alone.mkdir(parents=True)
        shutil.copy(BIN / "pwr", alone / "pwr")
        done = subprocess.run([alone / "pwr", "serve", "--no-open"], capture_output=True, text=True, check=False, timeout=3600)
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("PW1600", done.stderr)
        self.assertIn("libcpp-httplib", done.stderr)

    def test_a_browser_is_led_there_once_and_without_the_token(self):
        folder = Path(self.path("programs"))
        folder.mkdir()
        opener = folder / "xdg-open"
        opener.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" > {folder}/opened.tmp && mv {folder}/opened.tmp {folder}/opened\n")
        opener.chmod(0o755)
        process = subprocess.Popen(
            [BIN / "pwr", "--no-config", "serve"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(DISPLAY=":7", PATH=f"{folder}:{os.environ['PATH']}"),
        )
        server = Serve.__new__(Serve)
        server.process = process
        server.begin()
        with server:
            wait_for((folder / "opened").exists)
            address = (folder / "opened").read_text().strip()
            self.assertRegex(address, rf"^http://127\.0\.0\.1:{server.port}/start/[0-9a-f]{{32}}$")
            path = address.split(str(server.port), 1)[1]
            status, headers, _ = server.request("GET", path, X_Piecewise_Token=None)
            self.assertEqual((status, headers["Location"]), (303, "/?token=" + server.token))
            self.assertEqual(server.request("GET", path, X_Piecewise_Token=None)[0], 403)

    def test_nothing_is_written(self):
        folder = Path(self.path("empty"))
        folder.mkdir()
        process = subprocess.Popen([BIN / "pwr", "serve", "--no-open"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        server = Serve.__new__(Serve)
        server.process = process
        server.begin()
        with server:
            server.run(RULES, GRAPH)
            server.ask({"ask": "share", "share": {"format": FORMAT, "rules": RULES, "pipeline": ""}})
        self.assertEqual(list(folder.iterdir()), [])

    def test_what_has_no_json_says_so(self):
        self.assertIn("no JSON output is available", self.pwr("serve", "--format", "json", code=2).stderr)


if __name__ == "__main__":
    unittest.main()
