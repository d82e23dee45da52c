"""The shape of the code, checked: sizes, names, rooms and what may stand in which folder.

Each check is a function from source text to a list of complaints, and each is shown a bad input first.
"""

from __future__ import annotations

import ast
import os
import re
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "tidegate"
TESTS = ROOT / "tests"

MOST_FILE_LINES = 400
MOST_FUNCTION_LINES = 60
MOST_MEDIAN_LINES = 10
MOST_NESTING = 4
MOST_CONSTRUCTOR_ARGUMENTS = 7

VAGUE = {
    "manager", "handler", "helper", "helpers", "util", "utils", "common", "base", "impl", "service", "processor",
    "backend", "misc",
}  # fmt: skip
TERMS_WITH_A_VAGUE_WORD = ("service_class", "service_tier")
"""Words of the glossary and of the OpenAI API."""

TWO_ROOMS = {
    "driver": "the two drivers of Path: gateway and simulator",
    "errors": "exceptions of the package, and errors on the wire",
    "replica": "what placement knows of an engine server, and what stands for one on a virtual clock",
    "settings": "what the data process is told, and the whole configuration",
}
"""Stems that stand in more than one folder, each with its reason. ``config`` and ``cli`` are apart: a section
and a command are named after what they configure or call."""

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.Match)


def python_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def functions(tree: ast.AST) -> Iterator[FunctionNode]:
    return (node for node in ast.walk(tree) if isinstance(node, FunctionNode))


def lines_of(function: FunctionNode) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def words_of(name: str) -> list[str]:
    """``HTTPFetch``, ``retry_after_s`` -> their words in lower case."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def long_functions(source: str) -> list[str]:
    return [
        f"{function.name} has {lines_of(function)} lines"
        for function in functions(ast.parse(source))
        if lines_of(function) > MOST_FUNCTION_LINES
    ]


def depth_of(statements: list[ast.stmt]) -> int:
    return max((_depth(statement) for statement in statements), default=0)


def _depth(node: ast.stmt) -> int:
    if isinstance(node, FunctionNode | ast.ClassDef):
        return 0
    inner = [depth_of(getattr(node, field, [])) for field in ("body", "finalbody")]
    inner += [depth_of(part.body) for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ()))]
    otherwise = getattr(node, "orelse", [])
    is_elif = isinstance(node, ast.If) and len(otherwise) == 1 and isinstance(otherwise[0], ast.If)
    deepest = max(*inner, 0 if is_elif else depth_of(otherwise)) + isinstance(node, BLOCKS)
    return max(deepest, depth_of(otherwise)) if is_elif else deepest


def deep_functions(source: str) -> list[str]:
    return [
        f"{function.name} nests {depth_of(function.body)} deep"
        for function in functions(ast.parse(source))
        if depth_of(function.body) > MOST_NESTING
    ]


def wide_constructors(source: str) -> list[str]:
    found = []
    for function in functions(ast.parse(source)):
        arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        if function.name == "__init__" and len(arguments) - 1 > MOST_CONSTRUCTOR_ARGUMENTS:
            found.append(f"line {function.lineno}: a constructor with {len(arguments) - 1} arguments")
    return found


def vague_names(stem: str, source: str) -> list[str]:
    """File stems and class names with a vague word in them, functions that end in one."""
    found = [f"file {stem}"] if VAGUE & set(words_of(stem)) else []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            words = words_of(node.name)
            if (VAGUE | {"factory"}) & set(words) and "_".join(words) not in TERMS_WITH_A_VAGUE_WORD:
                found.append(f"class {node.name}")
        elif isinstance(node, FunctionNode) and set(words_of(node.name)[-1:]) & (VAGUE | {"factory"}):
            found.append(f"function {node.name}")
    return found


def shared_state(source: str) -> list[str]:
    """``global`` statements, and module-level containers that are not named as constants."""
    tree = ast.parse(source)
    found = [f"line {node.lineno}: global" for node in ast.walk(tree) if isinstance(node, ast.Global)]
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or not _is_container(node.value):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        found += [f"line {node.lineno}: {name}" for name in names if not name.isupper() and name != "__all__"]
    return found


def _is_container(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id in {"dict", "list", "set", "deque", "defaultdict"}
    return isinstance(value, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp)


def sleeps(source: str) -> list[str]:
    """Calls that let real time pass; ``asyncio.sleep(0)`` only yields, and a virtual loop jumps over the rest."""
    virtual = "virtual" in source.lower()
    found = []
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "sleep"):
            continue
        owner = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
        yields = bool(node.args) and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0
        if owner == "time" or (owner == "asyncio" and not yields and not virtual):
            found.append(f"line {node.lineno}: {owner}.sleep")
    return found


EXCUSE = re.compile(r"#\s*(type: ignore\[[\w, -]+\]|noqa: [A-Z]+\d+(, ?[A-Z]+\d+)*|pragma: no (cover|branch))")
BARE_EXCUSE = re.compile(r"#\s*(type: ignore(?!\[)|noqa(?!: [A-Z]))")


def unexplained_excuses(source: str) -> list[str]:
    """Checks that are switched off on a line which does not say why."""
    found = []
    for number, line in enumerate(source.splitlines(), start=1):
        excuse = EXCUSE.search(line)
        if BARE_EXCUSE.search(line) or (excuse and len(line[excuse.end() :].strip(" -:#")) < 8):
            found.append(f"line {number}: {line.strip()}")
    return found


def crowded_rooms(stems: list[str]) -> list[str]:
    return [stem for stem, count in Counter(stems).items() if count > 1 and stem not in TWO_ROOMS]


BAD_FUNCTION = "def f():\n" + "    x = 1\n" * 60
BAD_NESTING = """
def f(a):
    if a:
        for b in a:
            while b:
                with b:
                    if a: pass
"""


def test_each_check_catches_a_bad_input() -> None:
    assert long_functions(BAD_FUNCTION)
    assert deep_functions(BAD_NESTING)
    assert wide_constructors("class C:\n    def __init__(self, a, b, c, d, e, f, *, g, h): ...")
    assert vague_names("utils", "")
    assert vague_names("x", "class BaseLimit: ...")
    assert vague_names("x", "class LimitFactory: ...")
    assert vague_names("x", "def request_handler(): ...")
    assert shared_state("seen = {}")
    assert shared_state("def f():\n    global x\n    x = 1")
    assert sleeps("time.sleep(0)")
    assert sleeps("await_ = asyncio.sleep(0.1)")
    assert unexplained_excuses("x = 1  # type: " + "ignore[x]")
    assert unexplained_excuses("x = 1  # no" + "qa")
    assert crowded_rooms(["breaker", "slots", "breaker"])


def test_no_check_complains_about_good_input() -> None:
    assert not deep_functions("def f(a):\n    if a: pass\n" + "    elif a: pass\n" * 9)
    assert not vague_names("queue", "class ServiceClass: ...\ndef service_class_of(): ...")
    assert not shared_state("EFFECTS = {}\n__all__ = []\nx = 1")
    assert not sleeps("asyncio.sleep(0)")
    assert not unexplained_excuses("x = 1  # type: " + "ignore[x]  # the stub lacks this argument")


def test_files_stay_small_enough_to_read() -> None:
    counted = {path: len(path.read_text().splitlines()) for path in python_files(SOURCE)}
    assert {str(path): lines for path, lines in counted.items() if lines > MOST_FILE_LINES} == {}


@pytest.mark.parametrize(
    "check", [long_functions, deep_functions, wide_constructors, shared_state, unexplained_excuses]
)
def test_every_source_file_passes(check: object) -> None:
    assert callable(check)
    assert {str(path): found for path in python_files(SOURCE) if (found := check(path.read_text()))} == {}


def test_tests_switch_off_no_check_without_a_reason() -> None:
    assert {str(path): found for path in python_files(TESTS) if (found := unexplained_excuses(path.read_text()))} == {}


def test_functions_are_short_on_the_whole() -> None:
    lengths = [lines_of(each) for path in python_files(SOURCE) for each in functions(ast.parse(path.read_text()))]
    assert statistics.median(lengths) <= MOST_MEDIAN_LINES


def test_no_file_class_or_function_has_a_vague_name() -> None:
    found = {str(path): vague_names(path.stem, path.read_text()) for path in python_files(SOURCE)}
    assert {path: names for path, names in found.items() if names} == {}


def test_one_noun_has_one_room() -> None:
    apart = {SOURCE / "config", SOURCE / "cli"}
    rooms = [path.stem for path in python_files(SOURCE) if not apart & set(path.parents) and path.stem != "__init__"]
    assert crowded_rooms(rooms) == []


def test_each_reason_for_two_rooms_is_still_needed() -> None:
    stems = Counter(path.stem for path in python_files(SOURCE) if SOURCE / "config" not in path.parents)
    inside_config = {path.stem for path in python_files(SOURCE / "config")}
    assert [stem for stem in TWO_ROOMS if stems[stem] + (stem in inside_config) < 2] == []


@pytest.mark.parametrize("folder", ["policy", "gateway", "simulate"])
def test_tests_on_virtual_time_do_not_sleep(folder: str) -> None:
    files = python_files(TESTS / folder)
    assert files, f"tests/{folder} is empty"
    assert {str(path): found for path in files if (found := sleeps(path.read_text()))} == {}


LOADED = """
import importlib, pkgutil, sys
sys.path.insert(0, sys.argv[1])
import tidegate.policy
for each in pkgutil.walk_packages(tidegate.policy.__path__, "tidegate.policy."):
    importlib.import_module(each.name)
print(*sorted({name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names)))
"""


def test_the_policy_core_loads_only_the_standard_library() -> None:
    command = [sys.executable, "-I", "-S", "-c", LOADED, str(SOURCE.parent)]
    loaded = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert set(loaded) - {"__main__"} == {"tidegate"}


VIOLATIONS = [
    ("Imports point down the tree", "policy", "import tidegate.gateway"),
    ("Imports point down the tree", "gateway", "import tidegate.cli"),
    ("Imports point down the tree", "engines", "import tidegate.lens"),
    ("Imports point down the tree", "undeclared", ""),
    ("The policy core does no I/O", "policy", "import time"),
    ("The policy core does no I/O", "policy", "import msgspec"),
    ("The public test tools do not know the gateway", "testing", "import tidegate.gateway"),
    ("No cycles between siblings", "engines", "import tidegate.engines.other"),
]


@pytest.mark.parametrize(("contract", "package", "statement"), VIOLATIONS)
def test_an_import_in_the_wrong_direction_breaks_its_contract(
    contract: str, package: str, statement: str, tmp_path: Path
) -> None:
    for name in ("errors", "policy", "gateway", "cli", "engines", "lens", "testing", package):
        (tmp_path / "tidegate" / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / "tidegate" / name / "__init__.py").touch()
    (tmp_path / "tidegate" / "__init__.py").touch()
    (tmp_path / "tidegate" / package / "wrong.py").write_text(statement)
    (tmp_path / "tidegate" / package / "other.py").write_text(f"import tidegate.{package}.wrong")
    linter = Path(sys.executable).with_name("lint-imports")
    command = [str(linter), "--no-logo", "--no-cache", "--config", str(ROOT / "pyproject.toml")]
    unmeasured = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    ended = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path, env=unmeasured)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert re.search(rf"{re.escape(contract)}.* BROKEN", ended.stdout), ended.stdout
