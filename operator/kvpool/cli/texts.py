"""YAML and JSON as people write them by hand: a key that is given twice is a slip, not two wishes."""

import json
from typing import Any, Final

import yaml

from kvpool.cli.aliases import check_aliases

_JSON: Final = ("{", "[")
_LET_THROUGH: Final = (ValueError, OverflowError, KeyError, AttributeError)


def documents_of(text: str) -> list[object]:
    """Return the documents of a YAML or JSON text.

    Raises:
        yaml.YAMLError: when it is neither, whatever PyYAML itself stumbles over, or gives a key twice, or
            when its aliases stand for too much.
    """
    text = text.removeprefix("\ufeff")
    if text.lstrip().startswith(_JSON):
        try:
            return [json.loads(text, object_pairs_hook=_mapping)]
        except _TwiceError:
            # The reader of YAML says in which lines; tabs, which it does not know, stand between values here.
            text = text.replace("\t", " ")
        except (ValueError, RecursionError):
            pass  # YAML may begin so, too
    return _yaml_documents(text)


class _TwiceError(ValueError):
    """An object of JSON has two fields of one name."""


def _mapping(pairs: list[tuple[str, object]]) -> dict[str, object]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise _TwiceError
    return mapping


class _Loader(yaml.SafeLoader):
    """PyYAML's own takes the last of equal keys, and says nothing."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:  # noqa: ANN401  # its stubs are wrong
        """Compose a mapping; raises YAMLError when a key is in it twice.

        Asked here and not where mappings are made: there, what `<<` merges in stands among a mapping's own.
        """
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        lines: dict[tuple[str, str], int] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                name, line = (key.tag, key.value), key.start_mark.line + 1
                if name in lines:
                    raise yaml.YAMLError(
                        f"{key.value!r} is given twice, in line {lines[name]} and in line {line}: keep one"
                    )
                lines[name] = line
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> object:
        """Make a value; raises YAMLError, with the line, for what PyYAML lets through of Python.

        It does so for 2020-99-99, for !!int x and for !!bool x.
        """
        try:
            return super().construct_object(node, deep)
        except _LET_THROUGH as error:
            line = node.start_mark.line + 1
            raise yaml.YAMLError(f"line {line}: a value is not what its form or tag says: {error}") from None

    def get_node(self) -> yaml.Node | None:
        """Compose the next document; raises YAMLError when its aliases stand for too much."""
        node: yaml.Node | None = super().get_node()
        if node is not None:
            check_aliases(node)
        return node


def _yaml_documents(text: str) -> list[object]:
    try:
        return list(yaml.load_all(text, _Loader))
    except RecursionError:
        raise yaml.YAMLError("it is nested too deeply") from None
    except _LET_THROUGH as error:
        raise yaml.YAMLError(f"a character or a version is none that there is: {error}") from None
