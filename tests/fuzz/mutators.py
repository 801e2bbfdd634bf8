"""Ways to damage bytes: blindly, and so that the checksums of the format still hold."""

import io
import random
import struct
import zipfile
import zlib

EXTREMES = (0, 1, 0x7F, 0x80, 0xFE, 0xFF)
NUMBERS = (0, 1, -1, 2**15, 2**16 - 1, 2**31 - 1, -(2**31), 2**30)
WORDS = (b"nan", b"inf", b"-1", b"1e999", b"9" * 401, b"null", b"[]", b"{}", b'""', b"\0", b"../x")


def mutated(content: bytes, rng: random.Random) -> bytes:
    """One of many damages, drawn from `rng`; sometimes several."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        rng.choice(MUTATORS)(data, rng)
    repaired = rng.random() < 0.5
    if repaired and content.startswith(b"\x89PNG"):
        return png_repaired(bytes(data))
    return bytes(data)


def place(data: bytearray, rng: random.Random, room: int = 1) -> int:
    """Somewhere in the data; headers are tried more often than what follows them."""
    end = max(1, len(data) - room)
    return rng.randrange(min(end, 256) if rng.random() < 0.6 else end)


def flip(data: bytearray, rng: random.Random) -> None:
    if data:
        data[place(data, rng)] ^= 1 << rng.randrange(8)


def extreme(data: bytearray, rng: random.Random) -> None:
    if data:
        data[place(data, rng)] = rng.choice(EXTREMES)


def number(data: bytearray, rng: random.Random) -> None:
    """Four bytes as a number that lengths and counts seldom have."""
    if len(data) > 4:
        at = place(data, rng, 4)
        data[at : at + 4] = struct.pack(rng.choice("<>") + "i", rng.choice(NUMBERS))


def cut(data: bytearray, rng: random.Random) -> None:
    del data[rng.randrange(len(data) + 1) :]


def drop(data: bytearray, rng: random.Random) -> None:
    at = place(data, rng) if data else 0
    del data[at : at + rng.randint(1, 40)]


def repeat(data: bytearray, rng: random.Random) -> None:
    at = place(data, rng) if data else 0
    data[at:at] = data[at : at + rng.randint(1, 200)] * rng.choice((1, 2, 50))


def insert(data: bytearray, rng: random.Random) -> None:
    at = place(data, rng) if data else 0
    data[at:at] = rng.choice((rng.randbytes(rng.randint(1, 16)), rng.choice(WORDS)))


def digits(data: bytearray, rng: random.Random) -> None:
    """A number in a text as another one."""
    spots = [at for at, byte in enumerate(data) if 48 <= byte <= 57]
    if spots:
        at = rng.choice(spots)
        data[at : at + 1] = rng.choice(WORDS)


MUTATORS = (flip, extreme, number, cut, drop, repeat, insert, digits)


def png_repaired(content: bytes) -> bytes:
    """The same chunks with checksums that hold, as far as there are whole chunks."""
    out, at = bytearray(content[:8]), 8
    while at + 12 <= len(content):
        length = int.from_bytes(content[at : at + 4], "big")
        body = content[at + 4 : at + 8 + length]
        if len(body) != length + 4:
            break
        out += content[at : at + 4] + body + struct.pack(">I", zlib.crc32(body))
        at += 12 + length
    return bytes(out) + content[at:]


def npz_with(content: bytes, rng: random.Random) -> bytes:
    """An archive of sound checksums whose members are damaged inside."""
    memory = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as old,
        zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            inner = old.read(name)
            new.writestr(name, mutated(inner, rng) if rng.random() < 0.5 else inner)
    return memory.getvalue()
