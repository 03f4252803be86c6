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

# The chart of that title, as its library has it.
CHART = ("Chart.getChart([...document.querySelectorAll('canvas')].find("
         "c => c.getAttribute('aria-label').startsWith('{}')))")


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
        self.wait_for_frames()

    def wait_for_frames(self):
        """A page is told of its media, size and pointer once a frame."""
        self.ask("Runtime.evaluate", awaitPromise=True, expression=(
            "new Promise(done => requestAnimationFrame("
            "() => requestAnimationFrame(done)))"))  # fmt: skip

    def press_tab(self):
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab",
                     windowsVirtualKeyCode=9)  # fmt: skip

    def keep(self, name, data):
        folder = os.environ.get("SCREENSHOTS")
        if folder:
            pathlib.Path(folder, name).write_bytes(data)

    def picture(self, name):
        if os.environ.get("SCREENSHOTS"):
            self.keep(name, base64.b64decode(self.ask(
                "Page.captureScreenshot", captureBeyondViewport=True)["data"]))

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
        cls.prediction = folder / "prediction.html"
        for page, command in (
            (cls.page, ("recommend", "--global-batch", "64")),
            (cls.prediction, ("predict", "--instance", "aws/p4d.24xlarge")),
        ):
            subprocess.run(
                [PROGRAM, command[0], str(folder / "job.yaml"), *command[1:],
                 "--export", str(page)],
                check=True, capture_output=True,
                env={**os.environ, "TRAINFARE_FITS": str(folder / "none")})  # fmt: skip
        cls.browser = Browser(folder)
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.browser.size(1200, 900)
        self.browser.media()
        self.browser.open(self.page)

    def test_nothing_is_fetched_and_nothing_fails(self):
        for page in (self.page, self.prediction):
            self.browser.open(page)
            asked = [e["params"]["request"]["url"] for e in self.browser.events
                     if e["method"] == "Network.requestWillBeSent"]  # fmt: skip
            self.assertEqual(asked, [page.as_uri()])
            wrong = [e for e in self.browser.events
                     if e["method"] in ("Runtime.exceptionThrown", "Log.entryAdded",
                                        "Runtime.consoleAPICalled")]  # fmt: skip
            self.assertEqual(wrong, [])
            self.assertLess(page.stat().st_size, 1_000_000)
            self.browser.picture(f"{page.stem}.png")

    def test_foreign_text_stays_text(self):
        self.assertIsNone(self.browser.value("window.hit"))
        self.assertIn(TITLE, self.browser.value("document.body.innerText"))
        self.assertIn(TITLE, self.browser.value("document.title"))

    def test_each_chart_has_a_name_and_its_figures_as_a_table(self):
        self.check_charts(
            "the best candidates, with their 80 % intervals", "cost against time",
            "where a step goes", "roofline",
            "memory of one device against its capacity", "what the answer hangs on")
        self.browser.open(self.prediction)
        self.check_charts(
            "where a step goes", "roofline",
            "memory of one device against its capacity", "scaling over devices",
            "what the answer hangs on")

    def check_charts(self, *titles):
        charts = self.browser.value(
            "[...document.querySelectorAll('canvas')].map(c => ({"
            "role: c.getAttribute('role'), name: c.getAttribute('aria-label'),"
            "title: c.closest('section').querySelector('h2').innerText,"
            "rows: c.closest('section').querySelectorAll('.twin tbody tr').length,"
            "open: c.closest('section').querySelector('.twin').open,"
            "shown: c.clientHeight > 100 && Chart.getChart(c) !== undefined}))")  # fmt: skip
        self.assertEqual(
            tuple(chart["title"].split(":")[0] for chart in charts), titles)
        for chart in charts:
            self.assertEqual(chart["role"], "img")
            self.assertTrue(chart["name"].startswith(chart["title"] + ": "))
            self.assertGreater(chart["rows"], 1)
            self.assertTrue(chart["shown"])
            self.assertFalse(chart["open"])

    def test_without_scripts_the_tables_are_open(self):
        self.browser.ask("Emulation.setScriptExecutionDisabled", value=True)
        self.addCleanup(
            self.browser.ask, "Emulation.setScriptExecutionDisabled", value=False)  # fmt: skip
        self.browser.open(self.page)
        self.assertEqual(
            self.browser.value(
                "[document.querySelectorAll('.chart').length,"
                " document.querySelectorAll('.chart:not([hidden])').length,"
                " document.querySelectorAll('.twin:not([open])').length]"),
            [6, 0, 0])  # fmt: skip

    def test_nothing_runs_but_what_the_page_was_written_with(self):
        self.assertIsNone(self.browser.value(
            "(() => { const s = document.createElement('script');"
            "s.textContent = 'window.hit = 2'; document.body.append(s);"
            "return window.hit })()"))  # fmt: skip
        self.assertTrue(any(
            e["method"] == "Log.entryAdded"
            and "Content Security Policy" in e["params"]["entry"]["text"]
            for e in self.browser.events))  # fmt: skip

    def test_a_pointer_learns_what_a_point_is(self):
        chart = CHART.format("cost against time")
        place = self.browser.value(
            f"(() => {{ const c = {chart};"
            "const p = c.getDatasetMeta(0).data[0];"
            "c.canvas.scrollIntoView({block: 'center'});"
            "const box = c.canvas.getBoundingClientRect();"
            "return {x: box.x + p.x, y: box.y + p.y,"
            " name: c.data.datasets[0].data[0].name}})()")  # fmt: skip
        self.browser.ask("Input.dispatchMouseEvent", type="mouseMoved",
                         x=place["x"], y=place["y"])  # fmt: skip
        self.browser.wait_for_frames()
        said = self.browser.value(
            f"[{chart}.tooltip.title, {chart}.tooltip.beforeBody].flat()")
        self.assertEqual(said[0], place["name"])
        self.assertRegex(said[1], r"^run: \d+\.\d+ min$")
        self.assertRegex(said[2], r"^cost: \$\d+\.\d+$")
        self.assertEqual(len(said), 3)
        self.assertIn(place["name"].rsplit(" x ", 1)[0],
                      self.browser.value("document.title"))  # fmt: skip

    def test_the_chosen_differs_by_more_than_its_colour(self):
        sets = self.browser.value(
            f"{CHART.format('cost against time')}.data.datasets"
            ".map(d => [d.role, d.pointStyle, d.backgroundColor])")  # fmt: skip
        self.assertEqual([role for role, _, _ in sets], ["chosen", "dot", "line"])
        for at in (1, 2):
            self.assertEqual(len({values[at] for values in sets}), 3)

    def test_a_telephone_scrolls_down_only(self):
        for width in (400, 800, 1200):
            self.browser.size(width, 800)
            self.browser.open(self.page)
            self.assertLessEqual(
                self.browser.value("document.documentElement.scrollWidth"), width)
            # Names of bars leave room for the bars.
            plots = self.browser.value(
                "[...document.querySelectorAll('canvas')].map(c => {"
                "const a = Chart.getChart(c).chartArea;"
                "return [a.right - a.left, a.bottom - a.top]})")  # fmt: skip
            for across, down in plots:
                self.assertGreater(across, 0.45 * (width if width < 800 else 800))
                self.assertGreater(down, 60)
            self.browser.picture(f"{width}.png")

    def test_a_window_may_change_its_width(self):
        self.browser.size(400, 800)
        width = "document.querySelector('canvas').clientWidth"
        self.browser.wait_for_frames()
        self.assertLess(self.browser.value(width), 400)

    def ink(self):
        return self.browser.value(
            f"{CHART.format('cost against time')}.options.scales.x.ticks.color")

    def test_light_dark_and_paper(self):
        paper = "getComputedStyle(document.body).backgroundColor"
        light, light_ink = self.browser.value(paper), self.ink()
        self.browser.media(scheme="dark")
        self.browser.picture("dark.png")
        self.assertNotEqual(self.browser.value(paper), light)
        self.assertNotEqual(self.ink(), light_ink)
        self.browser.media(medium="print", scheme="dark")
        self.assertEqual(self.browser.value(paper), "rgb(255, 255, 255)")
        self.browser.media(scheme="dark")
        # What is drawn at the moment of printing, by listeners behind the page's.
        self.browser.value(
            "addEventListener('beforeprint', () => { window.printed ="
            f" {CHART.format('cost against time')}.options.scales.x.ticks.color;"
            " window.widest = Math.max(...[...document.querySelectorAll('canvas')]"
            ".map(c => c.clientWidth)) })")  # fmt: skip
        pdf = base64.b64decode(self.browser.ask("Page.printToPDF")["data"])
        self.assertTrue(pdf.startswith(b"%PDF"))
        self.assertGreater(pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page/"), 1)
        self.browser.keep("report.pdf", pdf)
        self.assertEqual(self.browser.value("window.printed"), light_ink)
        self.assertLess(self.browser.value("window.widest"), 720)
        self.assertNotEqual(self.ink(), light_ink)

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
