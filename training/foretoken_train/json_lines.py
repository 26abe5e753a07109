"""Files of JSON lines."""

import json
import pathlib
from typing import Any, Iterable, Iterator, Tuple

from .failure import Failure


def read_lines(path: pathlib.Path) -> Iterator[Tuple[str, Any]]:
    """The place and the value of each line that is not blank. OSError where there is no file, and a
    Failure that names the line where one is no JSON."""
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            yield where, json.loads(line)
        except ValueError as error:
            raise Failure(f"{where} is not JSON: {error}") from error


def write_lines(path: pathlib.Path, values: Iterable[Any]) -> None:
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
