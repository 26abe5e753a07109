"""The command line: foretoken_train DRAFTER --target FOLDER --data FILE.. --out FOLDER."""

import argparse
import sys

from . import command, judge, judge_data, online
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
    judge.add_arguments(drafters.add_parser(
        "judge", help="a head that says how right a token is, for --lossy judge",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter))
    judge_data.add_arguments(drafters.add_parser(
        "judge-data", help="what such a head is trained on, without people",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter))
    arguments = parser.parse_args()
    others = {"online": online.run, "judge": judge.run, "judge-data": judge_data.run}
    try:
        if arguments.drafter in others:
            others[arguments.drafter](arguments)
            return 0
        command.run(next(kind for kind in KINDS if kind.name == arguments.drafter), arguments)
    except Failure as failure:
        print(f"foretoken_train: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
