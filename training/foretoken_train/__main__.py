"""The command line: foretoken_train DRAFTER --target FOLDER --data FILE.. --out FOLDER."""

import argparse
import sys

from . import eagle3_command
from .failure import Failure


def main() -> int:
    parser = argparse.ArgumentParser(prog="foretoken_train", description=__doc__)
    drafters = parser.add_subparsers(dest="drafter", required=True)
    eagle3 = drafters.add_parser(
        "eagle3", help="one layer over features of three depths",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    eagle3_command.add_arguments(eagle3)
    arguments = parser.parse_args()
    try:
        eagle3_command.run(arguments)
    except Failure as failure:
        print(f"foretoken_train: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
