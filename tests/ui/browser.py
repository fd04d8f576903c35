#!/usr/bin/env python3
"""The page in headless Chromium, live and of a recording: browser.py SMT FOLDER_OF_PROGRAMS [PICTURES]

Eight tenants on 132 simulated multiprocessors. With PICTURES, a folder, screenshots are left there, to be
looked at. Figures of frames are printed: how many there are depends on what else the machine does."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

import chromium
from page import Page
from place import MANAGED, Place, wait_for

SKIPPED = 77
SMS = 132
TENANTS = {   # priority, blocks, microseconds of a block
    "backup": ("low", 40, 20), "chat": ("high", 132, 10), "index": ("low", 264, 10),
    "pricing": ("normal", 66, 20), "render": ("normal", 264, 10), "search": ("high", 64, 20),
    "train-a": ("low", 264, 20), "train-b": ("low", 300, 30)}
ROOM = 120_000   # bytes of shared memory of a block: one fits on a multiprocessor
SIZES = {"wide": (1280, 980), "narrow": (360, 800)}
CONTROLS = {"button", "textbox", "combobox", "checkbox", "slider", "link"}
TABS = 80   # more than there are places to reach
FRAMES_SECONDS = 4

# Of the map's pixels: squares in the first row and column, tenants' colours, and all of it as text.
MAP = """(() => {
  const map = document.getElementById("map"), made = document.createElement("canvas");
  [made.width, made.height] = [map.width, map.height];
  const draw = made.getContext("2d", {willReadFrequently: true});
  draw.drawImage(map, 0, 0);
  const {data} = draw.getImageData(0, 0, made.width, made.height);
  const seen = (x, y) => data[4 * (y * made.width + x) + 3] > 0;
  let columns = 0, rows = 0;
  for (let x = 1; x < made.width; ++x) columns += seen(x - 1, 2) && !seen(x, 2);
  for (let y = 1; y < made.height; ++y) rows += seen(2, y - 1) && !seen(2, y);
  const colours = new Set();
  for (let i = 0; i < data.length; i += 4) {
    const hex = "#" + [0, 1, 2].map(each => data[i + each].toString(16).padStart(2, "0")).join("");
    if (kColours.includes(hex)) colours.add(hex);
  }
  return {columns, rows, colours: [...colours], all: made.toDataURL()};
})()"""

# Texts of less contrast than WCAG asks for, and those that are cut off without a title that has all.
UNREADABLE = """(() => {
  const parts = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(each => each / 255)
    .map(each => each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4)
    .reduce((sum, each, i) => sum + each * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = element => {
    for (let each = element; each; each = each.parentElement) {
      const found = parts(getComputedStyle(each).backgroundColor);
      if (found.length === 3 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement, text = walk.currentNode.textContent.trim();
    if (!text || element.closest(".unseen, .skip, script, :disabled") || !element.getClientRects().length)
      continue;
    const [a, b] = [light(parts(getComputedStyle(element).color)), light(ground(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) found.push(`${text}: contrast ${contrast.toFixed(2)}`);
    for (let each = element; each !== document.body; each = each.parentElement) {
      const style = getComputedStyle(each);
      if (style.overflowX === "hidden" && each.scrollWidth > each.clientWidth + 1 && !each.title &&
          !each.closest("#decisions")) { found.push(`${text}: cut off`); break; }
    }
  }
  for (const each of document.querySelectorAll("input:not([type]), select")) {
    if (each.scrollWidth > each.clientWidth + 1)
      found.push(`${each.ariaLabel || each.id}: ${each.value} cut off`);
  }
  const table = document.querySelector(".scrolls"), {scrollWidth} = document.scrollingElement;
  if (innerWidth >= 1280 && table.scrollWidth > table.clientWidth)
    found.push(`the table of tenants is ${table.scrollWidth} wide in ${table.clientWidth}`);
  if (scrollWidth > innerWidth) found.push(`the page is ${scrollWidth} wide in ${innerWidth}`);
  return found;
})()"""

FOCUS = """(() => {
  const has = document.activeElement, style = getComputedStyle(has);
  return {name: has.ariaLabel || has.id || has.textContent.trim().slice(0, 40), tag: has.tagName,
          seen: has.matches(":focus-visible") && style.outlineStyle !== "none" &&
                parseFloat(style.outlineWidth) >= 2, value: has.value};
})()"""


class Browser(chromium.Chromium):
    def __init__(self, pictures):
        super().__init__(chromium.program())
        self.pictures = pictures

    def open(self, page):
        self.errors.clear()
        self.requests.clear()
        self.call("Page.navigate", url=f"{page.address}/#{page.token}")
        self.wait_for('typeof about === "object" && about !== null && shown !== null')

    def leave(self, page):
        """No error came, and nothing was asked for but what smt ui has."""
        self.call("Page.navigate", url="about:blank")
        assert not self.errors, self.errors
        ours = urllib.parse.urlsplit(page.address).netloc
        foreign = [each for each in self.requests
                   if urllib.parse.urlsplit(each).netloc != ours and each not in ("data:,", "about:blank")]
        assert self.requests and not foreign, foreign

    def picture_of(self, name):
        if self.pictures:
            self.picture(self.pictures / f"{name}.png")

    def tab_to(self, name):
        """By keyboard alone."""
        passed = []
        for _ in range(TABS):
            self.key("Tab")
            has = self.run(FOCUS)
            passed.append(has["name"])
            assert has["seen"] or has["tag"] == "BODY", f"nobody sees that {has} has the focus"
            if has["name"] == name:
                return has
        raise AssertionError(f"{name} is not reached by Tab: {passed}")


def check_map(browser):
    """A square for each multiprocessor, and colours in motion."""
    browser.wait_for(f"(now => now && now.columns * now.rows === {SMS})({MAP})")
    seen, pictures = set(), set()

    def moved():
        now = browser.run(MAP)
        seen.update(now["colours"])
        pictures.add(now["all"])
        return len(seen) >= 4 and len(pictures) >= 3
    wait_for(moved, lambda: f"the map stands still: {seen}, {len(pictures)} pictures")


def check_readable(browser, name):
    for scheme in "light", "dark":
        browser.prefer(color_scheme=scheme)
        for size, pixels in SIZES.items():
            browser.size(*pixels)
            browser.run("new Promise(done => requestAnimationFrame(() => setTimeout(done, 300)))")
            browser.picture_of(f"{name}-{scheme}-{size}")
            found = browser.run(UNREADABLE)
            assert not found, (scheme, size, found)
    browser.prefer(color_scheme="light")
    browser.size(*SIZES["wide"])


def check_spoken(browser, controls):
    """What a screen reader gets: a name of each control, and a text in place of the pictures."""
    nodes = [{"role": each.get("role", {}).get("value"), "name": each.get("name", {}).get("value", ""),
              "text": each.get("description", {}).get("value", "")}
             for each in browser.call("Accessibility.getFullAXTree")["nodes"] if not each["ignored"]]
    named = [each for each in nodes if each["role"] in CONTROLS]
    assert all(each["name"] for each in named), named
    missing = controls - {each["name"] for each in named}
    assert not missing, (missing, named)
    pictures = [each for each in nodes if each["role"] in ("image", "img")]
    assert len(pictures) == 2 and all(each["name"] and f"{SMS} multiprocessors" in each["text"]
                                      for each in pictures), pictures


def check_frames(browser, name):
    """Printed, for people to judge."""
    browser.run("""(() => {
      window.asked = window.drawn = window.painted = 0;
      const show_ = show, draw_ = drawMap;
      show = state => (++window.asked, show_(state));
      drawMap = state => (++window.drawn, draw_(state));
      const count = () => (++window.painted, requestAnimationFrame(count));
      requestAnimationFrame(count);
    })()""")
    figures = browser.run(f"""new Promise(done => {{
      const begun = performance.now(), from = [window.asked, window.drawn, window.painted];
      setTimeout(() => done([window.asked, window.drawn, window.painted]
        .map((each, i) => (each - from[i]) / (performance.now() - begun) * 1000)), {FRAMES_SECONDS}000);
    }})""")
    print(f"{name}: {figures[0]:.1f} frames a second are asked for, {figures[1]:.1f} drawn into the map, "
          f"{figures[2]:.0f} painted by the browser")
    assert figures[0] > 0 and figures[2] > 0, figures


def status_of(place, tenant):
    answer = json.loads(subprocess.run([place.smt, "status", "--json"], env=place.environment, check=True,
                                       capture_output=True, text=True).stdout)
    return answer, next((each for each in answer["tenants"] if each["tenant"] == tenant), None)


def change_by_keyboard(browser, place):
    """Priority, weight, memory limit and policy, as smt status says afterwards."""

    def replace(name, text):
        browser.tab_to(name)
        browser.key("a", chromium.CONTROL)
        browser.type(text)

    def has(**wanted):
        return lambda: wanted.items() <= status_of(place, "chat")[1].items()

    def complaint():
        return f"{status_of(place, 'chat')[1]}; {browser.run('at(`said`).textContent')}"

    replace("Priority of chat", "7")
    replace("Weight of chat", "2.5")
    browser.key("Enter")
    wait_for(has(priority=7, weight=2.5), complaint)
    replace("Memory limit, such as 4G or all, of chat", "1G")
    browser.tab_to("Set priority, weight and memory limit of chat")
    browser.key("Enter")
    wait_for(has(memory_limit=1 << 30), complaint)
    before = status_of(place, "chat")[0]["policy"]
    chosen = browser.tab_to("policy")["value"]
    assert chosen == before, (chosen, before)
    browser.key("ArrowDown" if browser.run("at('policy').selectedIndex") == 0 else "ArrowUp")
    wanted = browser.run("at('policy').value")
    assert wanted != before, wanted
    browser.key("Tab")
    browser.key("Enter")
    wait_for(lambda: status_of(place, "chat")[0]["policy"] == wanted, complaint)
    wait_for(lambda: "policy" in browser.run("at('said').textContent"), complaint)


def live(browser, place):
    started = [place.start(name, "beside", "few", "32", str(ROOM), str(blocks), str(us), "1000000",
                           options=("--priority", priority))
               for name, (priority, blocks, us) in TENANTS.items()]
    try:
        with Page(place) as page:
            browser.open(page)
            browser.wait_for(f"at('tenants').rows.length === {len(TENANTS)}")
            check_map(browser)
            browser.wait_for("at('decisions').rows.length > 3")
            texts = browser.run("[...at('decisions').rows].map(each => each.cells[2].textContent)")
            assert all(re.search(r"\w", each) for each in texts) and any("priority" in each
                                                                         for each in texts), texts
            check_readable(browser, "live")
            controls = {"Policy", "Pause"}
            for name in TENANTS:
                controls |= {f"Priority of {name}", f"Weight of {name}", f"Suspend {name}",
                             f"Memory limit, such as 4G or all, of {name}"}
            check_spoken(browser, controls)
            check_frames(browser, "live")
            change_by_keyboard(browser, place)
            browser.leave(page)
    finally:
        for process in started:
            process.kill()
            process.communicate()


def recording(browser, place):
    subprocess.run([place.smt, "server", "stop"], env=place.environment, check=True, capture_output=True)
    place.wait_until_ended()
    [journal] = pathlib.Path(place.folder.name).glob("*.journal")
    copy = pathlib.Path(place.folder.name) / "talk.journal"
    shutil.copy(journal, copy)
    with Page(place, "--replay", str(copy)) as page:
        browser.open(page)
        browser.wait_for(f"at('tenants').rows.length === {len(TENANTS)}")
        check_map(browser)
        check_readable(browser, "recording")
        check_spoken(browser, {"Position", "All in", "Pause"})
        check_frames(browser, "recording")
        # By keyboard: to the end, where it stands still, and back.
        browser.tab_to("position")
        browser.key("End")
        browser.wait_for("at('pause').textContent === 'Go on' && position >= about.replay.end")
        assert browser.run("at('position').getAttribute('aria-valuetext')").endswith("s"), "no position"
        assert browser.run("at('decisions').rows.length") > 0
        browser.key("Home")
        browser.tab_to("pause")
        browser.key("Enter")
        browser.wait_for("!paused && position < about.replay.end")
        browser.leave(page)


def main():
    smt, programs, *pictures = sys.argv[1:]
    if not chromium.program():
        print("chromium is not installed")
        sys.exit(SKIPPED)
    folder = pathlib.Path(pictures[0]) if pictures else None
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    with Place(smt, programs, sms=SMS) as place:
        place.environment.update(SMT_COMPILE=MANAGED, SMT_POLICY="hpf")
        with Browser(folder) as browser:
            browser.size(*SIZES["wide"])
            live(browser, place)
            recording(browser, place)


main()
