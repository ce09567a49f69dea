"""Git's objects as bytes: ids, trees that can be edited cheaply, commits, and packs.

Source of the formats: Documentation/gitformat-pack.txt and git-hash-object of Git itself.
"""

from __future__ import annotations

import hashlib
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from memoranda.values import dataclass

FILE_MODE = b"100644"
PROGRAM_MODE = b"100755"
TREE_MODE = b"40000"
KINDS = {"commit": 1, "tree": 2, "blob": 3, "tag": 4}
_OFS_DELTA = 6
_WINDOW_BITS = 11
_WINDOW = 1 << _WINDOW_BITS
_MANY = 256  # objects from which on time counts more than space
_SHORT = 4096  # bytes up to which two strings are compared as one number
_MOST_DELTAS = 120  # in a row: a reader has to undo them one after the other, a writer saves a whole journal


@dataclass(frozen=True, slots=True)
class GitObject:
    """One object: `kind` is commit, tree, blob or tag; `base` is the id of an object that it resembles, or None."""

    kind: str
    data: bytes
    oid: str
    base: str | None = None


def object_id(kind: str, data: bytes) -> str:
    """The SHA-1 name of an object, 40 hex digits."""
    digest = hashlib.sha1(b"%s %d\x00" % (kind.encode(), len(data)), usedforsecurity=False)
    digest.update(data)
    return digest.hexdigest()


def make_object(kind: str, data: bytes, base: str | None = None) -> GitObject:
    return GitObject(kind, data, object_id(kind, data), base)


@dataclass(frozen=True, slots=True)
class Signature:
    """Who and when, as a commit writes it: whole seconds, UTC."""

    name: str
    email: str
    at: datetime

    def encode(self) -> bytes:
        clean = "".join(c for c in self.name if c not in "<>\n\x00").strip() or "unknown"
        mail = "".join(c for c in self.email if c not in "<>\n\x00 ")
        return f"{clean} <{mail}> {int(self.at.timestamp())} +0000".encode("utf-8", "replace")


def commit_data(tree: str, parents: Iterable[str], author: Signature, committer: Signature, message: str) -> bytes:
    """The bytes of a commit object."""
    lines = [b"tree " + tree.encode()]
    lines += [b"parent " + parent.encode() for parent in parents]
    lines += [b"author " + author.encode(), b"committer " + committer.encode(), b""]
    return b"\n".join(lines) + b"\n" + message.replace("\x00", "").encode("utf-8", "replace") + b"\n"


def read_tree(data: bytes) -> Iterator[tuple[bytes, bytes, str]]:
    """(mode, name, object id) of each entry of a tree object."""
    at = 0
    while at < len(data):
        space = data.index(b" ", at)
        end = data.index(b"\x00", space)
        yield data[at:space], data[space + 1 : end], data[end + 1 : end + 21].hex()
        at = end + 21


class Folder:
    """One tree under edit; its entries are kept serialised, so that a change costs a slice and not a rebuild."""

    __slots__ = ("children", "entries", "keys", "oid")

    def __init__(self, data: bytes = b"", oid: str | None = None) -> None:
        self.oid = oid
        self.keys: list[bytes] = []
        self.entries: list[bytes] = []
        self.children: dict[bytes, Folder] = {}
        for mode, name, target in read_tree(data):
            self.keys.append(name + b"/" if mode == TREE_MODE else name)
            self.entries.append(mode + b" " + name + b"\x00" + bytes.fromhex(target))

    def find(self, name: bytes) -> tuple[bytes, str] | None:
        """(mode, id) of an entry."""
        for key in (name, name + b"/"):
            at = bisect_left(self.keys, key)
            if at < len(self.keys) and self.keys[at] == key:
                entry = self.entries[at]
                return entry[: entry.index(b" ")], entry[-20:].hex()
        return None

    def put(self, mode: bytes, name: bytes, oid: str) -> None:
        key = name + b"/" if mode == TREE_MODE else name
        entry = mode + b" " + name + b"\x00" + bytes.fromhex(oid)
        at = bisect_left(self.keys, key)
        if at < len(self.keys) and self.keys[at] == key:
            self.entries[at] = entry
            return
        other = name if mode == TREE_MODE else name + b"/"
        self.remove(other)  # a file takes the place of a folder, or the other way round
        at = bisect_left(self.keys, key)
        self.keys.insert(at, key)
        self.entries.insert(at, entry)

    def remove(self, key: bytes) -> None:
        at = bisect_left(self.keys, key)
        if at < len(self.keys) and self.keys[at] == key:
            del self.keys[at], self.entries[at]

    def data(self) -> bytes:
        return b"".join(self.entries)


class TreeEditor:
    """A tree of folders under edit, loaded as far as it is touched.

    Args:
        read: gives the data of a tree by its id.
        root: the id of the tree to start from, None for an empty one.
    """

    def __init__(self, read: Callable[[str], bytes], root: str | None) -> None:
        self._read = read
        self._root = Folder(read(root), root) if root else Folder()
        self._dirty: set[tuple[bytes, ...]] = set()

    def get(self, path: str) -> str | None:
        """The id of the file at `path`, None where there is none."""
        *folders, name = path.encode("utf-8", "surrogateescape").split(b"/")
        folder: Folder | None = self._root
        for step in folders:
            folder = self._child(folder, step) if folder else None
        found = folder.find(name) if folder else None
        return found[1] if found and found[0] != TREE_MODE else None

    def names(self, path: str) -> list[str]:
        """The names of the files directly in the folder `path` (`.` is the root)."""
        folder: Folder | None = self._root
        for step in [] if path == "." else path.encode("utf-8", "surrogateescape").split(b"/"):
            folder = self._child(folder, step) if folder else None
        keys = folder.keys if folder else []
        return [key.decode("utf-8", "surrogateescape") for key in keys if not key.endswith(b"/")]

    def put(self, path: str, oid: str, mode: bytes | None = None) -> None:
        """Sets the file at `path` to the blob `oid`; without `mode` a file keeps its own."""
        *folders, name = path.encode("utf-8", "surrogateescape").split(b"/")
        folder = self._root
        for depth, step in enumerate(folders):
            child = self._child(folder, step)
            if child is None:
                child = folder.children[step] = Folder()
            self._dirty.add(tuple(folders[: depth + 1]))
            folder = child
        self._dirty.add(())
        folder.children.pop(name, None)  # a folder that stood here is gone, with what was to be written below it
        held = folder.find(name)
        kept = PROGRAM_MODE if held is not None and held[0] == PROGRAM_MODE else FILE_MODE
        folder.put(mode or kept, name, oid)

    def remove(self, path: str) -> None:
        """Takes the file at `path` away, and the folders that are empty then."""
        *folders, name = path.encode("utf-8", "surrogateescape").split(b"/")
        if self.get(path) is None:
            return
        folder = self._root
        for depth, step in enumerate(folders):
            child = self._child(folder, step)
            assert child is not None
            self._dirty.add(tuple(folders[: depth + 1]))
            folder = child
        self._dirty.add(())
        folder.remove(name)

    def write(self, emit: Callable[[GitObject], None]) -> str:
        """Hands every changed tree to `emit`, the deepest first, and returns the id of the root."""
        for steps in sorted(self._dirty, key=len, reverse=True):
            folder = self._at(steps)
            if folder is None:
                continue
            if steps and not folder.entries:
                parent = self._at(steps[:-1])
                assert parent is not None
                parent.remove(steps[-1] + b"/")
                del parent.children[steps[-1]]
                continue
            before = folder.oid
            tree = make_object("tree", folder.data(), before)
            folder.oid = tree.oid
            if tree.oid != before:
                emit(tree)
            if steps:
                parent = self._at(steps[:-1])
                assert parent is not None
                parent.put(TREE_MODE, steps[-1], tree.oid)
        self._dirty.clear()
        if self._root.oid is None:
            empty = make_object("tree", b"")
            self._root.oid = empty.oid
            emit(empty)
        return self._root.oid

    def _at(self, steps: tuple[bytes, ...]) -> Folder | None:
        folder: Folder | None = self._root
        for step in steps:
            folder = folder.children.get(step) if folder else None
        return folder

    def _child(self, folder: Folder, step: bytes) -> Folder | None:
        child = folder.children.get(step)
        if child is None:
            found = folder.find(step)
            if found is None or found[0] != TREE_MODE:
                return None
            child = folder.children[step] = Folder(self._read(found[1]), found[1])
        return child


# Packs -----------------------------------------------------------------------------------------------------------


def _varint(number: int) -> bytes:
    if number <= 0x7F:
        return bytes((number,))
    if number <= 0x3FFF:
        return bytes((number & 0x7F | 0x80, number >> 7))
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def entry_header(kind: int, size: int) -> bytes:
    """What stands before an entry of a pack: its kind, and the size of its data when it is inflated."""
    first, size = kind << 4 | size & 15, size >> 4
    if size <= 0x7F:
        return bytes((first | 0x80, size)) if size else bytes((first,))
    out = bytearray()
    while size:
        out.append(first | 0x80)
        first, size = size & 0x7F, size >> 7
    out.append(first)
    return bytes(out)


def _offset_bytes(distance: int) -> bytes:
    out = [distance & 0x7F]
    distance >>= 7
    if 0 < distance <= 0x80:
        return bytes((distance - 1 | 0x80, out[0]))
    while distance:
        distance -= 1
        out.append(distance & 0x7F | 0x80)
        distance >>= 7
    return bytes(reversed(out))


def _copies(start: int, size: int) -> bytes:
    """Delta instructions that copy `size` bytes of the base from `start`."""
    if 0 < size <= 0xFFFF and start <= 0xFFFF:  # nearly always: spelled out, since a note costs a dozen of these
        low, high, few, many = start & 0xFF, start >> 8, size & 0xFF, size >> 8
        flags = 0x80 | (low > 0) | (high > 0) << 1 | (few > 0) << 4 | (many > 0) << 5
        return bytes([flags, *[byte for byte in (low, high, few, many) if byte]])
    out = bytearray()
    while size:
        step = min(size, 0xFFFF)
        flags, tail = 0x80, bytearray()
        for bit in range(4):
            byte = start >> 8 * bit & 0xFF
            if byte:
                flags |= 1 << bit
                tail.append(byte)
        for bit in range(2):
            byte = step >> 8 * bit & 0xFF
            if byte:
                flags |= 1 << 4 + bit
                tail.append(byte)
        out.append(flags)
        out += tail
        start, size = start + step, size - step
    return bytes(out)


def _common(a: bytes, b: bytes) -> int:
    """How many bytes two strings share at their beginnings."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_end(a: bytes, b: bytes, most: int) -> int:
    """How many bytes, `most` at the most, two strings share at their ends."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if a[len(a) - middle : len(a) - low] == b[len(b) - middle : len(b) - low]:
            low = middle
        else:
            high = middle - 1
    return low


def delta(base: bytes, target: bytes) -> bytes:
    """A Git delta that makes `target` from `base` when they differ in one place: an append, an inserted entry."""
    size, wanted = len(base), len(target)
    if target.startswith(base):
        head, tail = size, 0
    elif size == wanted <= _SHORT:
        head, tail = _one_place(base, target)
    else:
        head = _common(base, target)
        more = wanted - size
        if more > 0 and base[head:] == target[head + more :]:
            tail = size - head
        else:
            tail = _common_end(base, target, min(size, wanted) - head)
    middle = target[head : wanted - tail]
    sizes, before, behind = _varint(size) + _varint(wanted), _copies(0, head), _copies(size - tail, tail)
    if 0 < len(middle) <= 127:
        return b"".join((sizes, before, bytes((len(middle),)), middle, behind))
    pieces = [middle[at : at + 127] for at in range(0, len(middle), 127)]
    return b"".join((sizes, before, *[bytes((len(piece),)) + piece for piece in pieces], behind))


def _one_place(base: bytes, target: bytes) -> tuple[int, int]:
    """How many bytes two different strings of one length share at their beginnings and at their ends."""
    differ = int.from_bytes(base, "big") ^ int.from_bytes(target, "big")
    return len(base) - (differ.bit_length() + 7) // 8, ((differ & -differ).bit_length() - 1) // 8


@dataclass(frozen=True, slots=True)
class Pack:
    """A finished pack and its index, as bytes' digests and the rows of the index."""

    name: str
    index: bytes


def deflated(data: bytes) -> bytes:
    """A zlib stream. Most entries are deltas of a tree, an id and little else, which no compression makes shorter.

    What is short gets a small window: to set up one of 32 KB takes three times as long as to compress a note.
    """
    size = len(data)
    if size > 64:
        if size > _WINDOW:
            return zlib.compress(data, 1)
        stream = zlib.compressobj(1, zlib.DEFLATED, _WINDOW_BITS, 4)
        return stream.compress(data) + stream.flush()
    head = b"\x78\x01\x01" + size.to_bytes(2, "little") + (size ^ 0xFFFF).to_bytes(2, "little")
    return head + data + zlib.adler32(data).to_bytes(4, "big")


def write_pack(objects: Iterable[GitObject], write: Callable[[bytes], object], count: int) -> Pack:
    """Streams a version 2 pack of exactly `count` objects to `write` and returns its name and version 2 index.

    An object whose `base` stands earlier in the same pack is written as a delta when that is shorter.
    """
    digest = hashlib.sha1(usedforsecurity=False)
    at, many = 0, count > _MANY

    def out(data: bytes) -> None:
        nonlocal at
        digest.update(data)
        write(data)
        at += len(data)

    out(b"PACK" + (2).to_bytes(4, "big") + count.to_bytes(4, "big"))
    rows: list[tuple[bytes, int, int]] = []
    seen: dict[str, tuple[int, int, bytes]] = {}  # id -> offset, depth, data: only of what may serve as a base
    for item in objects:
        offset, depth = at, 0
        base = seen.get(item.base) if item.base else None
        entry = b""
        if base is not None and base[1] < _MOST_DELTAS:
            change = delta(base[2], item.data)
            if len(change) < len(item.data) // 2:
                depth = base[1] + 1
                header = entry_header(_OFS_DELTA, len(change)) + _offset_bytes(offset - base[0])
                entry = header + deflated(change)
        if not entry:
            stored = many and item.kind == "tree"  # half of it are ids; when packs are joined most become deltas
            packed = zlib.compress(item.data, 0) if stored else deflated(item.data)
            entry = entry_header(KINDS[item.kind], len(item.data)) + packed
        if item.kind == "tree" or item.base:
            seen[item.oid] = (offset, depth, item.data)
            if base is not None and item.base:
                seen.pop(item.base, None)  # the newest version is the next one's base; keeps memory flat
        rows.append((bytes.fromhex(item.oid), zlib.crc32(entry), offset))
        out(entry)
    if len(rows) != count:
        raise ValueError(f"a pack of {count} objects was announced and {len(rows)} came")
    checksum = digest.digest()
    write(checksum)
    return Pack(checksum.hex(), _pack_index(rows, checksum))


def _pack_index(rows: list[tuple[bytes, int, int]], checksum: bytes) -> bytes:
    rows.sort()
    fan = [0] * 256
    for name, _, _ in rows:
        fan[name[0]] += 1
    total = 0
    table = bytearray(b"\xfftOc" + (2).to_bytes(4, "big"))
    for number in fan:
        total += number
        table += total.to_bytes(4, "big")
    table += b"".join(name for name, _, _ in rows)
    table += b"".join(crc.to_bytes(4, "big") for _, crc, _ in rows)
    large = [offset for _, _, offset in rows if offset > 0x7FFFFFFF]
    places = {offset: at for at, offset in enumerate(large)}
    table += b"".join(
        (offset if offset <= 0x7FFFFFFF else 0x80000000 | places[offset]).to_bytes(4, "big") for _, _, offset in rows
    )
    table += b"".join(offset.to_bytes(8, "big") for offset in large)
    table += checksum
    return bytes(table) + hashlib.sha1(table, usedforsecurity=False).digest()
