"""`%%pwr` in a notebook: a cell of rules, checked, and run on a graph. `%load_ext piecewise` registers it."""
import argparse
import os
import shlex

from _piecewise import Error, Graph, Session
from IPython.core.error import UsageError
from IPython.display import display

from . import colours
from .counting import counted

NAME = "cell.pwr"  # name of the cell in messages


class CellError(Exception):
    """An error in a cell that was already displayed; nothing of the cell ran."""

    def _render_traceback_(self):
        return [f"{type(self).__name__}: {self}"]


class Shown:
    """A text that is highlighted in a notebook and plain in a terminal."""

    def __init__(self, text, html):
        self.text, self.html = text, html

    def __repr__(self):
        return self.text

    def _repr_html_(self):
        return self.html


def shown_message(text):
    """Returns diagnostics as highlighted text."""
    return Shown(text, colours.message_html(text))


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        raise UsageError(f"{message}\n{self.format_usage()}")


def _parser():
    parser = _Parser("%%pwr", description="Checks a cell of rules; with a graph, runs them on it and shows what each pass changed.", add_help=False)
    parser.add_argument("graph", nargs="?", help="a variable that holds a Graph, or a file; without it the rules are only checked")
    parser.add_argument("-p", "--pipeline", help="a pipeline, pass or rule of the cell; default: the cell's pipeline, or else all of its rules")
    parser.add_argument("-D", dest="params", action="append", default=[], metavar="NAME=VALUE", help="a param of the rules")
    parser.add_argument("-o", "--output", metavar="NAME", help="a variable for the Run, or for the Rules if there is no graph")
    return parser


def _graph(session, name, variables):
    """Returns the graph that the line names, in the cell's own session."""
    held = variables.get(name)
    if isinstance(held, Graph):
        return session.loads(held.json(), name)
    if held is not None and not os.path.exists(name):
        raise UsageError(f"`{name}` is not a Graph, but a {type(held).__name__}")
    if not os.path.exists(name):
        raise UsageError(f"there is no variable and no file `{name}`")
    return session.load(name)


def _pipeline(session, rules, text, wanted):
    """Returns the rules and the strategy to run; without a pipeline in the cell, each of its rules in turn."""
    if wanted or len(rules.pipelines) == 1:
        return rules, wanted or rules.pipelines[0]
    if rules.pipelines:
        raise UsageError(f"the cell has the pipelines {', '.join(rules.pipelines)}: name one with -p")
    if not rules.names:
        raise UsageError("the cell has no rule to run on the graph")
    walk = f"pipeline all_rules {{ walk {{ {', '.join(rules.names)} }} }}"
    return session.rules_text(f"{text}\n{walk}\n", NAME), "all_rules"


def _show_steps(run, rules):
    """Displays each pass that changed something with a picture, or the reasons if none did."""
    version, idle = 0, []
    for row in run.passes:
        version += not row["skipped"]
        if row["skipped"] or not row["rewrites"]:
            idle.append(row["pass"])
            continue
        print(f"{row['pass']}: {counted(row['rewrites'], 'rewrite')}, {row['nodes_before']} → {counted(row['nodes_after'], 'node')}")
        display(run.step(version))
    if idle:
        print(f"without a change: {', '.join(idle)}")
    if len(idle) == len(run.passes):
        for name in rules.names:
            print(run.graph.session.explain(run.graph, rules, name).rstrip())


def run_cell(shell, line, cell):
    """Runs a `%%pwr` cell; `shell` holds the variables. Displays its results, or stores them under the name in -o."""
    args = _parser().parse_args(shlex.split(line))
    params = dict(param.partition("=")[::2] for param in args.params)
    session = Session()  # separate for each run of the cell, so that an op may be redefined
    try:
        rules = session.rules_text(cell, NAME)
        if rules.warnings:
            display(shown_message(rules.warnings))
        if args.graph is None:
            print(f"{counted(len(rules.names), 'rule')}, {counted(len(rules.pipelines), 'pipeline')}: no mistake")
            done = rules
        else:
            rules, pipeline = _pipeline(session, rules, cell, args.pipeline)
            done = session.run(_graph(session, args.graph, shell.user_ns), rules, pipeline, params)
            _show_steps(done, rules)
    except Error as error:
        display(shown_message(str(error)))
        mistakes = sum(one["severity"] == "error" for one in error.diagnostics)
        raise CellError(counted(mistakes, "mistake") + ", and nothing ran") from None
    if args.output:
        shell.user_ns[args.output] = done


def register(shell):
    """Registers %%pwr with an IPython shell."""

    def pwr(line, cell):
        return run_cell(shell, line, cell)

    pwr.__doc__ = _parser().format_help()
    shell.register_magic_function(pwr, "cell", "pwr")
