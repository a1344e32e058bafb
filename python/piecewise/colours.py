"""Syntax highlighting of rules, graphs, and messages: HTML for notebooks, and a style sheet for the documentation site.

Without Pygments the same HTML has no colors. Every color has a contrast of at least 4.5:1 on the background, which is set too.
"""
import html
import re

BACKGROUND, INK = "#f6f8fa", "#24292f"
_LEVELS = {"error": "#a40e26", "warning": "#7d4e00", "note": "#0a3069", "help": "#116329"}
_SOURCE = re.compile(r"^( *\d+ \| )(.*)$")  # a line of an excerpt
_MARKS = re.compile(r"^( *\| ?)([ \^\-]*[\^\-].*)$")  # the line below it: carets, dashes and their labels
_LEVEL = re.compile(r"^(error|warning|note|help)((?:\[\w+\])?:)")

try:
    from pygments.formatters import HtmlFormatter
    from pygments.style import Style
    from pygments.token import Comment, Error, Keyword, Name, Number, Operator, Punctuation, String

    from .highlighting import PwrLexer
except ImportError:
    PwrStyle = None
else:

    class PwrStyle(Style):
        """The colours of `pwr` on HTML."""

        background_color = BACKGROUND
        styles = {
            Comment: "italic #57606a",
            Keyword: "bold #a40e26",
            Keyword.Pseudo: "bold #0550ae",
            Keyword.Type: "#0a5c68",
            Keyword.Constant: "#0550ae",
            Name: INK,
            Name.Function: "#6639ba",
            Name.Label: "#116329",
            Number: "#0550ae",
            Operator: "#57606a",
            Punctuation: INK,
            String: "#0a3069",
            String.Escape: "#953800",
            Error: "#a40e26",
        }


def _rules(text):
    """Returns the text as spans without an enclosing element."""
    if PwrStyle is None:
        return html.escape(text)
    lexer, formatter = PwrLexer(stripnl=False, ensurenl=False), HtmlFormatter(style=PwrStyle, noclasses=True, nowrap=True)
    from pygments import highlight

    return highlight(text, lexer, formatter).removesuffix("\n")


def _coloured(text, colour):
    return f'<span style="color: {colour}; font-weight: bold">{html.escape(text)}</span>'


def _message_line(line):
    if found := _SOURCE.match(line):
        return html.escape(found[1]) + _rules(found[2])
    if found := _MARKS.match(line):
        return html.escape(found[1]) + _coloured(found[2], _LEVELS["error"])
    if found := _LEVEL.match(line):
        return _coloured(found[0], _LEVELS[found[1]]) + html.escape(line[found.end() :])
    return html.escape(line)


def _block(inside):
    style = f"background: {BACKGROUND}; color: {INK}; padding: 0.5em 0.8em; overflow: auto; line-height: 1.3"
    return f'<pre style="{style}">{inside}</pre>'


def rules_html(text):
    """Returns the text of rules or of a graph as an HTML element."""
    return _block(_rules(text.rstrip("\n")))


def message_html(text):
    """Returns diagnostics as `pwr` prints them, with highlighted excerpts."""
    return _block("\n".join(map(_message_line, text.rstrip("\n").split("\n"))))


def style_sheet(selector):
    """Returns the CSS rules for highlighted code below the selector."""
    block = f"{selector} pre {{ background: {BACKGROUND}; color: {INK} }}\n"
    return block + HtmlFormatter(style=PwrStyle).get_style_defs(selector) + "\n"
