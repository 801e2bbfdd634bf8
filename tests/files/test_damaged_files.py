"""Readers against hostile bytes: only InputError, no hang, no memory blow-up, no crash.

Each run happens in a process of its own with limited memory, so that a crash of a C library fails
one test instead of ending the test run. `python test_io_fuzz.py KIND FIRST COUNT` runs by hand.
"""

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ducos.errors import InputError
from ducos.files import as_depth, as_rgb, read_depth, read_mask, read_rgb

CASES = 400
CASES_WITH_CHILD = 6  # TIFF, EXR and HDF5 start a process per file
MEGABYTES = 700  # above what Python and the libraries take by themselves


def good_files(kind: str) -> list[bytes]:
    """Sound files of one kind, to be damaged."""
    rng = np.random.default_rng(0)
    depth = rng.uniform(0.4, 6, (37, 23)).astype(np.float32)
    whole = (depth * 1000).astype(np.uint16)
    colour = rng.integers(0, 256, (37, 23, 3)).astype(np.uint8)
    return GOOD_FILES[kind](depth, whole, colour)


def png_files(depth: np.ndarray, whole: np.ndarray, colour: np.ndarray) -> list[bytes]:
    from PIL.PngImagePlugin import PngInfo

    stated = PngInfo()
    stated.add_text("depth_unit", "mm")
    stated.add_text("depth_scale", "0.001")
    stated.add_text("depth_about", '{"method": "x"}', zip=True)
    palette = picture(colour, "PNG", quantize=8)
    return [picture(whole, "PNG", pnginfo=stated), picture(colour[..., 0], "PNG"), palette]


def picture(array: np.ndarray, form: str, quantize: int = 0, **options: object) -> bytes:
    from PIL import Image

    stream = BytesIO()
    image = Image.fromarray(array)
    (image.quantize(quantize) if quantize else image).save(stream, format=form, **options)
    return stream.getvalue()


def npy_files(depth: np.ndarray, whole: np.ndarray, colour: np.ndarray) -> list[bytes]:
    files = []
    for array in (depth, whole, np.asfortranarray(depth.astype(np.float64)), np.float16(depth)):
        np.save(stream := BytesIO(), array)
        files.append(stream.getvalue())
    return files


def npz_files(depth: np.ndarray, whole: np.ndarray, colour: np.ndarray) -> list[bytes]:
    np.savez(plain := BytesIO(), depth=depth, valid=depth > 1, unit="m", scale=1.0, about="{}")
    np.savez_compressed(packed := BytesIO(), map=whole, K=np.eye(3)[0])
    return [plain.getvalue(), packed.getvalue()]


def pfm_files(depth: np.ndarray, whole: np.ndarray, colour: np.ndarray) -> list[bytes]:
    return [b"Pf\n23 37\n-1.0\n" + depth.tobytes(), b"Pf 23 37 1\n" + depth.astype(">f4").tobytes()]


def pgm_files(depth: np.ndarray, whole: np.ndarray, colour: np.ndarray) -> list[bytes]:
    head = f"P5\n# a\n{whole.shape[1]} {whole.shape[0]}\n".encode()
    small = (depth / depth.max() * 255).astype(np.uint8)
    return [head + b"65535\n" + whole.astype(">u2").tobytes(), head + b"255 " + small.tobytes()]


def tiff_files(depth: np.ndarray, whole: np.ndarray, colour: np.ndarray) -> list[bytes]:
    import tifffile

    files = [picture(depth, "TIFF", compression="tiff_lzw")]
    for array, options in (
        (depth, {"description": '{"depth_unit": "m"}', "metadata": None}),
        (whole, {"compression": "zlib", "predictor": 2}),
        (depth, {"tile": (16, 16), "bigtiff": True, "compression": "zlib"}),
    ):
        tifffile.imwrite(stream := BytesIO(), array, **options)
        files.append(stream.getvalue())
    return files


def exr_files(depth: np.ndarray, whole: np.ndarray, colour: np.ndarray) -> list[bytes]:
    import OpenEXR

    files = []
    with tempfile.TemporaryDirectory() as folder:
        for packing in ("ZIP", "PIZ", "NO", "RLE", "DWAA", "B44"):
            compression = getattr(OpenEXR, f"{packing}_COMPRESSION")
            header = {"compression": compression, "type": OpenEXR.scanlineimage, "depth_unit": "m"}
            with OpenEXR.File(header, {"Z": depth, "B": depth.astype(np.float16)}) as file:
                file.write(f"{folder}/a.exr")
            files.append(Path(folder, "a.exr").read_bytes())
    return files


def hdf5_files(depth: np.ndarray, whole: np.ndarray, colour: np.ndarray) -> list[bytes]:
    import h5py

    files = []
    for options in ({}, {"compression": "gzip", "chunks": (8, 8)}, {"fletcher32": True}):
        with h5py.File(stream := BytesIO(), "w") as file:
            file.create_dataset("depth", data=depth, **options).attrs["depth_unit"] = "m"
            file["valid"] = depth > 1
        files.append(stream.getvalue())
    return files


def picture_files(depth: np.ndarray, whole: np.ndarray, colour: np.ndarray) -> list[bytes]:
    import cv2
    from PIL import Image

    turned = Image.Exif()
    turned[0x0112] = 6
    sixteen_bit = cv2.imencode(".png", np.dstack([whole] * 3))[1].tobytes()
    return [
        picture(colour, "JPEG", exif=turned),
        picture(colour, "JPEG", progressive=True),
        picture(colour, "PNG"),
        picture(colour, "BMP"),
        picture(colour, "WEBP"),
        picture(colour, "PPM"),
        sixteen_bit,
    ]


GOOD_FILES = {
    "png": png_files,
    "npy": npy_files,
    "npz": npz_files,
    "pfm": pfm_files,
    "pgm": pgm_files,
    "tiff": tiff_files,
    "exr": exr_files,
    "hdf5": hdf5_files,
    "picture": picture_files,
}
WITH_CHILD = ("tiff", "exr", "hdf5")
EXTREMES = (b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"\0\0\0\0", b"\0\x10\0\0")


def damaged(file: bytes, rng: random.Random) -> bytes:
    """Cut, flip, overwrite with extreme numbers, or replace all but the signature."""
    content = bytearray(file)
    match rng.choice(("cut", "flip", "flip the header", "extremes", "noise", "repeat")):
        case "cut":
            return bytes(content[: rng.randrange(len(content))])
        case "flip":
            for _ in range(rng.choice((1, 2, 8, 40))):
                content[rng.randrange(len(content))] = rng.randrange(256)
        case "flip the header":
            for _ in range(rng.choice((1, 2, 8))):
                content[rng.randrange(4, min(len(content), 300))] = rng.randrange(256)
        case "extremes":
            for _ in range(rng.choice((1, 2, 4))):
                at = rng.randrange(4, min(len(content) - 4, rng.choice((100, 1000))))
                content[at : at + 4] = rng.choice(EXTREMES)
        case "noise":
            return bytes(content[: rng.choice((2, 4, 8, 16, 64))]) + rng.randbytes(
                rng.randrange(3000)
            )
        case "repeat":
            at = rng.randrange(len(content))
            content[at:at] = content[: rng.randrange(200)]
    if file.startswith(b"\x89PNG") and rng.random() < 0.7:
        return with_sound_checksums(bytes(content))
    return bytes(content)


def with_sound_checksums(png: bytes) -> bytes:
    """Repair the checksums of a damaged PNG, so that the damage gets past the first check."""
    repaired, at = bytearray(png[:8]), 8
    while at + 12 <= len(png):
        length = int.from_bytes(png[at : at + 4], "big")
        if at + 12 + length > len(png):
            break
        body = png[at + 4 : at + 8 + length]
        repaired += png[at : at + 4] + body + zlib.crc32(body).to_bytes(4, "big")
        at += 12 + length
    return bytes(repaired + png[at:])


def run(kind: str, first: int, count: int) -> dict:
    """Read `count` damaged files and tell what happened."""
    files = good_files(kind)
    outcomes: Counter[str] = Counter()
    slowest = 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"damaged.{kind}")
        readers = (read_rgb,) if kind == "picture" else (read_depth, read_mask)
        for file in files:  # sound files must be readable, or this tests nothing
            path.write_bytes(file)
            readers[-1](path)
        before = peak_megabytes()
        for case in range(first, first + count):
            rng = random.Random(case)
            path.write_bytes(damaged(rng.choice(files), rng))
            read = rng.choice(readers)
            started = time.perf_counter()
            try:
                read(path)
                outcomes["read"] += 1
            except InputError as problem:
                outcomes["refused" if "\n" not in str(problem) else f"two lines, case {case}"] += 1
            except Exception as problem:
                outcomes[f"{type(problem).__name__}, case {case}"] += 1
            slowest = max(slowest, time.perf_counter() - started)
    return {"outcomes": outcomes, "seconds": slowest, "megabytes": peak_megabytes() - before}


def peak_megabytes() -> float:
    """Largest memory so far of this process or of any child it has waited for."""
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(each).ru_maxrss for each in who) / 1024


def check(kind: str, first: int, count: int) -> None:
    done = subprocess.run(
        [sys.executable, __file__, kind, str(first), str(count)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stderr == "", "libraries must not print on their own"
    report = json.loads(done.stdout)
    assert set(report["outcomes"]) <= {"read", "refused"}, report
    assert report["outcomes"]["refused"] > 0.2 * count, "the damage was no damage"
    assert report["seconds"] < 20
    assert report["megabytes"] < MEGABYTES


# Odd but well-formed


NUMBERS = st.one_of(st.integers(-2, 9), st.integers(), st.booleans(), st.floats(), st.none())
TYPES = "<f4 >f8 <f2 |u1 <u2 >i2 <i8 <u8 |b1 <c8 |S3 <U2 <M8[s] <m8 |V4 |O <f16 f (2,)f4 x <U"


def refused_or_read(content: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        with suppress(InputError):
            back = read_depth(file.name)
            assert back.depth.shape == back.valid.shape
            assert back.valid.any()
            assert np.isfinite(back.depth).all()


@settings(deadline=None, max_examples=300)
@given(
    shape=st.lists(NUMBERS, max_size=4),
    descr=st.sampled_from(TYPES.split()),
    data=st.binary(max_size=200),
)
def test_any_npy_header(shape: list, descr: str, data: bytes) -> None:
    text = repr({"descr": descr, "fortran_order": False, "shape": tuple(shape)}).encode()
    refused_or_read(b"\x93NUMPY\x01\0" + len(text).to_bytes(2, "little") + text + data)


@settings(deadline=None, max_examples=300)
@given(text=st.text(max_size=80), version=st.integers(0, 255), length=st.integers(0, 2**32 - 1))
def test_any_npy_header_text(text: str, version: int, length: int) -> None:
    start = b"\x93NUMPY" + bytes([version, 0])
    refused_or_read(start + length.to_bytes(4, "little") + text.encode())
    refused_or_read(start + len(text.encode()).to_bytes(2, "little") + text.encode())


def test_deeply_nested_npy_header() -> None:
    refused_or_read(b"\x93NUMPY\x01\0" + (9000).to_bytes(2, "little") + b"(" * 9000)


@settings(deadline=None, max_examples=300)
@given(
    fields=st.lists(st.one_of(NUMBERS.map(str), st.text(max_size=9)), min_size=2, max_size=4),
    space=st.sampled_from([" ", "\n", "\t", "", "\r\n"]),
    data=st.binary(max_size=400),
)
def test_any_pfm_or_pgm_header(fields: list, space: str, data: bytes) -> None:
    for kind in ("Pf", "P5", "P5\n#"):
        refused_or_read((kind + space + space.join(fields) + space).encode() + data)


@settings(deadline=None, max_examples=100)
@given(
    array=hnp.arrays(
        st.one_of(hnp.scalar_dtypes(), st.just(np.dtype("O"))),
        hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
    ),
    unit=st.sampled_from(["auto", "m", "mm", "cm", "relative"]),
)
def test_any_array(array: np.ndarray, unit: str) -> None:
    for convert in (lambda: as_depth(array, unit).depth, lambda: as_rgb(array)):
        with suppress(InputError):
            values = convert()
            assert values.dtype == np.float32
            assert np.isfinite(values).all()


@pytest.mark.parametrize("kind", GOOD_FILES)
def test_damaged_files_are_read_or_refused(kind: str) -> None:
    check(kind, 0, CASES_WITH_CHILD if kind in WITH_CHILD else CASES)


@pytest.mark.slow
@pytest.mark.parametrize("kind", GOOD_FILES)
def test_many_damaged_files_are_read_or_refused(kind: str) -> None:
    check(kind, 1_000_000, 300 if kind in WITH_CHILD else 20_000)


if __name__ == "__main__":
    kind, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    print(json.dumps(run(kind, first, count)))
