"""A model's own ladder, and rungs that lead nowhere."""

from __future__ import annotations

from pathlib import Path

from tests.config.places import problems_of, settings_of
from tidegate.config.assemble import path_config

TWO = "upstreams: {chat: {replicas: [http://h:1], ladder: %s}, small: {replicas: [http://h:2]}}"


def told(folder: Path, yaml: str) -> list[str]:
    """Problems without their places."""
    return [line.split(" ", 1)[1] for line in problems_of(folder, yaml)]


def test_a_model_differs_in_what_is_given_and_in_nothing_else(tmp_path: Path) -> None:
    own = "{light_model: small, serve_first: true, max_age_s: 60, order: [cache, light_model, error]}"
    yaml = f"{TWO % own}\nladder: {{light_wait_s: 2, answers: {{max_bytes: 1000000}}}}\n"
    config = path_config(settings_of(tmp_path, yaml))
    ladder = config.models.ladders["chat"]
    assert (ladder.light_model, ladder.light_wait_s) == ("small", 2)
    assert (ladder.answers.serve_first, ladder.answers.max_age_s, ladder.answers.max_bytes) == (True, 60, 1000000)
    assert [rung.value for rung in ladder.order] == ["cache", "light_model", "error"]
    assert set(config.models.ladders) == {"chat"}
    assert config.ladder.light_model is None


def test_rungs_lead_to_other_models_that_are_there(tmp_path: Path) -> None:
    yaml = f"{TWO % '{light_model: smal, standby: chat}'}\nladder: {{standby: nowhere}}\n"
    assert told(tmp_path, yaml) == [
        "upstreams.chat.ladder.light_model: there is no upstream 'smal' (did you mean \"small\"?)",
        "upstreams.chat.ladder.standby: leads back to chat itself; name another upstream",
        "ladder.standby: there is no upstream 'nowhere'",
    ]


def test_an_own_ladder_must_make_sense_together_with_the_usual_one(tmp_path: Path) -> None:
    yaml = f"{TWO % '{relieve_after_s: 0.1}'}\n"
    (problem,) = told(tmp_path, yaml)
    assert problem.startswith("upstreams.chat.ladder: ladder needs relieve_after_s >= relieve_until_s")
