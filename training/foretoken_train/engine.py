"""What the engine itself makes of a drafter."""

import dataclasses
import json
import pathlib
import subprocess
from typing import List, Sequence

from .failure import Failure


@dataclasses.dataclass(frozen=True)
class EngineFigures:
    """Figures of one set of prompts at one temperature: the tokens that a round emits, and each
    position's chance to be accepted where the ones before were."""

    prompts: str
    temperature: int
    length: float
    rates: List[float]


def measure(program: pathlib.Path, target: pathlib.Path, drafter: str,
            options: Sequence[str]) -> List[EngineFigures]:
    """Runs `bench` in mode sd on its built-in prompts, with those options besides."""
    figures = []
    for temperature in (0, 1):
        command = [program, "bench", "-m", target, "-md", drafter, "--modes", "sd", "--temp",
                   temperature, "--json", "-", *options]
        try:
            ended = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                                   check=False)
        except OSError as error:
            raise Failure(f"--engine {program} cannot be run: {error.strerror}") from error
        if ended.returncode != 0:
            said = ended.stderr.strip().splitlines() or ["it said nothing"]
            raise Failure(f"{program} does not draft with {drafter}: {said[-1]}")
        for prompts in json.loads(ended.stdout)["sets"]:
            mode = prompts["modes"][0]
            figures.append(EngineFigures(prompts["name"], temperature, mode["acceptance_length"],
                                         mode["acceptance_per_position"]))
    return figures
