"""A client of `pwr lsp`: frames over its standard streams, as an editor sends them."""
import json
import queue
import subprocess
import threading

from program import BIN


class Client:
    """Waits for answers by id; stores notifications of the server until they are read."""

    def __init__(self, *arguments, env=None):
        self.process = subprocess.Popen([BIN / "pwr", "lsp", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
        self.incoming = queue.Queue()
        self.kept = []
        self.last_id = 0
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        out = self.process.stdout
        while True:
            length = None
            for line in iter(out.readline, b"\r\n"):
                if not line:
                    return self.incoming.put(None)
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            self.incoming.put(json.loads(out.read(length)))

    def raw(self, content):
        self.process.stdin.write(content)
        self.process.stdin.flush()

    def send(self, message):
        content = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.raw(b"Content-Length: %d\r\n\r\n%s" % (len(content), content))

    def notify(self, method, **params):
        self.send({"method": method, "params": params})

    def request(self, method, params):
        self.last_id += 1
        self.send({"id": self.last_id, "method": method, "params": params})
        return self.last_id

    def take(self, wanted):
        """The first message that is wanted, of those kept and those to come."""
        for message in self.kept:
            if wanted(message):
                self.kept.remove(message)
                return message
        while True:
            message = self.incoming.get(timeout=3600)
            if message is None:
                raise EOFError("the server ended")
            if wanted(message):
                return message
            self.kept.append(message)

    def answer(self, number):
        return self.take(lambda message: message.get("id") == number and "method" not in message)

    def ask(self, method, **params):
        """The result; an error is raised as a RuntimeError of its code and message."""
        message = self.answer(self.request(method, params))
        if "error" in message:
            raise RuntimeError(message["error"]["code"], message["error"]["message"])
        return message["result"]

    def notification(self, method, **wanted):
        """The parameters of the server's next message of this method that has these parameters."""

        def is_it(message):
            params = message.get("params") or {}
            return message.get("method") == method and all(params.get(key) == value for key, value in wanted.items())

        return self.take(is_it).get("params")

    def initialize(self, capabilities=None, **params):
        result = self.ask("initialize", capabilities=capabilities or {}, **params)
        self.notify("initialized")
        return result

    def open(self, uri, text, version=1):
        self.notify("textDocument/didOpen", textDocument={"uri": uri, "languageId": "pwr", "version": version, "text": text})

    def end(self):
        """The exit code."""
        self.ask("shutdown")
        self.notify("exit")
        return self.process.wait(600)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
