"""Every test has a cache of its own and sees no data sets but those it brings."""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import torch

from seqwise.cli import main

BROWSER_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SHARED_DATA = os.environ.get("SEQWISE_DATA")
hypothesis.settings.register_profile("seqwise", deadline=None)  # the first example may wait for a compiler
hypothesis.settings.load_profile("seqwise")


@pytest.fixture(autouse=True)
def _own_world(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQWISE_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.delenv("SEQWISE_DATA", raising=False)
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The engine's code is there: compiled once, by the first worker that needs it, while others wait for it."""
    from seqwise.kernels.compiled import ENTRIES

    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # which all workers share
    with (folder / "compiling").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for entry in ENTRIES.values():
            entry.compile()  # or reads it from disk


@pytest.fixture(params=["compiled", "by torch"])
def each_way(request: pytest.FixtureRequest, compiled: None) -> Iterator[None]:
    """Steps are taken by compiled code where there is some, and by torch."""
    from seqwise.models.engine import engine

    with engine("on" if request.param == "compiled" else "off"):
        yield


@pytest.fixture
def shared_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of public data sets, for tests that need one; they skip where it is missing."""
    if not SHARED_DATA or not Path(SHARED_DATA).exists():
        pytest.skip("needs the public data sets: set SEQWISE_DATA to their folder")
    monkeypatch.setenv("SEQWISE_DATA", str(Path(SHARED_DATA).resolve()))
    return Path(SHARED_DATA).resolve()


class Terminal:
    """Runs the command line in this process, in a folder of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]):
        self.monkeypatch, self.capture = monkeypatch, capture

    def run(self, *arguments: str | Path) -> tuple[int, str, str]:
        """Exit code, standard output, standard error."""
        self.monkeypatch.setattr(sys, "argv", ["seqwise", *map(str, arguments)])
        try:
            main()
            code = 0
        except SystemExit as done:
            code = done.code if isinstance(done.code, int) else int(done.code is not None)
        out, err = self.capture.readouterr()
        return code, out, err

    def done(self, *arguments: str | Path) -> tuple[str, str]:
        """Standard output and standard error of what must go well."""
        code, out, err = self.run(*arguments)
        assert code == 0, err
        return out, err

    def refuses(self, *arguments: str | Path) -> str:
        """The sentence: exit code 2, no result, nothing said behind it. What was found in the data may come before."""
        code, out, err = self.run(*arguments)
        assert (code, out) == (2, "")
        told = [line for line in err.splitlines() if line.startswith("error: ")]
        assert told == [err.splitlines()[-1]]
        return told[0].removeprefix("error: ")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Terminal:
    monkeypatch.setenv("SEQWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return Terminal(monkeypatch, capsys)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    executable = os.environ.get("SEQWISE_CHROMIUM") or shutil.which("chromium")
    if not executable:
        pytest.skip("needs Chromium: install it, or set SEQWISE_CHROMIUM to its executable")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=BROWSER_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens the page of inspections; at the end nothing was loaded and nothing complained."""
    from seqwise.inspection.page import write_inspection

    complaints: list[str] = []
    asked: list[str] = []
    contexts: list[Any] = []

    def open_page(*found: Any, **options: Any) -> Any:
        path = tmp_path / "inspect.html"
        path.write_text(write_inspection(found), encoding="utf-8")
        context = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]", state="attached", timeout=20_000)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    assert all(url.startswith(("file:", "blob:")) for url in asked)
