"""A client of `pwr serve`: the program, and requests to it over HTTP."""
import http.client
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from program import BIN

FORMAT = "piecewise.share/1"


def require_server():
    """Ends the program with 77 where pwr was built without what speaks HTTP."""
    if not (BIN.parent / "lib/piecewise/http.so").exists():
        print("SKIPPED: no lib/piecewise/http.so: ./dev build installs libcpp-httplib-dev")
        sys.exit(77)


class Serve:
    """A server on a separate port. `page` is the id of the page that sends requests."""

    def __init__(self, *arguments, env=None, limit=120):
        self.process = subprocess.Popen(
            [BIN / "pwr", "--no-config", "serve", "--no-open", "--time-limit", str(limit), *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=env,
        )
        self.begin()

    def begin(self):
        if not select.select([self.process.stdout], [], [], 120)[0]:
            self.process.kill()
            raise TimeoutError("the server prints no address")
        self.address = self.process.stdout.readline().strip()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=([0-9a-f]{32})", self.address)
        assert found, (self.address, self.process.stderr.read() if not self.address else "")
        self.port, self.token = int(found[1]), found[2]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self, by=signal.SIGINT):
        """Returns the exit code and the messages."""
        if self.process.poll() is None:
            self.process.send_signal(by)
        _, messages = self.process.communicate(timeout=600)
        return self.process.returncode, messages

    def request(self, method, path, body=None, **headers):
        """Returns status, headers and body. A header None is left out; `_` is sent as `-`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        wanted = {"Host": f"127.0.0.1:{self.port}", "X_Piecewise_Token": self.token, **headers}
        if body is not None:
            wanted = {"Content_Length": len(body), "Content_Type": "application/octet-stream", **wanted}
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in wanted.items():
            if value is not None:
                connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        try:
            if body:
                connection.send(body)
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before the body was read; the answer is there
        answer = connection.getresponse()
        try:
            return answer.status, answer.headers, answer.read().decode()
        finally:
            connection.close()

    def ask(self, question, content=b"", page="a1", kept=None):
        """The answer, with the picture's page where one came as `html`."""
        body = json.dumps(question).encode() + b"\n" + (content if isinstance(content, bytes) else content.encode())
        status, headers, text = self.request("POST", "/ask", body, X_Piecewise_Page=page, X_Piecewise_Graph=kept)
        assert status == 200, (status, text)
        answer = json.loads(text)
        if headers["X-Piecewise-Picture"]:
            status, _, answer["html"] = self.request("GET", "/picture/" + headers["X-Piecewise-Picture"], X_Piecewise_Token=None)
            assert status == 200
        return answer

    def run(self, rules, graph=None, name="g.pwg", symbols=(), pipeline="", picture="", **how):
        share = {"format": FORMAT, "rules": rules, "pipeline": pipeline}
        if graph is not None:
            share["graph"] = {"name": name, "symbols": list(symbols), "text": ""}
        return self.ask({"ask": "run", "picture": picture, "share": share}, graph or "", **how)

    def workers(self):
        """The processes that answer now. Excludes a child that has not called exec yet: the server waits while that is stopped."""
        children = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [int(pid) for path in children for pid in path.read_text().split() if "--answer" in arguments_of(pid)]


def arguments_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return []


def wait_for(condition, seconds=600):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("it did not happen")
        time.sleep(0.05)


def environment(**changes):
    return {**os.environ, **changes}
