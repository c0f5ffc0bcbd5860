"""Where no sandbox can be made, the message names what to change."""

from __future__ import annotations

from pathlib import Path

from devcluster.userns import advice


def settings(folder: Path, **values: str) -> Path:
    for name, value in values.items():
        file = folder.joinpath(*name.split("__"))
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{value}\n")
    return folder


def test_every_setting_that_forbids_user_namespaces_is_named_with_a_value_that_allows_them(
    tmp_path: Path,
) -> None:
    sysctl = settings(
        tmp_path, user__max_user_namespaces="0", kernel__apparmor_restrict_unprivileged_userns="1"
    )
    assert advice(sysctl) == (
        "run as root, or allow user namespaces: "
        "`sysctl -w user.max_user_namespaces=65536 kernel.apparmor_restrict_unprivileged_userns=0`"
    )


def test_where_the_kernel_allows_them_something_around_it_does_not(tmp_path: Path) -> None:
    sysctl = settings(tmp_path, user__max_user_namespaces="96365", kernel__unprivileged_userns_clone="1")
    assert "--privileged" in advice(sysctl)
