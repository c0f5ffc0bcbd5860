"""Requests against the real API server: credentials, deadlines, and what a broken network becomes."""

from __future__ import annotations

import asyncio
import secrets
import time
from pathlib import Path

import pytest

from devcluster.controlplane import ControlPlane
from kvpool.cluster.errors import Conflict, Gone, Retryable, Terminal, Throttled, Unauthorized
from kvpool.cluster.reads import Selection, find, get, pages
from kvpool.cluster.resources import CONFIG_MAPS, PODS
from kvpool.cluster.rest import Access, RequestRecord, Rest, Verb
from kvpool.cluster.writes import create
from tests.harness.faultproxy import Answer, Break, FaultProxy


def config_map(namespace: str, name: str, **data: str) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": namespace}, "data": data}


async def test_a_created_object_is_read_back_and_the_hook_sees_both_requests(
    rest: Rest, namespace: str, records: list[RequestRecord]
) -> None:
    created = await create(rest, CONFIG_MAPS, config_map(namespace, "one", a="1"), manager="test")
    read = await get(rest, CONFIG_MAPS.at(namespace, "one"))

    assert read == created
    assert [(r.verb, r.resource, r.code) for r in records] == [
        ("create", "configmaps", 201),
        ("get", "configmaps", 200),
    ]
    assert all(0 < r.seconds < 10 for r in records)


async def test_what_does_not_exist_is_gone_and_found_as_none(rest: Rest, namespace: str) -> None:
    with pytest.raises(Gone, match=f"get configmaps {namespace}/nothing: 404 NotFound"):
        await get(rest, CONFIG_MAPS.at(namespace, "nothing"))
    assert await find(rest, CONFIG_MAPS.at(namespace, "nothing")) is None


async def test_an_unknown_field_is_refused_for_good(rest: Rest, namespace: str) -> None:
    with pytest.raises(Terminal, match='unknown field "dta"'):
        await create(rest, CONFIG_MAPS, {**config_map(namespace, "odd"), "dta": {}}, manager="test")


async def test_a_long_list_comes_in_pages_of_one_state(
    rest: Rest, namespace: str, monkeypatch: pytest.MonkeyPatch, records: list[RequestRecord]
) -> None:
    monkeypatch.setattr("kvpool.cluster.reads.PAGE_LIMIT", 2)
    for name in "abcde":
        await create(rest, CONFIG_MAPS, config_map(namespace, name), manager="test")

    found = [page async for page in pages(rest, CONFIG_MAPS, Selection(namespace=namespace))]

    names = [item["metadata"]["name"] for page in found for item in page.items]
    assert names == ["a", "b", "c", "d", "e"]
    assert [len(page.items) for page in found] == [2, 2, 1]
    assert len({page.resource_version for page in found}) == 1
    assert all(item["kind"] == "ConfigMap" for page in found for item in page.items)


async def test_selectors_are_the_servers_work(rest: Rest, namespace: str) -> None:
    for name, colour in (("a", "red"), ("b", "blue")):
        labelled = {"name": name, "namespace": namespace, "labels": {"colour": colour}}
        await create(rest, CONFIG_MAPS, {"metadata": labelled}, manager="test")

    async def names(selection: Selection) -> list[str]:
        found = [page async for page in pages(rest, CONFIG_MAPS, selection)]
        return [item["metadata"]["name"] for page in found for item in page.items]

    assert await names(Selection(namespace, label_selector="colour=red")) == ["a"]
    assert await names(Selection(namespace, field_selector="metadata.name=b")) == ["b"]


async def test_a_rotated_token_file_is_read_again_after_a_401(
    control_plane: ControlPlane,
    proxy: FaultProxy,
    namespace: str,
    tmp_path: Path,
    records: list[RequestRecord],
) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("stale")
    kubeconfig = proxy.kubeconfig(tmp_path / "sa.kubeconfig", token_file=token_file)
    client = await Rest.connect(Access(kubeconfig=kubeconfig), hook=records.append)
    asked = CONFIG_MAPS.at(namespace, "one")
    try:
        with pytest.raises(Unauthorized):
            await get(client, asked)
        assert [r.code for r in records] == [401, 401], "one retry, not more"

        token_file.write_text(control_plane.token(namespace, "default") + "\n")
        with pytest.raises(Terminal):  # known by name now, and allowed nothing
            await get(client, asked)
        assert [r.code for r in records][2:] == [401, 403]
    finally:
        await client.close()


async def test_a_token_file_that_is_missing_for_a_moment_is_a_failure_to_retry(
    proxy: FaultProxy, namespace: str, tmp_path: Path
) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("stale")
    client = await Rest.connect(Access(proxy.kubeconfig(tmp_path / "sa", token_file=token_file)))
    token_file.unlink()
    try:
        with pytest.raises(Retryable, match="credentials cannot be read") as caught:
            await get(client, PODS.at(namespace, "p"))
        assert not caught.value.outcome_unknown
    finally:
        await client.close()


async def test_one_odd_401_costs_one_more_request(
    through_proxy: Rest, proxy: FaultProxy, namespace: str
) -> None:
    proxy.inject(Answer(401), method="POST")
    await create(through_proxy, CONFIG_MAPS, config_map(namespace, "one"), manager="test")
    assert len(proxy.seen("POST", namespace)) == 2


@pytest.mark.parametrize(
    ("status", "kind"), [(409, Conflict), (429, Throttled), (500, Retryable), (503, Retryable), (410, Gone)]
)
async def test_an_answer_of_that_status_is_raised_and_not_retried(
    through_proxy: Rest, proxy: FaultProxy, namespace: str, status: int, kind: type[Exception]
) -> None:
    proxy.inject(Answer(status, retry_after_seconds=9), method="POST")
    with pytest.raises(kind) as caught:
        await create(through_proxy, CONFIG_MAPS, config_map(namespace, "one"), manager="test")
    assert getattr(caught.value, "retry_after_seconds") == 9  # noqa: B009 - `kind` is any of the types
    assert len(proxy.seen("POST", namespace)) == 1


async def test_a_stalled_request_ends_at_its_deadline_with_the_outcome_unknown(
    through_proxy: Rest, proxy: FaultProxy, namespace: str
) -> None:
    proxy.inject(Break.STALL, method="POST")
    started = time.monotonic()
    manifest = config_map(namespace, "one")
    with pytest.raises(Retryable, match=r"no answer within 0\.3 s") as caught:
        await create(through_proxy, CONFIG_MAPS, manifest, manager="test", timeout_seconds=0.3)
    assert time.monotonic() - started < 2
    assert caught.value.outcome_unknown


async def test_a_write_whose_answer_was_lost_says_that_it_may_have_happened(
    through_proxy: Rest, proxy: FaultProxy, namespace: str
) -> None:
    proxy.inject(Break.LOSE_ANSWER, method="POST")
    with pytest.raises(Retryable) as caught:
        await create(through_proxy, CONFIG_MAPS, config_map(namespace, "one"), manager="test")
    assert caught.value.outcome_unknown
    assert await find(through_proxy, CONFIG_MAPS.at(namespace, "one")) is not None


async def test_a_server_that_is_not_there_is_retryable_and_nothing_was_done(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        "{apiVersion: v1, kind: Config, current-context: c, users: [],"
        " clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}],"
        " contexts: [{name: c, context: {cluster: c, user: u}}]}"
    )
    client = await Rest.connect(Access(kubeconfig=kubeconfig))
    try:
        with pytest.raises(Retryable) as caught:
            await create(client, CONFIG_MAPS, config_map("a", "b"), manager="test")
        assert caught.value.status == 0
        assert not caught.value.outcome_unknown
        with pytest.raises(Retryable):
            await get(client, CONFIG_MAPS.at("a", "b"), timeout_seconds=1)
    finally:
        await client.close()


@pytest.fixture
def own_account(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """What a pod finds: its token, the CA and the server's address. Returns the token's file."""
    module = "kubernetes.aio.config.incluster_config"
    token_file = tmp_path / "token"
    token_file.write_text(control_plane.token(namespace, "default"))
    monkeypatch.setattr(f"{module}.SERVICE_TOKEN_FILENAME", str(token_file))
    monkeypatch.setattr(f"{module}.SERVICE_CERT_FILENAME", str(control_plane.credentials.ca_file))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", control_plane.credentials.host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(control_plane.credentials.port))
    return token_file


@pytest.mark.usefixtures("own_account")
async def test_the_pods_own_account_is_used_without_a_kubeconfig(namespace: str) -> None:
    client = await Rest.connect(Access())
    try:
        with pytest.raises(Terminal, match=f"system:serviceaccount:{namespace}:default"):
            await client.request(Verb.LIST, PODS.at())
    finally:
        await client.close()


async def test_another_library_is_told_the_token_as_it_is_now(
    control_plane: ControlPlane, own_account: Path
) -> None:
    client = await Rest.connect(Access())
    try:
        await asyncio.to_thread(own_account.write_text, "rotated\n")
        endpoint = await client.endpoint()
    finally:
        await client.close()
    assert endpoint.token == "rotated"
    assert endpoint.server == control_plane.server
    assert endpoint.ca_path == str(control_plane.credentials.ca_file)
    assert endpoint.certificate_path is None


async def test_another_library_is_told_the_client_certificate_of_a_kubeconfig(rest: Rest) -> None:
    endpoint = await rest.endpoint()
    assert endpoint.token is None
    assert endpoint.certificate_path is not None
    certificate = await asyncio.to_thread(Path(endpoint.certificate_path).read_text)
    assert certificate.startswith("-----BEGIN CERTIFICATE")


async def test_names_are_encoded_and_not_walked(rest: Rest, namespace: str) -> None:
    with pytest.raises((Gone, Terminal)):
        await get(rest, CONFIG_MAPS.at(namespace, f"../../nodes/{secrets.token_hex(2)}"))
