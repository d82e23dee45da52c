"""The documents tell the truth, and no tracked file carries what belongs to one machine."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

from tidegate.policy.decisions import Reason
from tidegate.policy.outcomes import EFFECTS, Outcome
from tidegate.wire.errors import MISTAKES, REFUSALS

ROOT = Path(__file__).resolve().parent.parent
POLICY = ROOT / "src" / "tidegate" / "policy"
DOCS = ROOT / "docs"
MOST_ROWS = 40

ROW = re.compile(r"^\| *(?P<question>[^|]+?) *\| *`(?P<path>[^`|]+)` *\| *`(?P<symbol>[^`|]+)` *\|$", re.MULTILINE)


def names_in(source: str) -> set[str]:
    """What a module defines: ``name`` at its top, ``Class.member`` one level down."""
    found = set()
    for node in ast.parse(source).body:
        for name in _names_of(node):
            found.add(name)
            found |= {f"{name}.{inner}" for part in getattr(node, "body", []) for inner in _names_of(part)}
    return found


def _names_of(node: ast.AST) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def false_rows(text: str, root: Path) -> list[str]:
    """Rows of docs/where.md that name a path or a symbol which does not exist."""
    found = []
    for row in ROW.finditer(text):
        path = root / row["path"]
        if not path.is_file():
            found.append(f"{row['path']} does not exist")
        elif row["symbol"] not in (names_in(path.read_text()) if path.suffix == ".py" else path.read_text()):
            found.append(f"{row['path']} defines no {row['symbol']}")
    return found


def dead_links(path: Path) -> list[str]:
    """Relative Markdown links and pictures whose target does not exist."""
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)|src(?:set)?=\"([^\"]+)\"", path.read_text())
    local = [link or picture for link, picture in targets if "://" not in (link or picture)]
    return [target for target in local if not (path.parent / target).exists()]


REGISTRIES = (r"py" + r"pi\.(?:org|io)", "pythonhosted" + r"\.org", "npm" + r"js\.(?:org|com)")
HOSTS = re.compile(rf"\b(?:{'|'.join(REGISTRIES)})\b")
MACHINE_PATHS = re.compile(r"(?<![\w.~}>])/(?:work|farm|root|home)/")


def local_traces(text: str) -> list[str]:
    """Hosts of package registries and absolute paths of one machine."""
    return [line for line in text.splitlines() if HOSTS.search(line) or MACHINE_PATHS.search(line)]


def tracked_files() -> list[Path]:
    """What git tracks; of an unpacked archive, everything that a checkout would hold."""
    listing = subprocess.run(["git", "ls-files", "-z"], check=False, capture_output=True, text=True, cwd=ROOT)
    if listing.returncode == 0:
        return [path for name in listing.stdout.split("\0") if name and (path := ROOT / name).is_file()]
    folders = ("src", "tests", "docs", "bench", "requirements", "compiled", ".ci")
    return [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]


def code_of(folder: Path) -> str:
    return "\n".join(path.read_text() for path in sorted(folder.rglob("*.py")))


def test_each_check_catches_a_bad_input(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("class Breaker:\n    def allow(self): ...\n    limit = 3\n")
    assert false_rows("| who? | `b.py` | `Breaker` |", tmp_path) == ["b.py does not exist"]
    assert false_rows("| who? | `a.py` | `Broken` |", tmp_path) == ["a.py defines no Broken"]
    assert false_rows("| who? | `a.py` | `Breaker.allow` |\n| limit? | `a.py` | `Breaker.limit` |", tmp_path) == []
    (tmp_path / "page.md").write_text("[gone](gone.md#part) [here](a.py) [out](https://example.org/x)")
    assert dead_links(tmp_path / "page.md") == ["gone.md"]
    assert local_traces("--index-url https://" + "py" + "pi.org/simple")
    assert local_traces("see /ro" + "ot/notes.md")
    assert not local_traces("see docs/work/notes.md and /var/lib/tidegate")


def test_where_md_names_only_what_exists() -> None:
    assert false_rows((DOCS / "where.md").read_text(), ROOT) == []


def test_where_md_stays_short_and_every_row_is_checked() -> None:
    text = (DOCS / "where.md").read_text()
    tables = [[line for line in part.splitlines() if line.startswith("|")][2:] for part in text.split("\n## ")]
    assert [len(rows) for rows in tables if len(rows) > MOST_ROWS] == []
    assert sum(map(len, tables)) == len(ROW.findall(text))


def test_where_md_leads_to_every_policy() -> None:
    text = (DOCS / "where.md").read_text()
    named = {(ROOT / row["path"]) for row in ROW.finditer(text)} | {
        (ROOT / path) for path in re.findall(r"`(src/tidegate/policy/[^`]+)`", text)
    }
    rooms = {path for path in POLICY.rglob("*.py") if path.stem != "__init__"}
    assert sorted(str(room.relative_to(ROOT)) for room in rooms - named) == []


def test_every_link_of_the_documents_leads_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    assert {str(page): dead for page in pages if (dead := dead_links(page))} == {}


def test_every_reason_is_explained_to_operators() -> None:
    page = (DOCS / "reasons.md").read_text()
    assert [reason.value for reason in Reason if f"| `{reason.value}` |" not in page] == []


def test_every_status_stands_beside_its_code() -> None:
    page = (DOCS / "reasons.md").read_text()
    told = {each.value: error.status for each, error in (*REFUSALS.items(), *MISTAKES.items())}
    assert [code for code, status in told.items() if f"| `{code}` | {status} |" not in page] == []


def test_every_reason_is_given_by_some_policy() -> None:
    uses = code_of(POLICY.parent)
    assert [reason.name for reason in Reason if not re.search(rf"\bReason\.{reason.name}\b", uses)] == []


def test_every_outcome_has_a_row_of_effects_and_one_of_words() -> None:
    page = (DOCS / "reasons.md").read_text()
    assert set(EFFECTS) == set(Outcome)
    assert [outcome.value for outcome in Outcome if f"| `{outcome.value}` |" not in page] == []


def test_every_outcome_is_reported_by_some_driver() -> None:
    table = POLICY / "outcomes.py"
    uses = "\n".join(path.read_text() for path in POLICY.parent.rglob("*.py") if path != table)
    assert [outcome.name for outcome in Outcome if not re.search(rf"\bOutcome\.{outcome.name}\b", uses)] == []


def test_tracked_files_carry_nothing_of_one_machine() -> None:
    found = {}
    for path in tracked_files():
        try:
            traces = local_traces(path.read_text())
        except UnicodeDecodeError:
            continue
        if traces:
            found[str(path.relative_to(ROOT))] = traces
    assert found == {}
