"""The program `foretoken`, whose own commands read and write what training needs of models."""

import pathlib
import subprocess
from typing import List, Sequence

from .capture import Capture, load_capture
from .failure import Failure
from .json_lines import write_lines
from .target import Target


class Program:
    """Runs commands, each of which ends before the next begins."""

    def __init__(self, path: pathlib.Path):
        self._path = path

    def run(self, *words: object, text: str = "") -> str:
        """What the command writes to its standard output; `text` is its standard input."""
        try:
            ended = subprocess.run([str(self._path), *map(str, words)], input=text, text=True,
                                   capture_output=True, check=False)
        except OSError as error:
            raise Failure(f"--program {self._path} cannot be run: {error.strerror}") from error
        if ended.returncode != 0:
            said = ended.stderr.strip().splitlines() or ["it said nothing"]
            raise Failure(f"{self._path} {words[0]}: {said[-1]}")
        return ended.stdout

    def read_states(self, model: Target, texts: Sequence[Sequence[int]], out: pathlib.Path
                    ) -> Capture:
        """The states of a model along texts of its tokens, by way of files in the folder `out`."""
        out.mkdir(parents=True, exist_ok=True)
        lines = out / "texts.jsonl"
        write_lines(lines, ({"tokens": list(text)} for text in texts))
        self.run("capture", "-m", model.folder, "--given", "--prompts", lines, "--layers", 0,
                 "-o", out)
        return load_capture([out], model)

    def texts_of(self, model: Target, texts: Sequence[Sequence[int]]) -> List[str]:
        """The texts of lists of tokens, in one call: a line that no answer has is put between them.
        Blanks at the ends may be others than the text's own."""
        line = "@=@=@=@"
        between = " ".join(self.run("tokenize", "-m", model.folder, "--no-bos",
                                    text=f"\n{line}\n").split())
        joined = f" {between} ".join(" ".join(map(str, text)) for text in texts)
        pieces = self.run("detokenize", "-m", model.folder, text=joined).split(line)
        if len(pieces) != len(texts):
            raise Failure(f"{len(texts)} answers have the line {line} {len(pieces) - 1} times, "
                          "which was to part them")
        return pieces
