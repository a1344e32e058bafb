#!/usr/bin/python3
"""The type stubs are complete: _piecewise.pyi names exactly what the extension module exports, with its signatures, and every public function of
piecewise is annotated and documents its result."""
import ast
import inspect
import re
import unittest
from pathlib import Path

import _piecewise
import piecewise as pw

FOLDER = Path(__file__).resolve().parents[2] / "python"
STUB = ast.parse((FOLDER / "_piecewise.pyi").read_text(encoding="utf-8"))
PLAIN = (int, float, str, tuple, type(None))


def public(names):
    return sorted(name for name in names if not name.startswith("_") or name in ("__version__",))


def declared(body):
    """Name → its node in the stub."""
    found = {}
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = node
        elif isinstance(node, ast.AnnAssign):
            found[node.target.id] = node
    return found


def members(kind):
    """Returns the members that a class of the extension module defines, including meaningful dunders."""
    return {name: value for name, value in vars(kind).items() if not name.startswith("_") or name in ("__len__", "__init__")}


def stub_arguments(function):
    given = function.args
    variadic = [given.vararg] if given.vararg else []
    return [argument.arg for argument in given.posonlyargs + given.args + variadic + given.kwonlyargs]


def stub_optional(function):
    given = function.args
    positional = given.posonlyargs + given.args
    out = {argument.arg for argument in positional[len(positional) - len(given.defaults) :]}
    return out | {argument.arg for argument, default in zip(given.kwonlyargs, given.kw_defaults) if default is not None}


def real_arguments(function):
    """(names, optional ones) of a Python function, or of one of the extension module by the first line of its docstring."""
    if inspect.isfunction(function):
        parameters = inspect.signature(function).parameters.values()
        return [p.name for p in parameters], {p.name for p in parameters if p.default is not p.empty}
    text = re.match(r"\w+\((.*)\) -> ", function.__doc__)[1]
    begins = [(found[1], found.end()) for found in re.finditer(r"(?:^|, )(\w+): ", text)]
    ends = [end for _, end in begins[1:]] + [len(text)]
    optional = {name for (name, begin), end in zip(begins, ends) if " = " in text[begin:end]}
    return [name for name, _ in begins], optional


class Stubs(unittest.TestCase):
    def same_function(self, stub, function, where):
        names, optional = real_arguments(function)
        self.assertEqual(stub_arguments(stub), names, where)
        self.assertEqual(stub_optional(stub), optional, where)
        self.assertIsNotNone(stub.returns, f"{where} has a return type")

    def test_names(self):
        self.assertEqual(public(declared(STUB.body)), public(vars(_piecewise)))

    def test_functions(self):
        count = 0
        for name, node in declared(STUB.body).items():
            if isinstance(node, ast.FunctionDef):
                count += 1
                self.same_function(node, getattr(_piecewise, name), name)
        self.assertGreater(count, 20)

    def test_classes(self):
        for name, node in declared(STUB.body).items():
            kind = getattr(_piecewise, name)
            if not isinstance(node, ast.ClassDef) or issubclass(kind, Exception):
                continue
            stubs, real = declared(node.body), members(kind)
            real = {member: value for member, value in real.items() if member != "__init__" or member in stubs}
            self.assertEqual(sorted(stubs), sorted(real), name)
            for member, value in real.items():
                with self.subTest(member=f"{name}.{member}"):
                    self.check_member(stubs[member], value, f"{name}.{member}")

    def check_member(self, stub, value, where):
        if isinstance(value, property):
            self.assertTrue(isinstance(stub, ast.FunctionDef) and [d.id for d in stub.decorator_list] == ["property"], where)
            self.assertTrue(inspect.getdoc(value), f"{where} has no docstring")
            self.assertIsNotNone(stub.returns, where)
        elif not where.endswith(("__len__", "__init__")):
            self.same_function(stub, value, where)
            self.assertTrue(inspect.getdoc(value), f"{where} has no docstring")

    def test_error(self):
        stub = next(node for node in STUB.body if isinstance(node, ast.ClassDef) and node.name == "Error")
        self.assertEqual(sorted(declared(stub.body)), sorted(name for name in vars(_piecewise.Error) if not name.startswith("_")))

    def test_the_package_is_annotated(self):
        self.assertTrue((FOLDER / "piecewise/py.typed").exists())
        for name in pw.__all__:
            value = getattr(pw, name)
            self.assertTrue(isinstance(value, PLAIN) or inspect.getdoc(value), f"{name} has no docstring")
            if inspect.isfunction(value):
                parameters = inspect.signature(value).parameters.values()
                self.assertEqual([p.name for p in parameters if p.annotation is p.empty], [], name)
                self.assertIsNot(inspect.signature(value).return_annotation, inspect.Signature.empty, name)

    def test_docstrings_say_what_is_returned(self):
        for name in pw.commands.__all__:
            if name in ("export", "code_meaning", "format_rules"):  # nothing, or a text
                continue
            messages = inspect.getdoc(getattr(pw, name))
            self.assertRegex(messages, r"Returns|: rows? of|: a row|, as `pwr plan --diff`", name)

    def test_the_comparison_can_fail(self):
        wrong = ast.parse("def doctor(verbose: bool) -> list: ...").body[0]
        with self.assertRaises(AssertionError):
            self.same_function(wrong, _piecewise.doctor, "doctor")


if __name__ == "__main__":
    unittest.main()
