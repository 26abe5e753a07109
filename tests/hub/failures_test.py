#!/usr/bin/env python3
"""Models fetched by name from a hub that fails, and by a program that is stopped: failures_test.py
PROGRAM SOURCE_DIRECTORY [TEST]..."""

import random
import signal
import time

import hub_case
from hub_case import HubCase, contents

NAME = "org/gguf"
FILE = "m-Q4_K_M.gguf"
PIECE = 32 << 20  # What is fetched by one request of several.
SMALL = 3 << 20
LARGE = 2 * PIECE + 5_000_003


class FailureCase(HubCase):
    def setUp(self):
        super().setUp()
        self.content = contents(SMALL, 1)
        self.hub.add(NAME, {FILE: self.content})

    def make_large(self):
        self.content = contents(LARGE, 2)
        self.hub.add(NAME, {FILE: self.content})

    def sent(self):
        return self.hub.sent.get(FILE, 0)

    def pull_good(self):
        self.pull(NAME)
        self.assert_cached(NAME, [FILE])


class HubFails(FailureCase):
    def test_connections_that_are_cut_are_gone_on_with(self):
        for stop in (0, 1, 70_001, 1 << 20):
            self.hub.fail(1, lambda handler, content, stop=stop:
                          handler.send_content(content, stop_after=stop))
        self.pull_good()
        # Nothing was fetched twice, but for what was on its way when a connection was cut.
        self.assertLess(self.sent(), SMALL + 4 * (1 << 20))
        begins = [request.headers.get("Range") for request in self.hub.requests[1:]]
        self.assertEqual(begins[:2], [None, None])
        self.assertEqual(len(begins), 5)
        self.assertRegex(begins[-1], rf"\Abytes=\d+-{SMALL - 1}\Z")

    def test_connections_that_stand_still_are_given_up(self):
        self.hub.fail(1, lambda handler, content: handler.send_content(content, stall_after=1 << 20))
        start = time.monotonic()
        self.pull(NAME, HF_HUB_DOWNLOAD_TIMEOUT="2")
        self.assert_cached(NAME, [FILE])
        self.assertLess(time.monotonic() - start, 20)  # The hub stands still for 30.

    def test_statuses_that_pass_are_waited_for(self):
        for status in (500, 502, 503, 504):
            self.hub.fail(1, lambda handler, _, status=status: handler.refuse(status, "", "later"))
            self.pull_good()
            self.model_file().unlink()
        self.hub.fail(1, lambda handler, _: handler.refuse(429, "", "slower",
                                                           headers={"Retry-After": "2"}))
        start = time.monotonic()
        self.pull_good()
        self.assertGreaterEqual(time.monotonic() - start, 2)

    def model_file(self):
        folder = self.model_folder(NAME)
        return next(blob for blob in (folder / "blobs").iterdir())

    def test_a_hub_that_stays_broken_is_given_up_and_gone_on_with_later(self):
        self.hub.fail(1, lambda handler, content: handler.send_content(content, stop_after=1 << 20))
        self.hub.fail(20, lambda handler, _: handler.refuse(500, "", "broken"))
        self.fail_with(1, "failed 6 times: status 500", "pull", NAME)
        self.assert_nothing_usable(NAME)
        self.hub.faults.clear()
        before = self.sent()
        self.pull_good()
        self.assertLess(self.sent() - before, SMALL)

    def test_other_lengths_are_refused(self):
        for said in (SMALL - 1, SMALL + 1):
            self.hub.fail(1, lambda handler, content, said=said:
                          handler.send_content(content[:said], said=said))
            self.refuse(f"says that it has {said} bytes, but the listing says {SMALL}", "pull", NAME)
            self.assert_nothing_usable(NAME)
        self.make_large()
        self.hub.fail(3, lambda handler, content: handler.send_content(content, said_total=7))
        self.refuse(f"says that it has 7 bytes, but the listing says {LARGE}", "pull", NAME)
        self.assert_nothing_usable(NAME)

    def test_other_parts_are_refused(self):
        self.make_large()

        def shifted(handler, content):
            handler.headers.replace_header("Range", "bytes=5-99")
            handler.send_content(content)

        self.hub.fail(1, shifted)
        self.refuse("sent another part than was asked for", "pull", NAME)
        self.assert_nothing_usable(NAME)

    def test_other_contents_are_refused_and_not_kept(self):
        wrong = bytearray(self.content)
        wrong[SMALL // 2] ^= 1
        self.hub.fail(1, lambda handler, _: handler.send_content(bytes(wrong)))
        self.refuse("it is not used", "pull", NAME)
        self.assert_nothing_usable(NAME)
        self.pull_good()
        # Files that are not of LFS have git's hash.
        self.hub.add("org/demo", hub_case.folder_files())
        self.hub.fail(1, lambda handler, content: handler.send_content(b"?" * len(content)),
                      where="/config.json")
        self.refuse("config.json came with the hash", "pull", "org/demo")
        self.assert_nothing_usable("org/demo")

    def test_bad_beginnings_are_fetched_again(self):
        wrong = bytearray(self.content)
        wrong[1000] ^= 1
        self.hub.fail(1, lambda handler, _: handler.send_content(bytes(wrong), stall_after=1 << 20))
        process = self.start("pull", NAME)
        blobs = self.model_folder(NAME) / "blobs"
        # Blocks of 512 bytes that are there.
        self.wait_until(lambda: any(left.stat().st_blocks > 16
                                    for left in blobs.glob("*.incomplete")))
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(30), 1)
        process.stderr.close()
        before = self.sent()
        self.pull_good()
        self.assertGreater(self.sent() - before, SMALL)

    def test_refusals_are_sentences(self):
        self.refuse("has no org/none", "pull", "org/none")
        self.hub.fail(1, lambda handler, _: handler.refuse(404, "EntryNotFound", "gone"))
        self.refuse("(it says: gone)", "pull", NAME)
        self.hub.fail(1, lambda handler, _: handler.refuse(403, "GatedRepo", "ask"))
        self.refuse(f"{NAME} is gated", "pull", NAME)
        self.hub.fail(1, lambda handler, _: handler.refuse(401, "", ""))
        self.refuse("without a token", "pull", NAME)
        self.hub.faults.append(lambda handler: handler.respond(200, b"<html>", {}) or True)
        self.refuse("is no JSON: is that address a hub?", "pull", NAME)
        self.hub.faults[-1] = lambda handler: handler.respond(
            302, b"", {"Location": handler.path}) or True
        self.refuse("redirects", "pull", NAME)
        self.hub.faults[-1] = lambda handler: handler.respond(
            302, b"", {"Location": "file:///etc/passwd"}) or True
        self.refuse("rotocol", "pull", NAME)
        self.assert_nothing_usable(NAME)

    def test_listings_cannot_name_files_elsewhere(self):
        for path in ("../../evil.gguf", "/tmp/evil.gguf", "a/../../evil-Q4_K_M.gguf"):
            self.hub.add("org/evil", {path: b"evil"})
            self.refuse("which cannot be one", "pull", "org/evil")
        self.assertEqual([found for found in self.folder.rglob("*evil*")
                          if "locks" not in str(found)], [])

    def test_parts_are_fetched_at_once_and_put_together(self):
        self.make_large()
        self.hub.redirect = "other"
        self.pull_good()
        ranges = {request.headers.get("Range") for request in self.hub.requests
                  if request.path.startswith("/content/")}
        self.assertEqual(ranges, {f"bytes=0-{PIECE - 1}", f"bytes={PIECE}-{2 * PIECE - 1}",
                                  f"bytes={2 * PIECE}-{LARGE - 1}"})
        self.assertEqual(self.sent(), LARGE)

    def test_a_hub_without_ranges_sends_it_whole(self):
        self.make_large()
        self.hub.ranges = False
        self.hub.fail(6, lambda handler, content: handler.send_content(content, stop_after=1 << 20))
        self.pull_good()


class ProgramIsStopped(FailureCase):
    def stop(self, sent, how):
        """Stops a fetch when the hub has sent so many bytes more; whether it was in time."""
        until = self.sent() + sent
        process = self.start("pull", NAME)
        self.wait_until(lambda: self.sent() >= until or process.poll() is not None)
        process.send_signal(how)
        code = process.wait(30)
        return code, process.stderr.read()

    def test_killed_anywhere_it_goes_on(self):
        self.make_large()
        self.hub.pause = 0.0005
        choose = random.Random(3)
        for _ in range(6):
            code, _ = self.stop(choose.randrange(LARGE // 8), signal.SIGKILL)
            self.assertEqual(code, -signal.SIGKILL)
            self.assert_nothing_usable(NAME)
        self.hub.pause = 0
        self.pull_good()
        # What came before was not fetched again, but for what was on its way.
        self.assertLess(self.sent(), LARGE + 7 * 3 * (4 << 20))

    def test_killed_at_once_it_begins(self):
        for delay in (0, 0.01, 0.02, 0.04, 0.06):
            process = self.start("pull", NAME)
            time.sleep(delay)
            process.kill()
            process.wait(30)
        self.pull_good()

    def test_what_was_left_may_be_damaged(self):
        self.make_large()
        self.hub.pause = 0.0005
        self.assertEqual(self.stop(LARGE // 2, signal.SIGKILL)[0], -signal.SIGKILL)
        left = next((self.model_folder(NAME) / "blobs").glob("*.incomplete"))
        whole = left.read_bytes()
        self.hub.pause = 0
        for damaged in (b"", whole[:LARGE // 3], whole[:-1], whole + b"x",
                        bytes(1000) + whole[1000:], bytes(len(whole))):
            left.write_bytes(damaged)
            self.pull_good()
            next((self.model_folder(NAME) / "blobs").iterdir()).unlink()

    def test_ctrl_c_is_a_sentence(self):
        self.hub.pause = 0.02
        code, said = self.stop(SMALL // 3, signal.SIGINT)
        self.assertEqual(code, 1)
        self.assertEqual(said, f"foretoken: interrupted while fetching {NAME}: what has come stays, "
                               "and the same command goes on from there\n")
        self.assert_nothing_usable(NAME)
        before = self.sent()
        self.hub.pause = 0
        self.pull_good()
        self.assertLess(self.sent() - before, SMALL)

    def test_two_at_once_fetch_once(self):
        self.make_large()
        self.hub.pause = 0.0002
        processes = [self.start("pull", NAME) for _ in range(3)]
        for process in processes:
            self.assertEqual(process.wait(60), 0, process.stderr.read())
        self.assertEqual(len({process.stdout.read() for process in processes}), 1)
        self.assert_cached(NAME, [FILE])
        self.assertEqual(self.sent(), LARGE)

    def test_one_takes_over_from_one_that_is_killed(self):
        self.make_large()
        self.hub.pause = 0.02
        first = self.start("pull", NAME)
        self.wait_until(lambda: self.sent() > LARGE // 8)
        asked = len(self.hub.requests)
        second = self.start("pull", NAME)
        self.wait_until(lambda: len(self.hub.requests) > asked)
        time.sleep(0.5)
        first.kill()
        self.hub.pause = 0
        self.assertEqual(second.wait(60), 0)
        self.assertIn("another process is fetching", second.stderr.read())
        self.assert_cached(NAME, [FILE])


if __name__ == "__main__":
    hub_case.main()
