#!/usr/bin/python3
"""The files of editors/ in the editors themselves, as far as these are there: Emacs colours by its mode, Neovim starts the server and shows what it
finds. Of all others: the files that they name are there, and parse."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EDITORS = ROOT / "editors"
BIN = Path(os.environ.get("PW_BIN", "build/release/bin")).resolve()
BROKEN = "rule a {\n  y = rms_nrom(x, w){eps}\n  =>\n  y = x\n}\n"

COLOURS = r"""
(require 'pwr-mode)
(find-file "%s")
(font-lock-ensure)
(princ (format "mode %%s\n" major-mode))
(dolist (word '("rule" "add_norm" "add(" "expect" "// add" "bf16"))
  (goto-char (point-min))
  (search-forward word)
  (princ (format "%%s %%s\n" word (get-text-property (match-beginning 0) 'face))))
"""

# Functions that came after Neovim 0.7, on those that 0.7 has.
OLD_NEOVIM = """
vim.g.do_filetype_lua = 1
vim.cmd("filetype on")
vim.fs = vim.fs or {}
vim.fs.root = vim.fs.root or function() return nil end
vim.lsp.start = vim.lsp.start or function(config) vim.lsp.buf_attach_client(0, vim.lsp.start_client(config)) end
vim.lsp.inlay_hint = vim.lsp.inlay_hint or { enable = function() end }
"""
SHOWN = """
dofile("%s")
vim.cmd("edit %s")
if vim.bo.filetype == "" then vim.cmd("setfiletype pwr") end
vim.wait(60000, function() return #vim.diagnostic.get(0) > 0 end, 50)
io.stdout:write(vim.bo.filetype, "\\n", vim.bo.commentstring, "\\n")
for _, found in ipairs(vim.diagnostic.get(0)) do
  io.stdout:write(found.lnum, " ", found.col, " ", tostring(found.code), "\\n")
end
"""


class Editors(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_editor(self, name, *args):
        if not shutil.which(name):
            self.skipTest(f"{name} is not installed")
        env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(self.folder), "PWR_CACHE_DIR": str(self.folder)}
        done = subprocess.run([name, *map(str, args)], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False, env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def test_emacs(self):
        script = self.file("look.el", COLOURS % (ROOT / "examples/first_rule.pwr"))
        messages = self.run_editor("emacs", "--batch", "-Q", "-L", EDITORS / "emacs", "-l", script)
        self.assertEqual(
            messages.splitlines(),
            [
                "mode pwr-mode",
                "rule font-lock-builtin-face",
                "add_norm nil",
                "add( font-lock-function-name-face",
                "expect font-lock-builtin-face",
                "// add font-lock-comment-delimiter-face",
                "bf16 font-lock-type-face",
            ],
        )

    def test_neovim(self):
        broken = self.file("broken.pwr", BROKEN)
        script = self.file("look.lua", OLD_NEOVIM + SHOWN % (EDITORS / "neovim/pwr.lua", broken))
        messages = self.run_editor("nvim", "--headless", "-u", "NONE", "-c", f"luafile {script}", "-c", "qa!")
        self.assertEqual(messages.splitlines(), ["pwr", "// %s", "1 6 PW0220"])

    def test_old_neovim_reports_what_it_needs(self):
        script = self.file("old.lua", 'vim.lsp.start = nil vim.notify = print dofile("%s")' % (EDITORS / "neovim/pwr.lua"))
        self.run_editor("nvim", "--headless", "-u", "NONE", "-c", f"redir! > {self.folder}/messages", "-c", f"luafile {script}", "-c", "qa!")
        self.assertIn("needs Neovim 0.10 or later", (self.folder / "messages").read_text())

    def test_visual_studio_code(self):
        folder = EDITORS / "vscode"
        package = json.loads((folder / "package.json").read_text(encoding="utf-8"))
        language, grammar = package["contributes"]["languages"][0], package["contributes"]["grammars"][0]
        for name in (package["main"], language["configuration"], grammar["path"]):
            self.assertTrue((folder / name).is_file(), name)
        json.loads((folder / language["configuration"]).read_text(encoding="utf-8"))
        self.assertEqual(json.loads((folder / grammar["path"]).read_text(encoding="utf-8"))["scopeName"], grammar["scopeName"])
        read = set(re.findall(r'settings\.get\("(\w+)"\)', (folder / package["main"]).read_text(encoding="utf-8")))
        self.assertEqual({f"piecewise.{name}" for name in read}, set(package["contributes"]["configuration"]["properties"]))

    def test_visual_studio_codes_extension_is_javascript(self):
        self.run_editor("node", "--check", EDITORS / "vscode/extension.js")

    def test_helix(self):
        with open(EDITORS / "helix/languages.toml", "rb") as file:
            settings = tomllib.load(file)
        (language,) = settings["language"]
        self.assertEqual(language["file-types"], ["pwr", "pwg"])
        server = settings["language-server"][language["language-servers"][0]]
        self.assertEqual([server["command"], *server["args"]], ["pwr", "lsp"])


if __name__ == "__main__":
    done = unittest.main(exit=False).result
    if done.wasSuccessful() and done.skipped:
        print(f"SKIPPED: {'; '.join(reason for _, reason in done.skipped)}", file=sys.stderr)
        sys.exit(77)
    sys.exit(0 if done.wasSuccessful() else 1)
