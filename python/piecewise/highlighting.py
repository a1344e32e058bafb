"""Highlights rules and graphs with Pygments: the lexer `pwr`. Made by `pwr grammar pygments`."""
from pygments.lexer import RegexLexer, this, using
from pygments.token import Comment, Error, Keyword, Name, Number, Operator, Punctuation, String, Whitespace

__all__ = ["PwrLexer"]


class PwrLexer(RegexLexer):
    """The texts that `pwr` reads: .pwr and .pwg."""

    name = "Piecewise rules"
    aliases = ["pwr", "pwg"]
    filenames = ["*.pwr", "*.pwg"]
    tokens = {
        "root": [
            (r"[ \t\r\n]+", Whitespace),
            (r"//.*", Comment.Single),
            (r'"(?:[^"\\\n]|\\.)*"', using(this, state="string")),
            (r"`(?:[^`\\\n]|\\.)*`", using(this, state="quoted")),
            (r'["`].*', Error),
            (r"[0-9]+(?:\.[0-9]+)?(?![eE][+\-]?[0-9]+)[A-Za-z_][A-Za-z0-9_]*", Error),
            (r"[0-9]+(?:\.[0-9]+)?[eE][+\-]?[0-9]+[A-Za-z_][A-Za-z0-9_]*", Error),
            (r"[0-9]+(?:\.[0-9]+)?(?:[eE][+\-]?[0-9]+)?", Number),
            (r"(?:inf|nan)(?![A-Za-z0-9_])", Number),
            (r"(?:false|true|none)(?![A-Za-z0-9_])", Keyword.Constant),
            (r"(?:assume|unless|where|given|many|and|not|out|or|in)(?![A-Za-z0-9_])", Keyword),
            (r"(?<!\.)(?:f8e4m3|f8e5m2|bf16|i32|i64|f16|f32|f64|b8|i8|u8)(?![A-Za-z0-9_])", Keyword.Type),
            (
                r"(?<!\.)(?:commutative|associative|collective|replicated|splitting|pipeline|saturate|pattern|capture|numeric|because|rowwise|ensures|foreign|extern|ranges|expect|within|effect|greedy|atomic|repeat|rounds|symbol|tokens|weight|buffer|param|table|group|split|sizes|graph|apply|error|nodes|write|pred|rule|over|pass|mode|test|with|from|view|once|walk|best|fuel|when|cost|role|use|rec|for|mut|fn|op|at|by|of)(?![A-Za-z0-9_])(?![ \t]*(?:[\=\,\)\}\]\:\.\?\(\+\-\*\%\|\;\<\>\!]|/(?!/)))",
                Keyword.Pseudo,
            ),
            (r"[A-Za-z_][A-Za-z0-9_]*(?=[ \t]*(?:\?[ \t]*)?\()", Name.Function),
            (r"[A-Za-z_][A-Za-z0-9_]*", Name),
            (r"(?:\.\.\.|\<\=\>|\.\.|\-\>|\=\>|\=\=|\!\=|\<\=|\>\=|\,|\:|\;|\?|\.|\@|\||\=|\<|\>|\+|\-|\*|\/|\%)", Operator),
            (r"(?:\(|\)|\[|\]|\{|\})", Punctuation),
            (r"[^ \t\r\n]", Error),
        ],
        "string": [
            (r'\\(?:x[0-9a-fA-F][0-9a-fA-F]|[ntr0"\\`])', String.Escape),
            (r"\\", Error),
            (r"[^\\]+", String.Double),
        ],
        "quoted": [
            (r'\\(?:x[0-9a-fA-F][0-9a-fA-F]|[ntr0"\\`])', String.Escape),
            (r"\\", Error),
            (r"[^\\]+", Name.Label),
        ],
    }
