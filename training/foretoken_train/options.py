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
                         ("--key-value-heads", "heads of keys and values")):
        parser.add_argument(option, type=above_zero, default=None,
                            help=f"{what}; by default the target's, in proportion to the width")
    parser.add_argument("--head-dim", type=above_zero, default=None,
                        help="width of a head; the target's by default")


def layer_shape(target: Target, arguments: argparse.Namespace, hidden: int) -> LayerShape:
    """The target's as wide as `hidden`, but for what options say."""
    of = target.config

    def proportional(number: int) -> int:
        return max(1, number * hidden // target.hidden)

    heads = arguments.heads or proportional(of["num_attention_heads"])
    shared = proportional(of.get("num_key_value_heads") or of["num_attention_heads"])
    return LayerShape(
        hidden_size=hidden,
        intermediate_size=arguments.intermediate or proportional(of["intermediate_size"]),
        num_attention_heads=heads,
        num_key_value_heads=arguments.key_value_heads or min(heads, shared),
        head_dim=(arguments.head_dim or of.get("head_dim") or
                  target.hidden // of["num_attention_heads"]),
        rms_norm_eps=of.get("rms_norm_eps", 1e-5))
