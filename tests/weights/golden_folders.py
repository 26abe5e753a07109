"""The small models of tests/golden/families as tests of weights use them."""

import json
import pathlib
import shutil
import subprocess

import numpy as np

from letter_tokenizer import write_tokenizer

FAMILIES = pathlib.Path(__file__).resolve().parent.parent / "golden" / "families"
# What must be in a folder for GGUF files to say all of it.
SAYABLE = {"mistral": {"sliding_window": None}, "gemma2": {"query_pre_attn_scalar": 16},
           "gemma3": {"query_pre_attn_scalar": 16}}


def make_folder(name, within, **changes):
    """A copy with a tokenizer, and with these changes in its config.json."""
    folder = shutil.copytree(FAMILIES / name, within / name, dirs_exist_ok=True)
    config = {**json.loads((folder / "config.json").read_text()), **changes}
    (folder / "config.json").write_text(json.dumps(config))
    write_tokenizer(folder)
    return folder


def logits_of(program, model, tokens, context=0, adapter="", weights=""):
    """[tokens, vocabulary], by the program model_logits."""
    ran = subprocess.run([program, model, weights, adapter, str(context), *map(str, tokens)],
                         capture_output=True)
    assert ran.returncode == 0, ran.stderr.decode()
    return np.frombuffer(ran.stdout, np.float32).reshape(len(tokens), -1)
