"""Texts whose tokens have been found right or wrong: JSON lines, of people or of `judge-data`.
docs/do/train_a_drafter.md defines them."""

import dataclasses
import pathlib
from typing import Any, List

from .failure import Failure
from .json_lines import read_lines


@dataclasses.dataclass(frozen=True)
class LabelledText:
    """`tokens` up to the last one that is labelled, at least; which of them are, by their places,
    and whether each is right. Texts of one `group` share a beginning and are not parted when some
    are held back."""

    tokens: List[int]
    positions: List[int]
    right: List[bool]
    group: str


def _numbers(line: dict, name: str, where: str) -> List[int]:
    values = line.get(name)
    if not isinstance(values, list) or not values or any(type(value) not in (int, bool)
                                                         for value in values):
        raise Failure(f"{where}: '{name}' is not a list of whole numbers")
    return [int(value) for value in values]


def _label(where: str, line: Any) -> LabelledText:
    if not isinstance(line, dict):
        raise Failure(f"{where} is not a JSON object")
    tokens, positions, labels = (_numbers(line, name, where)
                                 for name in ("tokens", "positions", "labels"))
    if len(positions) != len(labels):
        raise Failure(f"{where} has {len(positions)} positions and {len(labels)} labels: each "
                      "position has one")
    if any(not 0 <= position < len(tokens) for position in positions):
        raise Failure(f"{where}: 'positions' go beyond its {len(tokens)} tokens, counted from 0")
    if any(label not in (0, 1) for label in labels):
        raise Failure(f"{where}: 'labels' are 1 for a token that is right and 0 for a wrong one")
    return LabelledText(tokens, positions, [label == 1 for label in labels],
                        str(line.get("group", where)))


def read_labels(paths: List[pathlib.Path]) -> List[LabelledText]:
    texts = []
    for path in paths:
        try:
            texts += [_label(where, line) for where, line in read_lines(path)]
        except OSError as error:
            raise Failure(f"{path} cannot be read: {error.strerror}; --data are JSON lines, as "
                          "judge-data writes them") from error
    if not texts:
        raise Failure(f"{', '.join(map(str, paths))} has no line")
    return texts
