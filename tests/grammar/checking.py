"""What the tests of JSON Schemas share: the program that says which texts a schema lets through."""

import itertools
import json
import subprocess
import sys

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


class Comparison:
    """What the grammars of types' schemas let through, against what the types' library takes."""

    def __init__(self, program, texts):
        self.checker = Checker(program)
        self.texts = texts
        self.types = self.refused = 0
        self.problems = []

    def compile(self, name, schema):
        """Holds only that the schema compiles."""
        self._check(name, schema, [])

    def add(self, name, schema, examples, may):
        """Examples are to be let through, and no text that `may` is not true of."""
        self.types += 1
        for text, let_through in zip(self.texts, self._check(name, schema, self.texts)):
            if text in examples and not let_through:
                self.problems.append(f"{name}: {schema} does not let {text!r} through")
            if let_through and not may(text):
                self.problems.append(f"{name}: {schema} lets {text!r} through")
            self.refused += not let_through

    def _check(self, name, schema, texts):
        answer = self.checker.check(schema, texts)
        if "refused" in answer:
            self.problems.append(f"{name}: {schema}: {answer['refused']}")
        return answer.get("accepted", [])

    def end(self, least):
        """Ends the program, in failure where there were problems, or where fewer than `least` times
        a text was not let through."""
        print(f"{self.types} types with {len(self.texts)} texts each, "
              f"{self.refused} not let through")
        if self.problems:
            sys.exit("\n".join(self.problems))
        if self.refused < least:
            sys.exit("hardly anything was not let through")
