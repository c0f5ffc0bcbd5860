"""Which pods a workload runs, asked of the real API server."""

from __future__ import annotations

import pytest

from kvpool.api.pdgroup import WorkloadRef
from kvpool.cluster.errors import Retryable, Terminal
from kvpool.cluster.rest import Rest
from kvpool.cluster.scales import workload_selector
from tests.harness.faultproxy import Answer, FaultProxy


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("", "Deployment"), ("v1", "ConfigMap"), ("", "Odd"), ("no.such/v1", "Deployment")],
)
async def test_what_is_not_there_or_has_no_scale_states_no_selector(
    rest: Rest, namespace: str, api_version: str, kind: str
) -> None:
    ref = WorkloadRef.parse({"apiVersion": api_version, "kind": kind, "name": "absent"})
    assert await workload_selector(rest, namespace, ref) is None


@pytest.mark.parametrize("status", [400, 405, 422])
async def test_a_kind_that_refuses_the_question_states_no_selector(
    through_proxy: Rest, proxy: FaultProxy, namespace: str, status: int
) -> None:
    proxy.inject(Answer(status), path="/scale")
    ref = WorkloadRef.parse({"kind": "Deployment", "name": "decode"})
    assert await workload_selector(through_proxy, namespace, ref) is None


@pytest.mark.parametrize(("status", "error"), [(403, Terminal), (500, Retryable)])
async def test_a_reader_that_gets_no_answer_about_the_workload_is_told_so(
    through_proxy: Rest, proxy: FaultProxy, namespace: str, status: int, error: type[Exception]
) -> None:
    proxy.inject(Answer(status), path="/scale")
    ref = WorkloadRef.parse({"kind": "Deployment", "name": "decode"})
    with pytest.raises(error):
        await workload_selector(through_proxy, namespace, ref)
