#!/usr/bin/env python3
"""Holds the grammars of what pydantic writes for its own types against pydantic itself:
pydantic_types_test.py SCHEMA_CHECK BUILD_FOLDER

A model with a member of each type compiles. A text that the grammar of a type lets through is one
that pydantic reads as that type, and examples of each type are let through. pydantic is installed
in BUILD_FOLDER in a pinned version. Skips (exit code 77) where it cannot be downloaded, unless the
environment has CI=true."""

import datetime
import decimal
import fractions
import ipaddress
import pathlib
import re
import sys
import uuid

SOURCE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(SOURCE.parent))
from python_packages import run_with

run_with(pathlib.Path(sys.argv[2]), SOURCE / "pydantic_requirements.txt")

import pydantic
from pydantic import TypeAdapter
from checking import Comparison

UUID = "0f8fad5b-d9cb-{}69f-a165-70867728950e"
V6 = ["2001:db8::1", "::", "::1", "fe80::1:2", "2001:db8:0:0:0:0:0:1", "::ffff:10.0.0.1"]
NETWORK = ["10.0.0.0/8", "192.168.1.0/24", "10.128.0.0/9", "0.0.0.0/0", "10.1.2.3/32", "10.1.2.3"]
NETWORK_V6 = ["2001:db8::/32", "::/0", "2001:db8::1/128", "2001:db8::1", "fe80::/64"]

# Each type has texts that are let through.
EXAMPLES = {
    uuid.UUID: [UUID.format(4)],
    **{getattr(pydantic, f"UUID{n}"): [UUID.format(n)] for n in (1, 3, 4, 5, 6, 7, 8)},
    ipaddress.IPv4Address: ["10.1.2.3", "255.255.255.255"],
    ipaddress.IPv4Interface: ["10.1.2.3/8", "10.1.2.3"],
    ipaddress.IPv4Network: NETWORK,
    ipaddress.IPv6Address: V6,
    ipaddress.IPv6Interface: ["2001:db8::1/32", "::1"],
    ipaddress.IPv6Network: NETWORK_V6,
    pydantic.IPvAnyAddress: ["10.1.2.3", *V6],
    pydantic.IPvAnyInterface: ["10.1.2.3/8", "2001:db8::1/32", "::1"],
    pydantic.IPvAnyNetwork: NETWORK + NETWORK_V6,
    pydantic.EmailStr: ["ada@example.org"],
    pydantic.NameEmail: ["ada@example.org", "Ada Lovelace <ada@example.org>"],
    pydantic.Base64Bytes: ["", "aGk=", "aGVsbG8h", "+/8="],
    pydantic.Base64UrlBytes: ["aGk=", "-_8="],
    datetime.date: ["2024-02-29"],
    datetime.datetime: ["2024-02-29T12:00:00Z", "2024-02-29T12:00:00.5+01:00"],
    datetime.time: ["12:00:00Z"],
    datetime.timedelta: ["P1DT2H", "PT5M", "P3W"],
    decimal.Decimal: ["1", "-1.50", ".5"],
    fractions.Fraction: ["1/3", "-2", "7/4"],
    pydantic.PositiveInt: [],
    bytes: ["text"],
    pathlib.Path: ["a/b"],
    pydantic.SecretStr: ["secret"],
    str: ["text"],
}

# What a schema says less of than pydantic asks: schemes and hosts, what is past, what lies on the
# disk, what bytes stand for.
WIDER = {
    pydantic.AnyUrl: ["https://example.org/a?b=c#d", "ftp://example.org"],
    pydantic.Base64Str: ["aGk=", "aGVsbG8h"],
    pydantic.Base64UrlStr: ["aGk="],
    pydantic.HttpUrl: ["https://example.org/a"],
    pydantic.WebsocketUrl: ["wss://example.org/a"],
    pydantic.FileUrl: ["file:///etc/hosts"],
    pydantic.RedisDsn: ["redis://localhost:6379/0"],
    pydantic.MySQLDsn: ["mysql://user:secret@localhost:3306/db"],
    pydantic.PostgresDsn: ["postgres://user:secret@localhost:5432/db",
                           "postgresql://a:1,b:2/db?sslmode=require"],
    pydantic.MongoDsn: ["mongodb://a:27017,b:27017/db"],
    pydantic.NatsDsn: ["nats://a:4222"],
    pydantic.PastDate: ["2001-01-01"],
    pydantic.AwareDatetime: ["2024-02-29T12:00:00Z"],
    pydantic.FilePath: ["/etc/hosts"],
    pydantic.DirectoryPath: ["/etc"],
    pydantic.NewPath: ["/nowhere"],
    pydantic.Json: ["[1]"],
    pydantic.ByteSize: ["5 MB"],
    re.Pattern: ["a+"],
}

# What none of the types above lets through, but for those that say nothing of a text.
WRONG = ["no", "10.1.2.3/33", "10.0.0.1/8", "256.1.1.1", "2001:db8::1::", "2001:db8::1/32 ", "aGk",
         "a=bc", "https://", "@example.org", "1/0", "P", "2024-02-30", "25:00:00Z", "1.2.3",
         UUID.format(9), UUID.format(4)[:-1], "Ada <ada>", "://a", "2001:db8::1/129"]


def reads(adapter, text):
    try:
        adapter.validate_python(text)
    except (pydantic.ValidationError, ValueError, ZeroDivisionError):
        return False
    return True


def main():
    every = {**EXAMPLES, **WIDER}
    texts = [*dict.fromkeys(text for own in every.values() for text in own), *WRONG]
    comparison = Comparison(sys.argv[1], texts)
    members = {f"member{i}": (kind, ...) for i, kind in enumerate(every)}
    comparison.compile("all types together",
                       pydantic.create_model("Every", **members).model_json_schema())
    for kind, own in every.items():
        adapter = TypeAdapter(kind)
        comparison.add(kind, adapter.json_schema(), own,
                       lambda text: kind in WIDER or reads(adapter, text))
    comparison.end(least=1000)


if __name__ == "__main__":
    main()
