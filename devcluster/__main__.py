"""A cluster for a person.

    python -m devcluster up|down|status
    python -m devcluster shell [COMMAND...]      beside real nodes, which nothing else reaches
    python -m devcluster node ACTION NODE        cut (the power), start, partition, partition-from-api, heal

`DEVCLUSTER` chooses: `go` (the control plane compiled here), `nodes` (the same with real kubelets in
namespaces of their own), `kind`, or `existing` (the current context). Unset: kind where it works, else go.
`NODES=3` asks for that many real nodes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys

from devcluster import background, build, kind, recipe
from devcluster.cache import CHECKOUT
from devcluster.images.archive import archive
from devcluster.kubectl import ClusterError, answers, install_crds, kubectl
from devcluster.nodes import held, requirements
from devcluster.nodes.cgroups import CgroupError
from devcluster.nodes.layout import node_names
from devcluster.process import ProcessError
from devcluster.sandbox import SandboxError
from devcluster.toolchain import BuildError

FOLDER = CHECKOUT / "build" / "devcluster"
KUBECONFIG = FOLDER / "kubeconfig"
PLANE = FOLDER / "plane"
CHOSEN = FOLDER / "kind-of-cluster"
NODES = FOLDER / "nodes"
CHOICES = ("kind", "go", "nodes", "existing")
USUAL_NODES = "3"


def up() -> None:
    """Start (or find) the cluster, install CRDs, and print the export lines on standard output."""
    asked = _choice()
    if _runs():
        running = CHOSEN.read_text()
        if asked not in ("", running):
            raise ClusterError(f"DEVCLUSTER is {asked} but a cluster of kind {running} runs: stop it first")
    else:
        _start(asked)
    print("\n".join(export_lines()))


def export_lines() -> list[str]:
    """What a shell needs for `kubectl get`: the cluster, and our kubectl where there is no other."""
    if held.running(NODES):
        return ["# real nodes are reached from a shell beside them: python -m devcluster shell"]
    lines = [f"export KUBECONFIG={KUBECONFIG}"]
    if shutil.which("kubectl") is None:
        lines.append(f"export PATH=$PATH:{recipe.binary('kubectl').parent}")
    return lines


def down() -> None:
    """End what `up` started; an existing cluster is only forgotten."""
    chosen = CHOSEN.read_text() if CHOSEN.exists() else ""
    background.stop(PLANE)
    held.stop(NODES)
    if chosen == "kind":
        kind.stop()
    if chosen == "existing":
        _say("the existing cluster keeps its CRDs; only our kubeconfig is removed")
    KUBECONFIG.unlink(missing_ok=True)
    CHOSEN.unlink(missing_ok=True)


def status() -> int:
    """Say what runs; exit status 1 when nothing answers."""
    if held.running(NODES):
        print("nodes: ready, `python -m devcluster shell` leads there")
        return 0
    if answers(KUBECONFIG):
        print(f"{CHOSEN.read_text()}: ready, KUBECONFIG={KUBECONFIG}")
        return 0
    print("no cluster answers: `python -m devcluster up` starts one")
    return 1


def _choice() -> str:
    asked = os.environ.get("DEVCLUSTER", "")
    if asked and asked not in CHOICES:
        raise ClusterError(f"DEVCLUSTER is {asked!r}: use one of {', '.join(CHOICES)}")
    if asked not in ("", "nodes") and os.environ.get("NODES"):
        raise ClusterError(f"NODES asks for real nodes and DEVCLUSTER for {asked}: leave one of them out")
    return "nodes" if os.environ.get("NODES") else asked


def _runs() -> bool:
    return held.running(NODES) or answers(KUBECONFIG)


def _start(asked: str) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    build.build(recipe.GATEWAY_API)
    chosen = asked or "kind"
    try:
        _start_as(chosen)
    except ClusterError as error:
        if asked:
            raise
        _say(f"not kind ({error}): using the control plane compiled here")
        chosen = "go"
        _start_as(chosen)
    CHOSEN.write_text(chosen)
    if chosen != "nodes":
        install_crds(KUBECONFIG)


def _start_as(chosen: str) -> None:
    if chosen == "kind":
        kind.start(KUBECONFIG)
    elif chosen == "existing":
        _use_current_context()
    elif chosen == "nodes":
        _start_nodes()
    else:
        build.build(recipe.CONTROL_PLANE)
        started = background.start(PLANE)
        _write_private(started.read_text())


def _start_nodes() -> None:
    try:
        count = len(node_names(int(os.environ.get("NODES") or USUAL_NODES)))
    except ValueError as error:
        raise ClusterError(f"NODES: {error}") from None
    if reason := requirements.missing():
        raise ClusterError(reason)
    for part in (recipe.CONTROL_PLANE, recipe.NODE, recipe.COREDNS, recipe.HELM):
        build.build(part)
    held.start(NODES, count, [archive()])


def _use_current_context() -> None:
    """Copy the current context, after naming it; one that looks like production has to be named twice."""
    try:
        context = kubectl(["config", "current-context"]).strip()
    except ClusterError as error:
        raise ClusterError(
            f"DEVCLUSTER=existing takes kubectl's current context, and there is none ({error}): "
            "choose one with `kubectl config use-context`, or point KUBECONFIG at your cluster"
        ) from None
    if "prod" in context.lower() and os.environ.get("DEVCLUSTER_CONTEXT") != context:
        raise ClusterError(
            f"the current context is {context!r}, which looks like production; CRDs would be installed there."
            f" If you mean it, set DEVCLUSTER_CONTEXT={context}"
        )
    _say(f"using the current context {context!r}")
    _write_private(kubectl(["config", "view", "--minify", "--flatten", "--raw"]))


def _write_private(content: str) -> None:
    KUBECONFIG.unlink(missing_ok=True)
    KUBECONFIG.touch(mode=0o600)
    KUBECONFIG.write_text(content)


def _say(line: str) -> None:
    print(f"devcluster: {line}", file=sys.stderr)


def main() -> int:
    """Exit status 1 with one message when something is not possible."""
    parser = argparse.ArgumentParser(
        prog="python -m devcluster",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", required=True)
    for name in ("up", "down", "status"):
        actions.add_parser(name)
    actions.add_parser("shell").add_argument("command", nargs=argparse.REMAINDER)
    node = actions.add_parser("node")
    node.add_argument("what")
    node.add_argument("node")
    options = parser.parse_args()
    try:
        return _done(options)
    except (ClusterError, BuildError, ProcessError, recipe.NotBuiltError, SandboxError, CgroupError) as error:
        _say(str(error))
        return 1
    except KeyboardInterrupt:
        _say("stopped; `make devcluster-stop` ends what was started")
        return build.STOPPED


def _done(options: argparse.Namespace) -> int:
    if options.action == "status":
        return status()
    if options.action == "shell":
        os.environ["PS1"] = "kvpool nodes \\w $ "
        held.enter(NODES, options.command or ["bash", "--norc", "-i"])
    if options.action == "node":
        held.act(NODES, options.what, options.node)
    elif options.action == "up":
        up()
    else:
        down()
    return 0


if __name__ == "__main__":
    sys.exit(main())
