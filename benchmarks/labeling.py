"""How fast the labeling page is, in a real browser.

    python benchmarks/labeling.py [--data rows.npy] [--shape 28x28] [--labels rows_labels.npy] [--tiny]

Starts `ebse label` on an npy file and Chromium on its page, and presses keys. Seconds from the command to
the first example, from a key to the next example (both on the screen of the page), and from a key to the
predictions that have learned from it; the peak memory of the server. Without --data the rows are 50,000
synthetic images of 784 pixels. The server computes on one thread. Needs Chromium, and Linux for the memory.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
PRESS = """(key) => new Promise((done) => {
  const example = document.getElementById('example'), row = example.dataset.row, from = performance.now();
  const saved = Number(document.body.dataset.saved);
  let next = null;
  const look = () => {
    if (next === null && example.dataset.row !== row) next = performance.now() - from;
    if (next !== null && Number(document.body.dataset.seen) > saved)
      done([next, performance.now() - from]);
    else setTimeout(look, 1);
  };
  document.body.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}));
  look();
})"""
"""Press a key; milliseconds until the next example shows, and until predictions have learned from it."""


def synthetic(n_rows: int, n_classes: int = 10, side: int = 28) -> tuple[Any, Any]:
    """Images (n_rows, side²) of blurred spots, one pattern for each class with noise, and their classes."""
    rng = np.random.default_rng(0)
    kind = rng.integers(n_classes, size=n_rows)
    patterns = rng.random((n_classes, side // 4, side // 4)).repeat(4, 1).repeat(4, 2).reshape(n_classes, -1)
    noise = rng.random((n_rows, side * side), dtype=np.float32)
    return (255 * (0.6 * patterns[kind] + 0.4 * noise)).astype(np.uint8), kind


def started(data: Path, out: Path, shape: str) -> tuple[subprocess.Popen[str], str]:
    """The server, and the address of its page."""
    server = subprocess.Popen(
        [
            *(sys.executable, "-m", "ebse", "label", str(data), "--shape", shape, "--out", str(out)),
            *("--no-browser", "--classes", ",".join(str(c) for c in range(10))),
        ],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"},
    )
    assert server.stdout is not None
    for line in server.stdout:
        if "http://" in line:
            return server, line.split()[-1]
    raise RuntimeError("`ebse label` printed no address")


def main() -> None:
    """Start the server and a browser, and press keys."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="npy file with rows of pixels")
    parser.add_argument("--labels", type=Path, help="npy file with their classes, 0 to 9")
    parser.add_argument("--shape", default="28x28")
    parser.add_argument("--n-keys", type=int, default=60)
    parser.add_argument(
        "--features", action="store_true", help="wait for learned features, and measure again"
    )
    parser.add_argument("--tiny", action="store_true", help="300 rows and 12 keys, to try the script")
    options = parser.parse_args()
    if CHROMIUM is None:
        print("no Chromium is installed: nothing to measure")
        return
    from playwright.sync_api import sync_playwright

    n_keys = 12 if options.tiny else options.n_keys
    with tempfile.TemporaryDirectory() as folder:
        data = options.data
        if data is None:
            X, y = synthetic(300 if options.tiny else 50_000)
            data = Path(folder) / "rows.npy"
            np.save(data, X)
        else:
            X, y = np.load(data, mmap_mode="r"), np.load(options.labels)
        print(f"{len(X)} rows of {X[0].size} pixels, {n_keys} keys; one thread", flush=True)
        begin = time.perf_counter()
        server, address = started(data, Path(folder) / "run", options.shape)
        try:
            with sync_playwright() as driver:
                browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
                page = browser.new_page(viewport={"width": 1280, "height": 800})
                page.goto(address)
                page.wait_for_function(
                    "() => document.querySelector('#example img')?.naturalWidth > 0", timeout=120_000
                )
                print(
                    f"command to the first example, with the start of Chromium: "
                    f"{time.perf_counter() - begin:.1f} s",
                    flush=True,
                )
                page.wait_for_function(
                    "() => ['ready', 'features'].includes(document.body.dataset.phase)", timeout=600_000
                )
                print(f"command to the first suggestion: {time.perf_counter() - begin:.1f} s", flush=True)
                press(page, y, n_keys, "while features are learned" if len(X) > 5_000 else "")
                if options.features:
                    page.wait_for_function("() => document.body.dataset.phase === 'ready'", timeout=3_600_000)
                    print(f"command to learned features: {time.perf_counter() - begin:.0f} s", flush=True)
                    press(page, y, n_keys, "with learned features")
                browser.close()
            print(f"peak memory of the server: {peak(server.pid)}")
        finally:
            # Waits, and closes its output.
            with server:
                server.terminate()


def press(page: Any, y: Any, n_keys: int, when: str) -> None:
    """Label examples by keys, and print the medians."""
    found = []
    for _ in range(n_keys):
        row = int(page.get_attribute("#example", "data-row"))
        # Classes 0 to 9 have the keys 1 to 9 and 0.
        found.append(page.evaluate(PRESS, str((int(y[row]) + 1) % 10)))
    # Before there are labels of two classes nothing is predicted.
    shown, learned = (statistics.median(times) for times in zip(*found, strict=True))
    print(f"key to the next example{', ' + when if when else ''}: {shown:.0f} ms (median)")
    print(f"key to updated predictions{', ' + when if when else ''}: {learned:.0f} ms (median)", flush=True)


def peak(pid: int) -> str:
    """The largest memory that a process had, where the system says it."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return "not known on this system"
    held = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return f"{int(held.split()[1]) / 2**20:.2f} GiB"


if __name__ == "__main__":
    main()
