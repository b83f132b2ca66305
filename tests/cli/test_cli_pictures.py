"""The command line and picture files: formats, bits, what is kept and what refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from kernlets.cli import app
from kernlets.cli.pictures import read_picture, write_picture
from kernlets.images import psnr

Image = pytest.importorskip("PIL.Image", reason="pillow is not installed")
posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def ok(*arguments: Any) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def error(*arguments: Any) -> str:
    """What a command that fails says: one line."""
    result = run(*arguments)
    assert result.exit_code == 1, result.output
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    return result.stderr


@pytest.fixture(scope="module")
def clean() -> np.ndarray:
    y, x = np.mgrid[:40, :48]
    disc = (x - 24) ** 2 + (y - 20) ** 2 < 150
    return np.clip(40 + 2 * x + 80 * disc, 0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def noisy(clean: np.ndarray) -> np.ndarray:
    noise = np.random.default_rng(0).normal(0, 15, clean.shape)
    return np.clip(clean + noise, 0, 255).round().astype(np.uint8)


def save(path: Path, pixels: np.ndarray, **how: Any) -> Path:
    Image.fromarray(pixels).save(path, **how)
    return path


def pixels_of(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.array(image)


@pytest.mark.parametrize("suffix", [".png", ".tif", ".jpg"])
def test_denoise(tmp_path: Path, clean: Any, noisy: Any, suffix: str) -> None:
    path, out = save(tmp_path / "a.png", noisy), tmp_path / f"b{suffix}"
    said = ok("denoise", path, "-o", out, "--quality", "fast")
    assert "deviation" in said and "estimated" in said and "48 x 40 pixels" in said
    assert psnr(clean, pixels_of(out)) > psnr(clean, noisy) + 4
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["a.png", out.name])


def test_sigma_and_quiet_and_the_name_of_the_result(tmp_path: Path, noisy: Any) -> None:
    path = save(tmp_path / "a.png", noisy)
    said = ok("denoise", path, "--sigma", 0, "-q")
    assert said == ""
    np.testing.assert_array_equal(pixels_of(tmp_path / "a-denoised.png"), noisy)
    assert "as given" in ok("denoise", path, "--sigma", 15.5, "--quality", "fast")
    assert run("denoise", path, "--sigma", "much").exit_code == 2
    assert run("denoise", path, "--sigma", "-1").exit_code == 2


def test_inpaint(tmp_path: Path, clean: np.ndarray) -> None:
    lost = np.random.default_rng(1).random(clean.shape) < 0.3
    path = save(tmp_path / "a.png", np.where(lost, 0, clean).astype(np.uint8))
    mask = save(tmp_path / "m.png", (255 * lost).astype(np.uint8))
    said = ok("inpaint", path, "--mask", mask)
    assert f"{lost.sum()} pixels" in said
    found = pixels_of(tmp_path / "a-inpainted.png")
    np.testing.assert_array_equal(found[~lost], clean[~lost])
    assert psnr(clean, found) > 30


def test_pixels_of_a_tiff_that_are_nan(tmp_path: Path, clean: np.ndarray) -> None:
    values = (clean * np.float32(1000)).astype(np.float32)
    values[10:13, 20:22] = np.nan
    path, out = save(tmp_path / "a.tif", values), tmp_path / "b.tif"
    assert "inpaint" in error("denoise", path, "-o", out)
    ok("inpaint", path, "-o", out)
    found = pixels_of(out)
    assert found.dtype == np.float32
    assert abs(found[11, 20] / 1000 - clean[11, 20]) < 20


@pytest.mark.parametrize("suffix", [".png", ".tif"])
def test_sixteen_bits(tmp_path: Path, clean: Any, noisy: Any, suffix: str) -> None:
    path = save(tmp_path / f"a{suffix}", noisy.astype(np.uint16) * 257)
    out = tmp_path / f"b{suffix}"
    ok("denoise", path, "-o", out, "--sigma", 15 * 257, "--quality", "fast")
    found = pixels_of(out)
    assert found.max() > 255
    assert psnr(clean, found / 257) > psnr(clean, noisy) + 4
    assert "write a .tif file" in error("denoise", path, "-o", tmp_path / "c.jpg")


def test_sixteen_bits_of_colour_are_not_reduced_silently(tmp_path: Path) -> None:
    import struct
    import zlib

    def chunk(kind: bytes, data: bytes) -> bytes:
        checked = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + checked

    rows = b"".join(b"\0" + bytes(16 * 6) for _ in range(16))
    header = struct.pack(">IIBBBBB", 16, 16, 16, 2, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    path = tmp_path / "deep.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*p) for p in parts))
    assert "16 bits for each colour" in error("denoise", path)


def test_alpha_stays(tmp_path: Path, noisy: np.ndarray) -> None:
    alpha = np.arange(noisy.size).reshape(noisy.shape).astype(np.uint8)
    path = save(tmp_path / "a.png", np.dstack([noisy, noisy, noisy, alpha]))
    out = tmp_path / "b.png"
    ok("denoise", path, "-o", out, "--quality", "fast")
    found = pixels_of(out)
    np.testing.assert_array_equal(found[..., 3], alpha)
    assert found[..., :3].std() < noisy.std()
    assert "cannot hold" in error("denoise", path, "-o", tmp_path / "c.jpg")


@pytest.mark.parametrize("mode", ["P", "CMYK", "LA"])
def test_palettes_and_print_colours(tmp_path: Path, noisy: Any, mode: str) -> None:
    path, out = tmp_path / "a.tif", tmp_path / "b.tif"
    Image.fromarray(noisy).convert("RGB").convert(mode).save(path)
    ok("denoise", path, "-o", out, "--sigma", 15, "--quality", "fast")
    with Image.open(out) as image:
        assert image.mode == {"P": "RGB"}.get(mode, mode)
        assert image.size == noisy.shape[::-1]


def test_profiles_and_resolution_are_kept(tmp_path: Path, noisy: np.ndarray) -> None:
    more = {"dpi": (300, 300), "icc_profile": b"profile"}
    path, out = save(tmp_path / "a.tif", noisy, **more), tmp_path / "b.png"
    ok("denoise", path, "-o", out, "--sigma", 0)
    with Image.open(out) as image:
        assert image.info["icc_profile"] == b"profile"
        assert round(image.info["dpi"][0]) == 300


def test_what_is_not_written(tmp_path: Path, noisy: np.ndarray) -> None:
    path = save(tmp_path / "a.png", noisy)
    before = path.read_bytes()
    assert "--force" in error("denoise", path, "-o", path)
    assert path.read_bytes() == before
    assert "no such folder" in error("denoise", path, "-o", tmp_path / "no" / "b.png")
    (tmp_path / "c.png").mkdir()
    assert "is a folder" in error("denoise", path, "-o", tmp_path / "c.png")
    assert run("denoise", path, "-o", tmp_path / "b.gif").exit_code == 2
    mask = save(tmp_path / "m.png", noisy)
    assert "--force" in error("inpaint", path, "--mask", mask, "-o", mask)
    ok("denoise", path, "-o", path, "--force", "--sigma", 0)


@posix
def test_pipes_are_not_replaced(tmp_path: Path, noisy: np.ndarray) -> None:
    path, pipe = save(tmp_path / "a.png", noisy), tmp_path / "p.png"
    os.mkfifo(pipe)
    assert "regular file" in error("denoise", path, "-o", pipe)


def test_what_cannot_be_read(tmp_path: Path, noisy: np.ndarray) -> None:
    path = save(tmp_path / "a.png", noisy)
    assert "does not exist" in error("denoise", tmp_path / "no.png")
    broken = tmp_path / "broken.png"
    broken.write_bytes(path.read_bytes()[:200])
    assert "damaged" in error("denoise", broken)
    several = tmp_path / "several.tif"
    image = Image.fromarray(noisy)
    image.save(several, save_all=True, append_images=[image])
    assert "holds 2 pictures" in error("denoise", several)
    two = tmp_path / "two.png"
    image.convert("1").save(two)
    assert "save it as grey values" in error("denoise", two)
    small = save(tmp_path / "small.png", noisy[:5])
    assert "fewer than a patch" in error("denoise", small)


def test_masks_that_do_not_fit(tmp_path: Path, noisy: np.ndarray) -> None:
    path = save(tmp_path / "a.png", noisy)
    other = save(tmp_path / "m.png", noisy[1:])
    assert "same size" in error("inpaint", path, "--mask", other)
    empty = save(tmp_path / "e.png", np.zeros_like(noisy))
    assert "no pixel is lost" in error("inpaint", path, "--mask", empty)
    full = save(tmp_path / "f.png", np.full_like(noisy, 255))
    assert "all pixels" in error("inpaint", path, "--mask", full)
    assert "no pixel is lost" in error("inpaint", path)


def test_files_are_read_and_written_as_they_are(tmp_path: Path, noisy: Any) -> None:
    for mode in ("L", "LA", "RGB", "RGBA", "CMYK", "I", "F"):
        first, second = tmp_path / f"{mode}.tif", tmp_path / f"{mode}-2.tif"
        image = Image.fromarray(noisy)
        if mode == "CMYK":
            image = image.convert("RGB")
        image.convert(mode).save(first)
        write_picture(second, read_picture(first))
        np.testing.assert_array_equal(pixels_of(first), pixels_of(second))


@pytest.mark.parametrize("command", ["denoise", "inpaint"])
def test_a_file_that_is_no_picture(command: str, tmp_path: Path) -> None:
    table = tmp_path / "iris.csv"
    table.write_text("1,2\n3,4\n")
    told = error(command, table)
    assert "iris.csv: does not end in .png" in told and "give a picture" in told
    assert "iris-" not in told  # the name of a result that nobody gave


@pytest.mark.parametrize("suffix", [".png", ".tif"])
def test_pictures_are_turned_as_they_are_seen(
    tmp_path: Path, noisy: Any, suffix: str
) -> None:
    """So that a mask that was drawn on what is seen fits."""
    exif = Image.Exif()
    exif[274] = 3  # upside down
    path = save(tmp_path / f"a{suffix}", noisy, exif=exif)
    lost = np.zeros(noisy.shape, dtype=np.uint8)
    lost[:3] = 255  # at the top of what is seen
    out, mask = tmp_path / f"b{suffix}", save(tmp_path / "m.png", lost)
    ok("inpaint", path, "--mask", mask, "-o", out)
    np.testing.assert_array_equal(pixels_of(out)[3:], noisy[::-1, ::-1][3:])
    with Image.open(out) as image:
        assert image.getexif().get(274, 1) == 1


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_a_transparent_colour_becomes_alpha(
    tmp_path: Path, noisy: Any, mode: str
) -> None:
    path, out = tmp_path / "a.png", tmp_path / "b.png"
    level = int(noisy[0, 0])
    key = level if mode == "L" else (level,) * 3
    Image.fromarray(noisy).convert(mode).save(path, transparency=key)
    ok("denoise", path, "-o", out, "--sigma", 0)
    found = pixels_of(out)
    np.testing.assert_array_equal(found[..., -1] == 0, noisy == level)


@pytest.mark.parametrize("kind", ["1", "float", "16 bits", "transparent"])
def test_masks_of_every_kind(tmp_path: Path, clean: np.ndarray, kind: str) -> None:
    lost = np.random.default_rng(1).random(clean.shape) < 0.2
    path, mask = save(tmp_path / "a.png", clean), tmp_path / "m.tif"
    white = np.uint8(255) * lost
    if kind == "1":
        Image.fromarray(white).convert("1").save(mask)
    elif kind == "float":
        save(mask, lost.astype(np.float32))
    elif kind == "16 bits":
        save(mask, lost.astype(np.uint16) * 40000)
    else:
        save(mask, np.dstack([white, white, white, white]))
        assert "transparent" in error("inpaint", path, "--mask", mask)
        return
    assert f"{lost.sum()} pixels" in ok("inpaint", path, "--mask", mask)
