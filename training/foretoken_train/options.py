"""Options of the command line that several kinds have."""

import argparse

from .layers import LayerShape
from .target import Target


def above_zero(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def add_layer_options(parser: argparse.ArgumentParser) -> None:
    for option, what in (("--intermediate", "width of the feed-forward layer"),
                         ("--heads", "heads of attention"),
                         ("--key-value-heads", "heads of keys and values"),
                         ("--head-dim", "width of a head")):
        parser.add_argument(option, type=above_zero, default=None,
                            help=f"{what}; the target's by default")


def layer_shape(target: Target, arguments: argparse.Namespace, **changes) -> LayerShape:
    """The target's, but for what options say."""
    of = target.config
    heads = arguments.heads or of["num_attention_heads"]
    return LayerShape(**{
        "hidden_size": target.hidden,
        "intermediate_size": arguments.intermediate or of["intermediate_size"],
        "num_attention_heads": heads,
        "num_key_value_heads": (arguments.key_value_heads or
                                min(heads, of.get("num_key_value_heads") or heads)),
        "head_dim": (arguments.head_dim or of.get("head_dim") or
                     target.hidden // of["num_attention_heads"]),
        "rms_norm_eps": of.get("rms_norm_eps", 1e-5), **changes})
