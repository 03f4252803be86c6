"""The HTML report in a browser: headless Chromium, driven over its own pipe.

  tests/command_line/browser_test.py PROGRAM [TESTS]   skipped (77) without Chromium
  SCREENSHOTS=FOLDER tests/command_line/browser_test.py PROGRAM   also keeps pictures
"""

import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.abspath(sys.argv[1])
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
TITLE = "<script>window.hit = 1</script> & <b>bold</b>"


class Browser:
    """A page of a headless browser; `events` holds all that it reported."""

    def __init__(self, folder):
        to_browser, self.out = os.pipe()
        self.read, from_browser = os.pipe()

        def give_pipes():  # it reads 3 and writes 4
            reader = os.dup(to_browser)
            writer = os.dup(from_browser)
            os.dup2(reader, 3)
            os.dup2(writer, 4)

        self.process = subprocess.Popen(
            [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu",
             "--disable-background-networking", "--no-first-run",
             f"--user-data-dir={folder}/profile", "--remote-debugging-pipe",
             "about:blank"],
            preexec_fn=give_pipes, close_fds=False,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        self.rest = b""
        self.last = 0
        self.session = None
        self.events = []
        target = self.ask("Target.createTarget", url="about:blank")
        self.session = self.ask("Target.attachToTarget", flatten=True,
                                targetId=target["targetId"])["sessionId"]  # fmt: skip
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def message(self):
        while b"\0" not in self.rest:
            got = os.read(self.read, 1 << 20)
            if not got:
                raise RuntimeError("the browser ended")
            self.rest += got
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def ask(self, method, **params):
        self.last += 1
        asked = {"id": self.last, "method": method, "params": params}
        if self.session:
            asked["sessionId"] = self.session
        os.write(self.out, json.dumps(asked).encode() + b"\0")
        while True:
            got = self.message()
            if got.get("id") == self.last:
                if "error" in got:
                    raise RuntimeError(f"{method}: {got['error']}")
                return got["result"]
            self.events.append(got)

    def open(self, path):
        self.events.clear()
        self.ask("Page.navigate", url=path.as_uri())
        while not any(e["method"] == "Page.loadEventFired" for e in self.events):
            self.events.append(self.message())

    def value(self, expression):
        return self.ask("Runtime.evaluate", expression=expression,
                        returnByValue=True)["result"].get("value")  # fmt: skip

    def size(self, width, height):
        self.ask("Emulation.setDeviceMetricsOverride", width=width,
                 height=height, deviceScaleFactor=1, mobile=width < 500)  # fmt: skip

    def media(self, medium="", scheme="light"):
        self.ask("Emulation.setEmulatedMedia", media=medium, features=[
            {"name": "prefers-color-scheme", "value": scheme}])  # fmt: skip

    def press_tab(self):
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab",
                     windowsVirtualKeyCode=9)  # fmt: skip

    def picture(self, name):
        folder = os.environ.get("SCREENSHOTS")
        if folder:
            data = self.ask("Page.captureScreenshot",
                            captureBeyondViewport=True)["data"]  # fmt: skip
            pathlib.Path(folder, name).write_bytes(base64.b64decode(data))

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.read)
        os.close(self.out)


@unittest.skipUnless(BROWSER, "no Chromium here")
class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        folder = pathlib.Path(cls.folder.name)
        cls.page = folder / "report.html"
        scenario = subprocess.run(
            [PROGRAM, "show", "llama_8b_lora"],
            check=True, capture_output=True, text=True).stdout  # fmt: skip
        titled = "\n".join(
            f"name: {json.dumps(TITLE)}" if line.startswith("name:") else line
            for line in scenario.split("\n"))  # fmt: skip
        (folder / "job.yaml").write_text(titled)
        subprocess.run(
            [PROGRAM, "recommend", str(folder / "job.yaml"), "--global-batch", "64",
             "--export", str(cls.page)],
            check=True, capture_output=True,
            env={**os.environ, "TRAINFARE_FITS": str(folder / "none")})  # fmt: skip
        cls.browser = Browser(folder)
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.browser.size(1200, 900)
        self.browser.media()
        self.browser.open(self.page)

    def test_nothing_is_fetched_and_nothing_fails(self):
        asked = [e["params"]["request"]["url"] for e in self.browser.events
                 if e["method"] == "Network.requestWillBeSent"]  # fmt: skip
        self.assertEqual(asked, [self.page.as_uri()])
        wrong = [e for e in self.browser.events
                 if e["method"] in ("Runtime.exceptionThrown", "Log.entryAdded",
                                    "Runtime.consoleAPICalled")]  # fmt: skip
        self.assertEqual(wrong, [])
        self.assertLess(self.page.stat().st_size, 1_000_000)
        self.browser.picture("wide.png")

    def test_foreign_text_stays_text(self):
        self.assertIsNone(self.browser.value("window.hit"))
        self.assertIn(TITLE, self.browser.value("document.body.innerText"))
        self.assertIn(TITLE, self.browser.value("document.title"))

    def test_a_telephone_scrolls_down_only(self):
        for width in (400, 800, 1200):
            self.browser.size(width, 800)
            self.browser.open(self.page)
            self.assertLessEqual(
                self.browser.value("document.documentElement.scrollWidth"), width)
            # Charts keep the room that their words need.
            narrow = self.browser.value(
                "Math.min(...[...document.querySelectorAll('svg')]"
                ".map(s => s.getBoundingClientRect().width))")  # fmt: skip
            self.assertGreater(narrow, 500)
            self.browser.picture(f"{width}.png")

    def test_light_dark_and_paper(self):
        paper = "getComputedStyle(document.body).backgroundColor"
        light = self.browser.value(paper)
        self.browser.media(scheme="dark")
        self.browser.picture("dark.png")
        self.assertNotEqual(self.browser.value(paper), light)
        self.browser.media(medium="print", scheme="dark")
        self.assertEqual(self.browser.value(paper), "rgb(255, 255, 255)")
        pdf = base64.b64decode(self.browser.ask("Page.printToPDF")["data"])
        self.assertTrue(pdf.startswith(b"%PDF"))
        self.assertGreater(pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page/"), 1)

    def test_all_that_scrolls_is_reached_by_keyboard(self):
        wanted = self.browser.value(
            "[...document.querySelectorAll('*')].filter(e => {"
            "const o = getComputedStyle(e).overflowX;"
            "return (o === 'auto' || o === 'scroll') &&"
            " e.scrollWidth > e.clientWidth}).length")  # fmt: skip
        self.assertGreater(wanted, 0)
        reached = set()
        for _ in range(200):
            self.browser.press_tab()
            place = self.browser.value(
                "[...document.querySelectorAll('*')].indexOf(document.activeElement)")
            if place in reached:
                break
            reached.add(place)
        scrolled = self.browser.value(
            f"{json.dumps(sorted(reached))}.filter(i => {{"
            "const e = document.querySelectorAll('*')[i];"
            "const o = e && getComputedStyle(e).overflowX;"
            "return o === 'auto' || o === 'scroll'}).length")  # fmt: skip
        self.assertGreaterEqual(scrolled, wanted)


if __name__ == "__main__":
    if not BROWSER:
        print("skipped: no Chromium here")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
