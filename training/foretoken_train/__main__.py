"""The command line: foretoken_train DRAFTER --target FOLDER --data FILE.. --out FOLDER."""

import argparse
import sys

from . import command, online
from .failure import Failure
from .kinds import KINDS


def main() -> int:
    parser = argparse.ArgumentParser(prog="foretoken_train", description=__doc__)
    drafters = parser.add_subparsers(dest="drafter", required=True)
    for kind in KINDS:
        command.add_arguments(kind, drafters.add_parser(
            kind.name, help=kind.help, formatter_class=argparse.ArgumentDefaultsHelpFormatter))
    online.add_arguments(drafters.add_parser(
        "online", help="train a drafter further on what a server decodes, beside it",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter))
    arguments = parser.parse_args()
    try:
        if arguments.drafter == "online":
            online.run(arguments)
            return 0
        command.run(next(kind for kind in KINDS if kind.name == arguments.drafter), arguments)
    except Failure as failure:
        print(f"foretoken_train: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
