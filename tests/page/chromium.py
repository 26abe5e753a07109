"""Headless Chromium over the DevTools protocol, through a pair of pipes: no driver, no packages."""

import base64
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time


def find():
    """The browser's program, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class ProtocolError(Exception):
    pass


class Browser:
    """A browser of its own, with a profile that is thrown away."""

    def __init__(self, program):
        self.profile = tempfile.mkdtemp(prefix="foretoken_page.")
        own_read, child_write = os.pipe()
        child_read, own_write = os.pipe()
        command = [program, "--headless=new", "--remote-debugging-pipe", "--no-first-run",
                   "--disable-gpu", "--disable-extensions", "--disable-background-networking",
                   "--disable-component-update", "--hide-scrollbars", "--force-color-profile=srgb",
                   f"--user-data-dir={self.profile}", "about:blank"]
        if os.geteuid() == 0:
            command.insert(1, "--no-sandbox")  # Chromium refuses root otherwise.
        # The protocol's pipes are descriptors 3 and 4 of the browser.
        shell = f"exec \"$@\" 3<&{child_read} 4>&{child_write}"
        self.process = subprocess.Popen(["bash", "-c", shell, "browser", *command],
                                        pass_fds=(child_read, child_write),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(child_read)
        os.close(child_write)
        self.reader = os.fdopen(own_read, "rb", buffering=0)
        self.writer = os.fdopen(own_write, "wb", buffering=0)
        self.buffer = b""
        self.next_id = 0
        self.events = []

    def close(self):
        try:
            self.call("Browser.close")
            self.process.wait(10)
        except (ProtocolError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.reader.close()
        self.writer.close()
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self):
        while b"\0" not in self.buffer:
            data = os.read(self.reader.fileno(), 1 << 20)
            if not data:
                raise ProtocolError("the browser went away")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **parameters):
        """Calls a method of the protocol; events that come meanwhile are kept in `events`."""
        self.next_id += 1
        message = {"id": self.next_id, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        self.writer.write(json.dumps(message).encode() + b"\0")
        while True:
            reply = self.receive()
            if reply.get("id") == message["id"]:
                if "error" in reply:
                    raise ProtocolError(f"{method}: {reply['error']['message']}")
                return reply["result"]
            if "method" in reply:
                self.events.append(reply)


class Tab:
    """One page in a browser context of its own: no storage is shared with other tabs."""

    def __init__(self, browser, width=1280, height=800, dark=False, reduced_motion=False,
                 beside=None):
        """With `beside`, another tab, it shares that one's storage."""
        self.browser = browser
        self.own_context = beside is None
        self.context = (browser.call("Target.createBrowserContext")["browserContextId"]
                        if self.own_context else beside.context)
        target = browser.call("Target.createTarget", url="about:blank",
                              browserContextId=self.context)["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target,
                                    flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.resize(width, height)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion",
             "value": "reduce" if reduced_motion else "no-preference"}])

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def close(self):
        if self.own_context:
            self.browser.call("Target.disposeBrowserContext", browserContextId=self.context)

    def allow_clipboard(self, url):
        """Lets the page of this address read and write the clipboard, without a question."""
        self.browser.call("Browser.grantPermissions", browserContextId=self.context, origin=url,
                          permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])

    def resize(self, width, height, scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=scale, mobile=width < 600)

    def before_load(self, script):
        """Runs a script in every document that is opened, before anything of its own."""
        self.call("Page.addScriptToEvaluateOnNewDocument",
                  source="if (location.protocol === 'http:') { " + script + " }")

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def run(self, expression):
        """The value of a JavaScript expression; a promise is awaited."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True,
                           returnByValue=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise ProtocolError(details.get("exception", {}).get("description", details["text"]))
        return result["result"].get("value")

    def wait(self, expression, seconds=20):
        """Waits until an expression holds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.run(f"Boolean({expression})"):
                return
            time.sleep(0.02)
        raise TimeoutError(f"not so after {seconds} s: {expression}\n{self.problems()}")

    def click(self, selector):
        self.run(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center'}})")
        box = self.run(f"(() => {{ const b = document.querySelector({json.dumps(selector)})"
                       ".getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left",
                      clickCount=1)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def paste(self):
        """Pastes the clipboard where the focus is, as the keys for it do."""
        self.call("Input.dispatchKeyEvent", type="keyDown", key="v", code="KeyV", modifiers=2,
                  windowsVirtualKeyCode=86, commands=["paste"])
        self.call("Input.dispatchKeyEvent", type="keyUp", key="v", code="KeyV", modifiers=2,
                  windowsVirtualKeyCode=86)

    def press(self, key, shift=False):
        codes = {"Enter": 13, "Tab": 9, "Escape": 27, " ": 32, "End": 35, "Home": 36, "ArrowLeft": 37,
                 "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        text = {"Enter": "\r", " ": " "}.get(key)
        common = {"key": key, "windowsVirtualKeyCode": codes[key], "modifiers": 8 if shift else 0,
                  "code": "Space" if key == " " else key}
        self.call("Input.dispatchKeyEvent", type="keyDown", **common, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def own_events(self, method):
        return [event["params"] for event in self.browser.events
                if event.get("sessionId") == self.session and event["method"] == method]

    def requests(self):
        """The address of everything that the page asked for."""
        self.run("0")  # Takes in what has come meanwhile.
        return [event["request"]["url"] for event in self.own_events("Network.requestWillBeSent")]

    def problems(self):
        """Errors and warnings of the console, uncaught exceptions, and reports of the browser."""
        self.run("0")
        said = [" ".join(str(argument.get("value", argument.get("description", "")))
                         for argument in event["args"])
                for event in self.own_events("Runtime.consoleAPICalled")
                if event["type"] in ("error", "warning", "assert")]
        thrown = [event["exceptionDetails"].get("exception", {}).get(
            "description", event["exceptionDetails"]["text"])
            for event in self.own_events("Runtime.exceptionThrown")]
        logged = [f"{event['entry']['level']}: {event['entry']['text']} {event['entry'].get('url', '')}"
                  for event in self.own_events("Log.entryAdded")
                  if event["entry"]["level"] in ("error", "warning")]
        return said + thrown + logged
