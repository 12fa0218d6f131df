"""The picture of a report in the README: its beginning, as a desktop shows it, in 256 colours.

python -m tests.browser.picture reports/quickstart-1/report.html docs/images/report.png
"""

from __future__ import annotations

import base64
import struct
import sys
import tempfile
import zlib
from pathlib import Path

from tests.browser.chromium import Browser, executable

WIDTH, HEIGHT = 1100, 2380

# The browser decodes its own screenshot: the 256 most frequent colours stay, every other becomes the nearest of them.
REDUCE = """(async () => {
    const image = new Image();
    image.src = "data:image/png;base64,%s";
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const pixels = new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer);
    const counts = new Map();
    for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) || 0) + 1);
    const palette = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 256).map((entry) => entry[0]);
    const parts = (c) => [c & 255, (c >> 8) & 255, (c >> 16) & 255];
    const place = new Map(palette.map((colour, index) => [colour, index]));
    const nearest = (colour) => {
        const [r, g, b] = parts(colour);
        let best = 0, least = Infinity;
        palette.forEach((other, index) => {
            const [x, y, z] = parts(other);
            const far = (r - x) ** 2 + (g - y) ** 2 + (b - z) ** 2;
            if (far < least) [best, least] = [index, far];
        });
        place.set(colour, best);
        return best;
    };
    let text = "";
    for (const pixel of pixels) {
        const index = place.get(pixel);
        text += String.fromCharCode(index === undefined ? nearest(pixel) : index);
    }
    return { width: image.width, height: image.height, palette: palette.flatMap(parts), indexes: btoa(text) };
})()"""


def indexed_png(width: int, height: int, palette: bytes, indexes: bytes) -> bytes:
    """A PNG with a palette (colour type 3, 8 bits)."""
    rows = b"".join(b"\0" + indexes[row * width : (row + 1) * width] for row in range(height))
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", palette),
        (b"IDAT", zlib.compress(rows, 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )


def main(report: str, picture: str) -> None:
    """Write the picture of a report."""
    program = executable()
    if program is None:
        sys.exit("no Chromium is installed")
    path = Path(picture)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as profile, Browser(program, Path(profile)) as browser:
        browser.emulate(WIDTH, HEIGHT)
        browser.open(Path(report))
        shot = browser.screenshot(path)
        browser.call("Page.navigate", url="about:blank")
        browser.wait("location.href === 'about:blank'")
        found = browser.value(REDUCE % base64.b64encode(shot).decode())
    path.write_bytes(
        indexed_png(found["width"], found["height"], bytes(found["palette"]), base64.b64decode(found["indexes"]))
    )
    print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
