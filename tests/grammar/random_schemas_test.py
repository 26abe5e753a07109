#!/usr/bin/env python3
"""Holds the grammars of random JSON Schemas against an independent validator:
random_schemas_test.py SCHEMA_CHECK BUILD_FOLDER [COUNT [SEED]]

Each random instance must be let through by the grammar exactly if the validator finds it valid. The
validator is installed in BUILD_FOLDER in a pinned version. Skips (exit code 77) where it cannot be
downloaded, unless the environment has CI=true."""

import json
import pathlib
import random
import sys

from checking import Checker

SOURCE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(SOURCE.parent))
from python_packages import run_with

INSTANCES = 14  # For each schema.
NAMES = ["a", "b", "ab", "c"]
SCALARS = [None, True, False, 0, 1, 2, 3, -1, 1.5, 2.5, 10, "", "a", "b", "ab", "abc", "x1"]
TYPES = ["object", "array", "string", "integer", "number", "boolean", "null", ["string", "null"],
         ["object", "integer"]]


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def value(self, depth):
        if depth == 0 or self.random.random() < 0.5:
            return self.random.choice(SCALARS)
        if self.random.random() < 0.5:
            return [self.value(depth - 1) for _ in range(self.random.randint(0, 3))]
        return {name: self.value(depth - 1)
                for name in self.random.sample(NAMES, self.random.randint(0, 3))}

    def schema(self, depth):
        if self.random.random() < 0.06:
            return self.random.choice([True, False])
        made = {}

        def maybe(chance, keyword, make):
            if self.random.random() < chance:
                made[keyword] = make()
        choice, count = self.random.choice, self.random.randint
        maybe(0.6, "type", lambda: choice(TYPES))
        maybe(0.08, "minimum", lambda: choice([0, 1, 1.5, -1, 2]))
        maybe(0.08, "maximum", lambda: choice([2, 2.5, 3, 10]))
        maybe(0.04, "exclusiveMinimum", lambda: choice([0, 1, 1.5]))
        maybe(0.04, "exclusiveMaximum", lambda: choice([2, 3]))
        maybe(0.06, "multipleOf", lambda: choice([1, 2, 0.5, 1.5]))
        maybe(0.06, "minLength", lambda: count(0, 2))
        maybe(0.06, "maxLength", lambda: count(0, 3))
        maybe(0.08, "pattern", lambda: choice(["^a", "b$", "^[a-z]+$", "(?!a)x|b", "^.{2}"]))
        maybe(0.06, "const", lambda: self.value(2))
        maybe(0.08, "enum", lambda: [self.value(2) for _ in range(count(1, 4))])
        if depth > 0:
            self.add_structure(made, maybe, lambda: self.schema(depth - 1))
        return made

    def add_structure(self, made, maybe, part):
        choice, count, sample = self.random.choice, self.random.randint, self.random.sample
        maybe(0.25, "properties", lambda: {name: part() for name in sample(NAMES, count(1, 3))})
        maybe(0.15, "required", lambda: sample(NAMES, count(1, 2)))
        maybe(0.12, "additionalProperties", lambda: choice([False, True, part()]))
        maybe(0.06, "patternProperties", lambda: {choice(["^a", "b"]): part()})
        maybe(0.05, "propertyNames", lambda: choice([{"maxLength": 1}, {"enum": ["a", "b"]},
                                                     {"pattern": "^a"}]))
        maybe(0.05, "dependentRequired", lambda: {choice(NAMES): [choice(NAMES)]})
        maybe(0.04, "dependentSchemas", lambda: {choice(NAMES): part()})
        maybe(0.06, "minProperties", lambda: count(0, 2))
        maybe(0.06, "maxProperties", lambda: count(0, 3))
        maybe(0.15, "items", part)
        maybe(0.1, "prefixItems", lambda: [part() for _ in range(count(1, 2))])
        maybe(0.08, "minItems", lambda: count(0, 2))
        maybe(0.08, "maxItems", lambda: count(0, 3))
        maybe(0.08, "contains", part)
        if "contains" in made:
            maybe(0.3, "minContains", lambda: count(0, 2))
            maybe(0.3, "maxContains", lambda: count(0, 2))
        maybe(0.06, "uniqueItems", lambda: True)
        for keyword in ("anyOf", "oneOf", "allOf"):
            maybe(0.1, keyword, lambda: [part() for _ in range(count(1, 3))])
        maybe(0.1, "not", part)
        maybe(0.08, "if", part)
        if "if" in made:
            maybe(0.7, "then", part)
            maybe(0.7, "else", part)


def compare(program, count, seed):
    import jsonschema
    maker = Maker(seed)
    checker = Checker(program)
    checked = valid = refused = 0
    for _ in range(count):
        schema = maker.schema(3)
        instances = [maker.value(3) for _ in range(INSTANCES)]
        validator = jsonschema.Draft202012Validator(schema)
        wanted = [validator.is_valid(instance) for instance in instances]
        answer = checker.check(schema, instances)
        if "refused" in answer:
            refused += 1
            if "no value matches it" not in answer["refused"]:
                continue
            answer["accepted"] = [False] * INSTANCES
        for instance, is_valid, accepted in zip(instances, wanted, answer["accepted"]):
            checked += 1
            valid += is_valid
            if is_valid != accepted:
                sys.exit(f"{json.dumps(instance)} is {'' if is_valid else 'in'}valid, but is "
                         f"{'' if accepted else 'not '}let through by {json.dumps(schema)}")
    print(f"seed {seed}: {checked} instances, {valid} of them valid; {refused} of {count} schemas "
          "refused")
    if checked < count * INSTANCES // 2 or valid < checked // 10:
        sys.exit("too few of the schemas and instances tell anything")


def main():
    program = sys.argv[1]
    run_with(pathlib.Path(sys.argv[2]), SOURCE / "jsonschema_requirements.txt")
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 1500
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    compare(program, count, seed)


if __name__ == "__main__":
    main()
