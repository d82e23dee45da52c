from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.commands import run
from tidegate.cli import main
from tidegate.cli.build import build
from tidegate.cli.main import COMMANDS, commands


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    ended = run(capsys, "--help")
    assert ended.status == 0
    assert [name for name in COMMANDS if f"  {name} " not in ended.out] == []


def test_no_command_is_help_and_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    ended = run(capsys)
    assert ended.status == 2
    assert "Commands:" in ended.out + ended.err


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    ended = run(capsys, "--version")
    assert (ended.status, ended.out.split()[0]) == (0, "tidegate")
    assert ended.out.endswith(f"({build()})\n")


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [(["chek"], "'check'"), (["check", "--jsn"], "--json"), (["explain", "--prompt-token", "3"], "--prompt-tokens")],
)
def test_a_slip_of_the_keyboard_is_answered_with_what_was_meant(
    capsys: pytest.CaptureFixture[str], arguments: list[str], hint: str
) -> None:
    ended = run(capsys, *arguments)
    assert (ended.status, ended.out) == (2, "")
    assert hint in ended.err
    assert "Error: No such" in ended.err


def test_help_imports_no_command_and_no_validator() -> None:
    script = (
        "import sys\n"
        "from tidegate.cli.main import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'pydantic', 'ruamel.yaml', 'uvicorn', 'starlette', 'uvloop', 'msgspec', 'asyncio'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stderr.strip() == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_help_of_its_own(capsys: pytest.CaptureFixture[str], name: str) -> None:
    ended = run(capsys, name, "--help")
    assert ended.status == 0
    assert f"Usage: tidegate {name}" in ended.out


def test_a_command_that_does_not_run_is_not_loaded() -> None:
    assert [each.name for each in commands(["check"]).registered_commands] == list(COMMANDS)
    (other,) = [each for each in commands(["check"]).registered_commands if each.name == "serve"]
    assert other.callback is not None
    assert other.callback() is None


def test_an_early_interrupt_ends_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "commands", interrupted)
    with pytest.raises(SystemExit) as ended:
        main.app(["serve"])
    assert ended.value.code == 130
