"""Colours for mkdocs (mkdocs.yml): the lexer `pwr`, loaded from the tree because it is not installed, and the style sheet of all languages."""
import importlib
import sys
import types
from pathlib import Path

import pygments.lexers

PACKAGE = "piecewise_colours"  # the folder of `piecewise` without its __init__, which needs the extension module


def module(name):
    """Loads a module of python/piecewise that imports no other."""
    if PACKAGE not in sys.modules:
        package = sys.modules[PACKAGE] = types.ModuleType(PACKAGE)
        package.__path__ = [str(Path(__file__).resolve().parents[1] / "python/piecewise")]
    return importlib.import_module(f"{PACKAGE}.{name}")


def on_config(config):
    lexer = module("highlighting").PwrLexer
    pygments.lexers.LEXERS["PwrLexer"] = (lexer.__module__, lexer.name, tuple(lexer.aliases), tuple(lexer.filenames), ())
    return config


def on_post_build(config):
    Path(config["site_dir"], "pwr.css").write_text(module("colours").style_sheet(".codehilite"), encoding="utf-8")
