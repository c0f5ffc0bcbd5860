"""Which form of the demonstration a machine gets, and what is said about it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # the package ships no types
import pytest

from demo import __main__ as program
from demo import preparing
from demo.forms import NO_KIND, Choice, Form, FormError, Machine, choose
from devcluster import recipe
from devcluster.images import archive
from devcluster.nodes import requirements
from tests.demo.schema import SUMMARY

NO_ROOT = Machine(obstacle="real nodes need root", absent=["runc"], installs=False)
BARE = Machine(absent=["containerd", "runc"], installs=True)


def test_a_machine_that_can_have_real_nodes_gets_them_without_a_word() -> None:
    assert choose("", Machine()) == Choice(Form.NODES)


def test_missing_packages_are_named_and_installed() -> None:
    choice = choose("", BARE)
    assert (choice.form, choice.packages) == (Form.NODES, ["containerd", "runc"])
    assert "installing them: containerd runc" in choice.line


def test_without_root_pods_are_processes_and_the_reason_is_said() -> None:
    choice = choose("", NO_ROOT)
    assert (choice.form, choice.packages) == (Form.PROCESSES, ())
    assert choice.line.startswith("real nodes need root: the demo runs Pods as processes")
    assert NO_KIND not in choice.line


def test_where_kind_would_work_it_is_said_that_it_is_not_supported() -> None:
    assert NO_KIND in choose("", Machine(obstacle="real nodes need root", has_kind=True)).line


def test_packages_that_cannot_be_installed_are_named() -> None:
    machine = Machine(absent=["containerd", "runc"], installs=False)
    assert choose("", machine).form is Form.PROCESSES
    assert "missing here: containerd, runc" in choose("", machine).line


def test_processes_are_had_for_the_asking_whatever_the_machine_can_do() -> None:
    for machine in (Machine(), NO_ROOT, BARE):
        assert choose("processes", machine) == Choice(Form.PROCESSES)


def test_nodes_that_were_asked_for_are_installed_for_as_well() -> None:
    assert choose("nodes", BARE) == choose("", BARE)


@pytest.mark.parametrize("machine", [NO_ROOT, Machine(absent=["runc"])])
def test_strict_takes_no_second_best_but_what_was_asked_for(machine: Machine) -> None:
    with pytest.raises(FormError, match="KVPOOL_STRICT is 1 and takes no second best, but real nodes need"):
        choose("", machine, strict=True)
    assert choose("processes", machine, strict=True) == Choice(Form.PROCESSES)
    assert choose("", Machine(), strict=True) == choose("", Machine())
    assert choose("", BARE, strict=True) == choose("", BARE)


@pytest.mark.parametrize("strict", ["", "1"])
def test_the_variable_makes_the_demo_strict(strict: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparing, "look_at_machine", lambda: NO_ROOT)
    monkeypatch.setenv("DEMO_FORM", "")
    monkeypatch.setenv("KVPOOL_STRICT", strict)
    if strict:
        with pytest.raises(FormError, match="KVPOOL_STRICT is 1"):
            program.chosen()
    else:
        assert program.chosen().form is Form.PROCESSES


@pytest.mark.parametrize(
    ("asked", "machine", "said"),
    [
        ("nodes", NO_ROOT, "DEMO_FORM is nodes, but real nodes need root"),
        ("nodes", Machine(absent=["runc"]), "DEMO_FORM is nodes, but real nodes need programs"),
        ("kind", Machine(has_kind=True), NO_KIND),
        ("podman", Machine(), "DEMO_FORM is 'podman': use one of nodes, processes"),
    ],
)
def test_what_cannot_be_had_is_refused_with_its_reason(asked: str, machine: Machine, said: str) -> None:
    with pytest.raises(FormError, match=said):
        choose(asked, machine)


def test_the_summary_takes_the_names_of_all_forms_and_no_other() -> None:
    schema = SUMMARY["properties"]["form"]
    for form in Form:
        jsonschema.validate(form.name_in_summary, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(Form.NODES.value, schema)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of what would have been built."""
    names: list[str] = []
    monkeypatch.setattr(preparing, "build", lambda part: names.append(part.name))
    monkeypatch.setattr(archive, "archive", lambda: names.append("images"))
    return names


def _images(there: bool) -> Callable[[], Any]:
    def built() -> None:
        if not there:
            raise recipe.NotBuiltError("the images are not built yet")

    return built


def test_the_process_form_builds_no_part_of_a_node(built: list[str]) -> None:
    preparing.build_for(Form.PROCESSES)
    assert built == ["helm", "gateway-api", "control-plane", "traefik"]


def test_the_form_on_nodes_builds_their_parts_and_the_images(
    built: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "built", _images(there=False))
    preparing.build_for(Form.NODES)
    assert built[4:] == ["node", "coredns", "pause", "images"]


def test_images_that_are_there_need_no_programs_to_build_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "absent_packages", lambda: ["runc"])
    monkeypatch.setattr(requirements, "obstacle", lambda: "")
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.delenv(preparing.BASE_VARIABLE, raising=False)
    monkeypatch.setattr(preparing, "_is_debian", lambda: True)
    monkeypatch.setattr(archive, "built", _images(there=True))
    assert preparing.look_at_machine().absent == ["runc"]
    monkeypatch.setattr(archive, "built", _images(there=False))
    assert preparing.look_at_machine().absent == ["runc", "buildah", "debootstrap"]
    monkeypatch.setenv(preparing.BASE_VARIABLE, "python:3.13-slim-bookworm")
    assert preparing.look_at_machine().absent == ["runc", "buildah"]


def test_images_that_cannot_be_made_are_an_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "obstacle", lambda: "")
    monkeypatch.setattr(preparing, "_is_debian", lambda: False)
    monkeypatch.setattr(archive, "built", _images(there=False))
    monkeypatch.delenv(preparing.BASE_VARIABLE, raising=False)
    assert preparing.BASE_VARIABLE in preparing.look_at_machine().obstacle
    monkeypatch.setattr(archive, "built", _images(there=True))
    assert preparing.look_at_machine().obstacle == ""


def test_packages_are_installed_only_after_saying_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said_before: list[str] = []
    monkeypatch.setattr(preparing, "look_at_machine", lambda: BARE)
    monkeypatch.setattr(preparing, "build_for", lambda _: None)
    monkeypatch.setattr(preparing, "install", lambda _: said_before.append(capsys.readouterr().out))
    monkeypatch.setenv("DEMO_FORM", "")  # prepare sets it, and the test puts it back
    program.prepare()
    assert "containerd runc" in said_before[0]
