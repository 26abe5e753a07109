"""What kinds have in common whose drafters are heads without a layer."""

import pathlib
from typing import Callable, Optional, TypeVar

from .drafter import Drafter
from .target import read_config

Heads = TypeVar("Heads", bound=Drafter)


def heads_of_folder(folder: pathlib.Path, field: str,
                    make: Callable[[int], Heads]) -> Optional[Heads]:
    """As many new heads as a folder of this package has, by `field` of its config.json; None where
    the folder holds anything else, or heads for another target."""
    config = read_config(folder / "config.json")
    count = config.get(field)
    if not isinstance(count, int) or count < 1:
        return None
    network = make(count)
    # The target is called by where it lies, which may be elsewhere now.
    name = "base_model_name_or_path"
    return network if {**network.config_json(), name: config.get(name)} == config else None
