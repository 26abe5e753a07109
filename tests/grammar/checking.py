"""What the tests of JSON Schemas share: the pinned package of an independent validator, whose source
has the JSON Schema Test Suite in it, and the program that says which texts a schema lets through."""

import itertools
import json
import subprocess
import sys

PACKAGE = "jsonschema==4.23.0"
MOST_TEXTS = 5000  # Orders of one instance.


def orders(value):
    """The texts of a value: one for each order of the members of its objects. Numbers are written
    as grammars write them: whole ones without a fraction or an exponent."""
    if isinstance(value, dict):
        members = [[json.dumps(key, ensure_ascii=False) + ":" + text for text in orders(member)]
                   for key, member in value.items()]
        return ["{" + ",".join(chosen) + "}" for order in itertools.permutations(members)
                for chosen in itertools.product(*order)]
    if isinstance(value, list):
        return ["[" + ",".join(chosen) + "]"
                for chosen in itertools.product(*[orders(item) for item in value])]
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e16:
        return [json.dumps(int(value))]
    return [json.dumps(value, ensure_ascii=False)]


class Checker:
    """The program schema_check. An instance counts as let through if some order of its members
    is: a grammar has one order."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def check(self, schema, instances):
        """{"refused": message} or {"accepted": [whether each instance is let through]}."""
        request = {"schema": json.dumps(schema, ensure_ascii=False),
                   "texts": [orders(instance)[:MOST_TEXTS] for instance in instances]}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"the program ended at the schema {request['schema']}")
        return json.loads(line)
