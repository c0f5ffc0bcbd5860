"""`kubectl kvpool adopt`: what of an existing deployment can be looked at, as manifests."""

import asyncio
import sys
from typing import Final

import click
import yaml

from kvpool.cli.adoption.proposal import Existing, Proposal, propose
from kvpool.cli.cluster_state import list_resource
from kvpool.cli.faults import ExitCode
from kvpool.cli.kubeconfig import Login
from kvpool.cli.options import Format, Options, common_flags
from kvpool.cli.printing import render_document
from kvpool.cli.session import run
from kvpool.cli.views.figures import as_document
from kvpool.cluster.errors import Gone
from kvpool.cluster.reads import Selection
from kvpool.cluster.resources import HTTP_ROUTES, PODS, SERVICES, Obj, Resource
from kvpool.cluster.rest import Rest

_GATEWAYS: Final = Resource("gateway.networking.k8s.io", "v1", "gateways", "Gateway", namespaced=True)


@click.command()
@common_flags
def adopt(options: Options) -> None:
    """Find Mooncake masters, engines and gateways in a namespace; print manifests that only look at them."""

    async def work(rest: Rest, login: Login) -> Existing:
        namespace = options.namespace or login.namespace
        services, pods, gateways, routes = await asyncio.gather(
            *(_list(rest, resource, namespace) for resource in (SERVICES, PODS, _GATEWAYS, HTTP_ROUTES))
        )
        return Existing(namespace, services, pods, gateways, routes)

    existing = run(options, work)
    proposal = propose(existing)
    if options.output is Format.JSON:
        click.echo(render_document(as_document({"proposal": proposal}), Format.JSON))
    else:
        click.echo(_text(proposal, existing.namespace))
    if not proposal.manifests:
        sys.exit(ExitCode.FINDINGS)


async def _list(rest: Rest, resource: Resource, namespace: str) -> list[Obj]:
    try:
        return await list_resource(rest, resource, Selection(namespace=namespace))
    except Gone:  # the Gateway API need not be installed
        return []


def _text(proposal: Proposal, namespace: str) -> str:
    """YAML that can be applied; what was found and what is out of reach stands in comments."""
    lines = [f"# found in namespace {namespace}: {text}" for text in proposal.found]
    lines += [f"# cannot control {text}" for text in proposal.cannot]
    if not proposal.manifests:
        return "\n".join([*lines, f"# nothing in namespace {namespace} that kvpool could look at"])
    return "\n".join([*lines, yaml.safe_dump_all(proposal.manifests, sort_keys=False).rstrip("\n")])
