"""What the real API server makes of every sample manifest."""

from __future__ import annotations

from typing import Any

import pytest

from devcluster.controlplane import ControlPlane
from devcluster.rest import APPLY, Answer, Api
from kvpool.api import KINDS
from kvpool.api.schema import resource_of
from tests.api.placing import create_with_status, placed
from tools.crdgen.samples import BadSample, bad_samples, good_samples

GOOD = good_samples()
BAD = bad_samples()
REFUSED = [sample for sample in BAD if sample.condition is None]
ACCEPTED = [sample for sample in BAD if sample.condition is not None]
STRICT = {"fieldValidation": "Strict", "dryRun": "All"}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_sample_is_accepted_by_create_and_by_apply(
    kvpool_plane: ControlPlane, namespace: str, name: str
) -> None:
    api, manifest = kvpool_plane.admin, placed(GOOD[name], namespace)
    created = _create(api, manifest)
    applied = api.request("PATCH", api.path_of(manifest), manifest, STRICT | {"fieldManager": "test"}, APPLY)
    assert (created.code, applied.code) == (201, 201), f"{created.message}\n{applied.message}"


@pytest.mark.parametrize("name", GOOD)
def test_a_good_sample_survives_the_way_through_its_model_and_back(
    kvpool_plane: ControlPlane, namespace: str, name: str
) -> None:
    stored = _create(kvpool_plane.admin, placed(GOOD[name], namespace)).body
    model = next(kind for kind in KINDS if resource_of(kind).kind == stored["kind"])
    read = model.parse(stored)
    written = placed(GOOD[name], namespace) | {"spec": read.dump()["spec"]}
    read_again = model.parse(_apply(kvpool_plane.admin, written).body)
    assert read_again.dump()["spec"] == read.dump()["spec"]


@pytest.mark.parametrize("sample", REFUSED, ids=lambda sample: sample.name)
def test_a_bad_sample_is_refused_with_its_code_and_message(
    kvpool_plane: ControlPlane, namespace: str, sample: BadSample
) -> None:
    answer = _sent(kvpool_plane.admin, sample, namespace)
    assert answer.code == sample.code, answer.message
    assert sample.message in answer.message


@pytest.mark.parametrize("sample", ACCEPTED, ids=lambda sample: sample.name)
def test_a_sample_that_only_the_operator_can_refuse_is_accepted_by_the_server(
    kvpool_plane: ControlPlane, namespace: str, sample: BadSample
) -> None:
    answer = _create(kvpool_plane.admin, placed(sample.manifest, namespace))
    assert answer.code == 201, answer.message
    assert {sample.before, *sample.beside} - {None} <= set(GOOD)


def test_every_bad_sample_names_one_kind_and_one_case() -> None:
    cases = [(sample.manifest["kind"], sample.case, sample.verb) for sample in BAD]
    assert len(cases) == len(set(cases)) >= 25


def test_a_status_that_people_send_with_a_new_object_is_dropped(
    kvpool_plane: ControlPlane, namespace: str
) -> None:
    lie = placed(GOOD["kvpool-shortest.yaml"], namespace) | {"status": {"nodes": {"bound": 7}}}
    assert "status" not in _create(kvpool_plane.admin, lie).body


def _sent(api: Api, sample: BadSample, namespace: str) -> Answer:
    manifest = placed(sample.manifest, namespace)
    match sample.verb:
        case "create":
            return _create(api, manifest)
        case "apply":
            return _apply(api, manifest)
        case "update":
            assert sample.before is not None
            before = create_with_status(api, placed(GOOD[sample.before], namespace))
            manifest["metadata"] = before["metadata"]
            return api.request("PUT", api.path_of(manifest, sample.subresource), manifest, STRICT)


def _create(api: Api, manifest: dict[str, Any]) -> Answer:
    resource = api.resource(manifest["apiVersion"], manifest["kind"])
    return api.request("POST", resource.path(manifest["metadata"].get("namespace")), manifest, STRICT)


def _apply(api: Api, manifest: dict[str, Any]) -> Answer:
    return api.request("PATCH", api.path_of(manifest), manifest, STRICT | {"fieldManager": "test"}, APPLY)
