#!/usr/bin/env python3
"""Models fetched by name into caches that lack something, or that others have prepared, and from
mirrors that say less than a hub: caches_test.py PROGRAM SOURCE_DIRECTORY [TEST]..."""

import os
import shutil
import unittest

import hub_case
from hub_case import HubCase, blob_name, contents, folder_files

NAME = "org/gguf"
FILE = "m-Q4_K_M.gguf"
POOR_FILES = os.environ.get("POOR_FILES_LIBRARY", "")  # Beside the program's other test tools.


class Mirrors(HubCase):
    def setUp(self):
        super().setUp()
        self.files = {FILE: contents(3 << 20, 1), "README.md": b"# A model\n"}
        self.hub.add(NAME, self.files)

    def leave_out(self):
        """`?blobs=true` changes nothing."""
        def fault(handler):
            handler.path = handler.path.replace("?blobs=true", "")
            return False
        self.hub.faults.append(fault)

    def test_sizes_and_hashes_are_asked_for_file_by_file(self):
        self.leave_out()
        for redirect in (None, "same", "other"):
            self.hub.redirect = redirect
            self.pull(NAME)
            self.assert_cached(NAME, [FILE])
            shutil.rmtree(self.cache)
        heads = [request.path for request in self.hub.requests if request.command == "HEAD"]
        self.assertTrue(heads)
        self.assertTrue(all(FILE in path for path in heads), heads)  # What is not fetched is not.

    def test_folders_too(self):
        self.leave_out()
        files = folder_files()
        self.hub.add("org/folder", files)
        path = self.pull("org/folder")
        self.assertEqual((path / "config.json").read_bytes(), files["config.json"])

    def test_what_comes_is_checked_all_the_same(self):
        self.leave_out()
        self.hub.fail(2, lambda handler, content: handler.send_content(
            bytes(len(content)), etag=blob_name(FILE, content)))
        self.refuse("must have", "pull", NAME)
        self.assert_nothing_usable(NAME)

    def test_a_mirror_that_knows_no_hashes_is_refused(self):
        self.leave_out()
        self.hub.fail(100, lambda handler, content: handler.respond(
            200, content, {"ETag": '"5f3a-61"'}))
        self.refuse("cannot be checked", "pull", NAME)


class PlantedLinks(HubCase):
    def test_links_lead_nowhere(self):
        content = contents(3 << 20, 1)
        self.hub.add(NAME, {FILE: content})
        victim = self.folder / "victim"
        victim.write_text("precious")
        blobs = self.model_folder(NAME) / "blobs"
        blobs.mkdir(parents=True)
        (blobs / f"{blob_name(FILE, content)}.foretoken.incomplete").symlink_to(victim)
        self.pull(NAME)
        self.assert_cached(NAME, [FILE])
        self.assertEqual(victim.read_text(), "precious")


@unittest.skipUnless(POOR_FILES, "no library stands before the C library's functions")
class PoorCaches(HubCase):
    def setUp(self):
        super().setUp()
        self.files = {FILE: contents(3 << 20, 1)}
        self.hub.add(NAME, self.files)

    def lacking(self, what):
        return {"LD_PRELOAD": POOR_FILES, "POOR_FILES": what, "POOR_FOLDER": str(self.cache)}

    def test_without_links_a_snapshot_has_the_files_themselves(self):
        path = self.pull(NAME, **self.lacking("links"))
        self.assertFalse(path.is_symlink())
        self.assertEqual(path.read_bytes(), self.files[FILE])
        self.assertEqual(list((self.model_folder(NAME) / "blobs").iterdir()), [])  # Once on disk.
        self.hub.forget_requests()
        self.assertEqual(self.pull(NAME, **self.lacking("links")), path)
        self.assertEqual(self.hub.sent, {})  # It is there.
        self.assertEqual(self.pull(NAME, HF_HUB_OFFLINE="1"), path)

    def test_without_links_a_content_may_have_two_names(self):
        files = folder_files()
        files["generation_config.json"] = files["config.json"]
        self.hub.add("org/folder", files)
        path = self.pull("org/folder", **self.lacking("links"))
        for name in ("config.json", "generation_config.json"):
            self.assertEqual((path / name).read_bytes(), files["config.json"])

    def test_without_locks_it_goes_on(self):
        self.pull(NAME, **self.lacking("locks"))
        self.assert_cached(NAME, [FILE])
        self.succeed("rm", NAME, "--yes", **self.lacking("locks"))
        self.assertFalse(self.model_folder(NAME).exists())

    def test_a_cache_that_is_only_read_and_has_it_all_is_enough(self):
        path = self.pull(NAME)
        shutil.rmtree(self.cache / ".locks")
        for name in (NAME, f"{NAME}:Q4_K_M", f"{NAME}:{FILE}"):
            self.assertEqual(self.pull(name, **self.lacking("writing")), path)

    def test_a_cache_that_is_only_read_and_lacks_something_is_a_sentence(self):
        self.pull(NAME)
        self.hub.repositories[NAME].put({FILE: contents(3 << 20, 2)})
        self.fail_with(1, "Read-only file system", "pull", NAME, **self.lacking("writing"))


if __name__ == "__main__":
    hub_case.main()
