"""A sample whose header cannot be read is refused by name, not skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.crdgen.samples import BadHeaderError, Condition, read_bad_sample

BODY = "kind: KVPool\n"
REFUSED = "# case: A case.\n# verb: create\n# code: 422\n# message: refused\n"
ACCEPTED = "# case: A case.\n# condition: Ready=False reason=Odd\n# message: refused\n"
WRONG = {
    "without header": ("", "must begin with comment lines"),
    "without a code": (REFUSED.replace("# code: 422\n", ""), "the header lacks code"),
    "with an unknown name": (REFUSED + "# colour: red\n", "no place for colour"),
    "with an unknown verb": (REFUSED.replace("create", "replace"), "verb 'replace' is none of"),
    "of an update from nothing": (REFUSED.replace("create", "update"), "`from` names the good sample"),
    "of a create from something": (REFUSED + "# from: kvpool.yaml\n", "`from` names the good sample"),
    "with a number for a message": (
        REFUSED.replace("message: refused", "message: 4096"),
        "message must be text",
    ),
    "with a condition without reason": (ACCEPTED.replace(" reason=Odd", ""), "Type=Status reason=Reason"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_bad_sample_is_refused_when_it_is(case: str, tmp_path: Path) -> None:
    header, message = WRONG[case]
    file = tmp_path / "odd.yaml"
    file.write_text(header + BODY)
    with pytest.raises(BadHeaderError, match=rf"odd\.yaml: .*{message}"):
        read_bad_sample(file)


def test_a_long_value_goes_on_in_an_indented_line(tmp_path: Path) -> None:
    file = tmp_path / "long.yaml"
    file.write_text(REFUSED.replace("message: refused", "message: refused and\n#   never") + BODY)
    assert read_bad_sample(file).message == "refused and never"


def test_a_condition_is_read_with_its_status_and_reason(tmp_path: Path) -> None:
    file = tmp_path / "condition.yaml"
    file.write_text(ACCEPTED + BODY)
    assert read_bad_sample(file).condition == Condition("Ready", "False", "Odd")
