"""The life of a datastore from the outside: build, search, forget, export, expire."""

import fcntl
import json
import pathlib
import struct
import unittest

from command_line import CliTest, foretoken

SECRET = "The dragon hid seven silver spoons below the mill."
TEXTS = ["Once upon a time there was a small dragon. The dragon liked tea.",
         SECRET,
         "Tom had a red ball. He was happy.",
         "Sue said: " + SECRET + " Then she went home."]


class DatastoreTest(CliTest):
    def setUp(self):
        super().setUp()
        self.store = self.folder / "store"
        self.shared = self.store / "shared"
        texts = self.folder / "texts.jsonl"
        texts.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
        self.call("build", texts)

    def call(self, part, *arguments, **options):
        return self.succeed("datastore", part, "-d", self.store, *arguments, **options).stdout

    def refuse_part(self, part, *arguments, saying, store=None):
        self.refuse("datastore", part, "-d", store or self.store, *arguments, saying=saying)

    def search(self, text, *arguments):
        return json.loads(self.call("search", text, "--json", *arguments))

    def documents(self, *arguments):
        return [json.loads(line) for line in self.call("export", *arguments).splitlines()]

    def holds(self, tokens, folder=None):
        """Whether tokens lie in a file, as segments have them or as logs do."""
        wanted = [struct.pack(f"<{len(tokens)}{size}", *tokens) for size in "HI"]
        contents = [path.read_bytes() for path in (folder or self.shared).iterdir()]
        return any(part in content for part in wanted for content in contents)

    def test_search_says_where_a_text_occurs(self):
        found = self.search("dragon")
        self.assertEqual((found["occurrences"], found["documents"], found["of_documents"]),
                         (4, 3, 4))
        self.assertEqual([match["document"] for match in found["matches"]], [1, 2, 4])
        self.assertEqual([match["occurrences"] for match in found["matches"]], [2, 1, 1])
        self.assertIn("small dragon. The dragon liked", found["matches"][0]["around"])
        # Letters count, not tokens: a text may begin and end within some.
        self.assertEqual(self.search("rago")["occurrences"], 4)
        said = self.call("search", "dragon", "-n", 1)
        self.assertIn('"dragon" occurs 4 times, in 3 of 4 documents', said)
        self.assertIn("... and 2 more", said)
        self.assertIn("occurs in none of 4 documents", self.call("search", "unicorn"))
        self.refuse_part("search", "", saying="nothing to look for")
        self.refuse_part("search", "x", "--namespace", "nobody", saying="holds no datastore")

    def test_info_says_what_it_holds(self):
        info = json.loads(self.call("info", "-n", 2, "--json"))[0]
        self.assertEqual(info["documents"], 4)
        self.assertGreater(info["bytes"], info["segments"][0]["bytes"])
        self.assertRegex(info["oldest_day"], r"\A\d{4}-\d\d-\d\d\Z")
        self.assertEqual(info["segments"][0]["newest_day"], info["newest_day"])
        self.assertEqual(info["largest"][0]["document"], 4)
        self.assertEqual([document["document"] for document in info["newest"]], [4, 3])
        self.assertNotIn("largest", json.loads(self.call("info", "--json"))[0])
        self.assertIn("largest\n    document 4", self.call("info", "-n", 1))

    def test_what_is_forgotten_is_in_no_file(self):
        secret = next(document["tokens"] for document in self.documents()
                      if document["text"] == SECRET)
        self.assertTrue(self.holds(secret[2:-2]))
        said = self.call("forget", "--namespace", "shared", "--matching", "seven silver")
        self.assertIn("forgot 2 documents of ", said)
        self.assertIn("2 documents of ", said)
        self.assertFalse(self.holds(secret[2:-2]))
        self.assertEqual(self.search("silver")["occurrences"], 0)
        self.assertEqual([document["text"] for document in self.documents()],
                         [TEXTS[0], TEXTS[2]])
        self.call("verify")
        self.assertIn("nothing was changed",
                      self.call("forget", "--namespace", "shared", "--matching", "seven silver"))

        self.assertIn("forgot 1 document of",
                      self.call("forget", "--namespace", "shared", "--document", 1))
        self.assertEqual([document["text"] for document in self.documents()], [TEXTS[2]])
        self.refuse_part("forget", "--namespace", "shared", "--document", 2,
                         saying="there is no document 2; they are numbered from 1 to 1")
        self.assertIn("the namespace is gone", self.call("forget", "--namespace", "shared", "--all"))
        self.assertFalse(self.shared.exists())

    def test_forget_wants_to_know_what_and_of_whom(self):
        self.refuse_part("forget", "--all", saying="--namespace")
        self.refuse_part("forget", "--namespace", "shared", saying="what is to be forgotten?")
        self.refuse_part("forget", "--namespace", "shared", "--all", "--matching", "x",
                         saying="say one of --all")
        self.refuse_part("forget", "--namespace", "nobody", "--all", saying="holds no datastore")
        self.assertFalse((self.store / "nobody").exists())
        self.refuse_part("forget", "--namespace", "../shared", "--all", saying="namespace must be")
        self.assertEqual(len(self.documents()), 4)

    def test_what_was_learned_is_forgotten_too(self):
        run = ("run", "-n", 32, "--mode", "sssd", "--json", "-p", "Once upon a time,",
               "--datastore", self.store, "--namespace", "alice", "--learn")
        text = json.loads(self.succeed(*run).stdout)["text"]
        alice = self.store / "alice"
        learned = self.documents("--namespace", "alice")
        self.assertEqual(len(learned), 1)
        self.assertIn(text[4:40], learned[0]["text"])
        self.assertTrue(self.holds(learned[0]["tokens"], alice))
        self.assertEqual(self.search(text[4:40], "--namespace", "alice")["occurrences"], 1)
        self.succeed("run", "-n", 8, "-p", "Sue", *run[3:5], *run[8:])  # Stays.
        said = self.call("forget", "--namespace", "alice", "--document", 1)
        self.assertIn("forgot 1 document", said)
        self.assertFalse(self.holds(learned[0]["tokens"], alice))
        self.assertEqual(len(self.documents("--namespace", "alice")), 1)
        self.assertEqual(len(self.documents()), 4)  # The documents of others are as they were.

    def test_a_store_that_another_process_writes_to_is_only_read(self):
        with open(self.shared / "LOCK", "rb+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for arguments in (("forget", "--namespace", "shared", "--all"),
                              ("expire", "--keep-tokens", 1)):
                refused = foretoken("datastore", arguments[0], "-d", self.store, *arguments[1:])
                self.assertEqual(refused.returncode, 1, arguments)
                self.assertIn("another process is writing to this datastore", refused.stderr)
            self.assertEqual(self.search("dragon")["occurrences"], 4)
            self.assertEqual(len(self.documents()), 4)
            self.call("info")

    def test_an_export_is_built_to_the_same_content(self):
        exported = self.folder / "exported.jsonl"
        self.assertIn(" in 4 documents", self.call("export", "-o", exported))
        self.assertEqual([json.loads(line)["text"] for line in exported.read_text().splitlines()],
                         TEXTS)
        again = self.folder / "again"
        self.succeed("datastore", "build", "-d", again, exported)
        self.assertEqual(self.succeed("datastore", "export", "-d", again).stdout,
                         exported.read_text())
        self.assertEqual(self.succeed("datastore", "query", "-d", again, "The dragon").stdout,
                         self.call("query", "The dragon"))
        self.refuse_part("export", "-o", pathlib.Path("/dev/null/x"), saying="/dev/null/x")

    def test_replay_measures_every_source(self):
        streams = self.folder / "streams.jsonl"
        streams.write_text(json.dumps({"text": " ".join([SECRET] * 4)}) + "\n")
        report = json.loads(self.call("replay", streams, "--prompt-tokens", 4, "--lengths", "2,16",
                                      "--json"))
        accepted = {point["source"]: point["accepted_per_step"] for point in report["points"]
                    if point["speculation_length"] == 16}
        self.assertEqual(set(accepted), {"input only", "datastore only", "both (SSSD)",
                                         "prompt lookup", "ANPD", "REST", "trie cache",
                                         "SuffixDecoding"})
        for source, tokens in accepted.items():
            self.assertGreater(tokens, 2, source)
        # SuffixDecoding knows the beginning of the stored text, which sources that see the stream
        # only do not.
        self.assertGreater(accepted["SuffixDecoding"], accepted["ANPD"])

    def test_the_oldest_go(self):
        tokens = [len(document["tokens"]) for document in self.documents()]
        self.assertIn("nothing was changed", self.call("expire", "--older-than", 1))
        self.assertIn("nothing was changed", self.call("expire", "--keep-tokens", sum(tokens)))
        self.assertIn("dropped 2 documents of",
                      self.call("expire", "--keep-tokens", sum(tokens[2:])))
        self.assertEqual([document["text"] for document in self.documents()], TEXTS[2:])
        self.assertIn("dropped 1 document of",
                      self.call("expire", "--keep-tokens", sum(tokens[2:]) - 1,
                                "--older-than", 3))
        self.refuse_part("expire", saying="--older-than DAYS or --keep-tokens N")
        self.refuse_part("expire", "--older-than", -1, saying="--older-than")
        self.assertIn("the namespace is gone", self.call("expire", "--keep-tokens", 0))


if __name__ == "__main__":
    unittest.main()
