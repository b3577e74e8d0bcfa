"""Bad files: refused in one line, before anything is written."""

import gzip
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from cli.bad_files import (
    BITS,
    GRAY,
    PICKLE,
    bomb,
    changed,
    described,
    encrypted,
    few_labels,
    idx,
    image,
    labeled,
    npy,
    npy_claiming,
    npz,
    png_claiming,
    several,
    table,
    zipped,
)
from cli.lines import assert_refused
from ebse.datasets._download import FILES


class Bad(NamedTuple):
    """Files by name (None: a folder), a command line, and a part of the expected error."""

    files: dict[str, bytes | None]
    line: str
    piece: str


def csv(
    *lines: str,
    piece: str,
    line: str = "fit x.csv",
    names: str = "a,b,c",
    more: tuple[str, ...] = ("0,1,1", "1,0,1"),
) -> Bad:
    """A table x.csv of three columns with a bad line."""
    return Bad({"x.csv": table(*lines, names=names, more=more)}, line, piece)


def file(name: str, content: bytes | None, piece: str, *options: str, command: str = "fit") -> Bad:
    """One file and nothing else."""
    return Bad({name: content}, " ".join((command, name, *options)), piece)


LABELS = few_labels()
FLOATS = BITS.astype(float)
RECORDS = np.zeros(5, dtype=[("a", "f8"), ("b", "i4")])
BODY = bytes(8 * 6 * 4)

NAMED = {
    "no such file": Bad({}, "fit nowhere.csv", "does not exist; check the name"),
    "no such folder": Bad({}, "fit nowhere/", "does not exist; check the name"),
    "a long name": Bad({}, f"fit {'x' * 300}.csv", "does not exist; check the name"),
    "nothing named": Bad({}, "fit", "--data requires an argument"),
    "empty csv": file("x.csv", b"", "an empty file"),
    "empty tsv": file("x.tsv", b"", "an empty file"),
    "empty npy": file("x.npy", b"", "an empty file"),
    "empty npz": file("x.npz", b"", "an empty file"),
    "empty without suffix": file("x", b"", "an empty file"),
    "unknown suffix": file("x.ods", b"PK\x03\x04 and more", "a file of another kind (.ods); convert it"),
    "no Excel file": file("x.xlsx", b"PK\x03\x04 and more", "x.xlsx must be an Excel file, got one that"),
    "older Excel": file("x.xls", b"\xd0\xcf\x11\xe0", "older kind (.xls); save it as .xlsx"),
    "no Feather file": file(
        "x.feather", b"ARROW1 and more", "x.feather must be a Feather file, got one that"
    ),
    "no suffix": file("x", b"1,2\n3,4\n", "a file of another kind (no suffix)"),
    "info, parquet": file("x.parquet", b"PAR1", "must be a Parquet file, got one that", command="info"),
    "a folder named like a table": file("x.csv/", None, "x.csv must hold images"),
}

TABLES = {
    "blank lines": file("x.csv", b"\n\n  \n", "got an empty file"),
    "a header alone": csv(more=(), piece="at least 2 rows and one column of numbers, got 0 rows"),
    "one row": csv(more=("0,1,0",), piece="got 1 rows and 3 columns"),
    "text": csv(
        "0,red,1", piece="'red' in line 4, column 'b'; leave out columns that are not needed with --drop b"
    ),
    "several words": csv(
        "red,1,blue",
        piece="column 'a', and words in 1 more columns; leave out columns that are not needed with --drop a c,",
    ),
    "decimal commas": csv('"1,5",0,1', piece="save it with decimal points"),
    "no such id": csv(line="fit x.csv --id A", piece="got 'A'; it has 'a', 'b', 'c'; did you mean 'a'?"),
    "text in a long file": csv(*["0,1,0"] * 5000, "0,1,x", piece="'x' in line 5004, column 'c'"),
    "a very long text": csv("0," + "x" * 200_000 + ",1", piece="field larger than field limit"),
    "a long text": csv("0," + "x" * 1000 + ",1", piece="x…' in line 4"),
    "nan": csv("0,nan,1", piece="a missing one in line 4, column 'b'; fill it in"),
    "NA": csv("0,1,NA", piece="a missing one in line 4, column 'c'"),
    "an empty entry": csv("0,,1", piece="fit with --missing"),
    "an empty line of a single column": csv("?", names="a", more=("0", "1"), piece="a missing one in line 4"),
    "infinity": csv(
        "0,inf,1", piece="finite numbers below 1e+20, got 'inf' in line 4, column 'b'; correct it, or leave"
    ),
    "minus infinity": csv("-Infinity,0,1", piece="'-Infinity' in line 4, column 'a'"),
    "1e999": csv("0,1,1e999", piece="'1e999' in line 4, column 'c'"),
    "infinity where entries may be missing": csv(
        "0,inf,", line="fit x.csv --missing", piece="'inf' in line 4"
    ),
    "a huge number": csv("0,1,-1e20", piece="finite numbers below 1e+20, got '-1e20' in line 4, column 'c'"),
    "a date": csv(
        "0,2024-01-31,1", piece="the date '2024-01-31' in line 4, column 'b'; convert dates to numbers"
    ),
    "a date of another country": csv("31.1.2024,0,1", piece="the date '31.1.2024' in line 4, column 'a'"),
    "a date and a time": csv("0,1,2024-01-31T10:00", piece="the date '2024-01-31T10:00' in line 4"),
    "no header": csv(
        names="0.5,1,7", piece="got numbers (0.5, 1, 7); add a line of names, or pass --no-header"
    ),
    "a long first line of numbers": csv(
        names="4,5,6,7", more=("0,1,1,1", "1,0,1,1"), piece="got numbers (4, 5, 6, …)"
    ),
    "no header, a word": csv(line="fit x.csv --no-header", piece="'a' in line 1, column '0'"),
    "no header, an unknown column": csv(
        line="fit x.csv --no-header --label kind", piece="got 'kind'; it has '0', '1', '2'"
    ),
    "underscores": csv("0,1_000,1", piece="'1_000' in line 4, column 'b'"),
    "a decimal comma": csv('"0,5",1,1', piece="'0,5' in line 4, column 'a'"),
    "hexadecimal": csv("0x10,1,1", piece="'0x10' in line 4"),
    "NUL": csv("0,\0,1", piece="in line 4, column 'b'"),
    "an unclosed quote": csv('0,"1,1', "1,0,1", piece="unexpected end of data at line"),
    "text after a quote": csv('0,"1"x,1', piece="at line 4; correct the line"),
    "a short line": csv("0,1", piece="3 entries in every line, got 2 in line 4"),
    "a long line": csv("0,1,0,1", piece="got 4 in line 4; correct the line"),
    "one name twice": csv(names="a,b,a", piece="'a' twice; rename one"),
    "a column without a name": csv(names="a,,c", piece="none for column 2; name it in the first line"),
    "a number among names": csv(names="a,0.5,c", piece="the value 0.5; add a line of names"),
    "a first line of numbers and gaps": csv(names="4,NA,7", piece="add a line of names"),
    "semicolons, a long line": file("x.csv", b"a;b\n0;1;1\n1;0\n", "only ';'; pass --delimiter ';'"),
    "tabs, a long line": file("x.csv", b"a\tb\n0\t1\t1\n1\t0\n", "pass --delimiter 'tab'"),
    "commas in a tsv file, a long line": file("x.tsv", b"a,b\n0,1,1\n1,0\n", "pass --delimiter ','"),
    "bars, a long line": file("x.csv", b"a|b\n0|1|1\n1|0\n", "pass --delimiter '|'", command="info"),
    "two delimiters": csv(line="fit x.csv --delimiter ';;'", piece="--delimiter must be one character"),
    "a quote as delimiter": csv(line="fit x.csv --delimiter '\"'", piece="--delimiter must be one character"),
    "a line end as delimiter": csv(
        line="fit x.csv --delimiter '\n'", piece="--delimiter must be one character"
    ),
    "an empty delimiter": csv(line="fit x.csv --delimiter ''", piece="--delimiter must be one character"),
    "no encoding": file("x.csv", b"a,gr\x81\xf6\n0,1\n1,0\n", "the byte 0x81; save it as UTF-8"),
    "damaged UTF-16": file("x.csv", "a,b\n0,1\n".encode("utf-16")[:-1], "UTF-8, got damaged UTF-16"),
    "a pickle": file("x.csv", PICKLE, "x.csv must"),
    "an array of csv": csv(line="fit x.csv --array X", piece="--array must be for an npz file"),
    "only names of rows": file("x.csv", b",\n", "name for every column"),
    "no label column": csv(
        line="fit x.csv --label kind", piece="--label names, got 'kind'; it has 'a', 'b', 'c'"
    ),
    "labels all empty": file("x.csv", labeled([""] * 40), "got no label at all", "--label kind"),
    "one class": file("x.csv", labeled(["odd"] * 20 + [""] * 20), "one class, 'odd'", "--label kind"),
    "a class for each row": file(
        "x.csv", labeled([f"n{i}" for i in range(40)]), "labels that rows share", "--label kind"
    ),
    "a label that is dropped": csv(
        line="fit x.csv --label a --drop a", piece="--label and --drop must name different"
    ),
    "an unknown column dropped": csv(
        line="fit x.csv --drop z", piece="the column that --drop names, got 'z'"
    ),
    "everything dropped": csv(line="fit x.csv --drop a b c", piece="2 rows and 0 columns"),
    "everything dropped but the label": csv(line="fit x.csv --label a --drop b c", piece="0 columns"),
    "an empty column": csv(
        more=("0,,1", "1,,0"), line="fit x.csv --missing", piece="got none in 'b'; pass --drop 'b'"
    ),
    "labels without being named": file("x.csv", labeled(LABELS), "'odd' in line 2, column 'kind'"),
}

ARRAYS = {
    "one axis": file("x.npy", npy(FLOATS[:, 0]), "got shape (40,); reshape the array"),
    "no axis": file("x.npy", npy(1.0), "got shape ()"),
    "four axes": file("x.npy", npy(np.zeros((3, 2, 2, 3))), "got shape (3, 2, 2, 3)"),
    "no rows": file("x.npy", npy(np.zeros((0, 5))), "got shape (0, 5); give a file with more"),
    "no columns": file("x.npy", npy(np.zeros((5, 0))), "got shape (5, 0)"),
    "one row": file("x.npy", npy(FLOATS[:1]), "1 rows"),
    "complex numbers": file("x.npy", npy(FLOATS + 1j), "type complex128; convert them"),
    "words": file("x.npy", npy(BITS.astype(str)), "must hold numbers, got values of type <U"),
    "bytes": file("x.npy", npy(BITS.astype("S1")), "values of type |S1"),
    "no letters": file("x.npy", npy_claiming(described("(5, 6)", "<U0")), "x.npy of <U0"),
    "records": file("x.npy", npy(RECORDS), "must hold numbers"),
    "dates": file("x.npy", npy(BITS.astype("datetime64[D]")), "type datetime64[D]; convert dates to numbers"),
    "a huge number": file(
        "x.npy", npy(np.where(BITS, 0, 1e20)), "finite numbers below 1e+20, got 1e+20 in row 0"
    ),
    "no header of npy": file("x.npy", npy(FLOATS), "--no-header must be for a table", "--no-header"),
    "objects": file(
        "x.npy", npy(FLOATS.astype(object)), "Python objects, which would be unpickled; save numbers"
    ),
    "NaN": file("x.npy", npy(np.where(BITS, 0, np.nan)), "a missing one in row 0, column "),
    "infinity": file("x.npy", npy(np.where(BITS, 0, np.inf)), "infinity in row 0", "--missing"),
    "beyond 64 bits": file("x.npy", npy(np.where(BITS, np.longdouble("1e4000"), 0)), "infinity in row 0"),
    "a pickle": file("x.npy", PICKLE, "whose header cannot be read"),
    "text": file("x.npy", b"a,b\n0,1\n1,0\n", "whose header cannot be read"),
    "cut short": file("x.npy", npy(FLOATS)[:-8], "x.npy of 1920 bytes in 1912; save it again"),
    "cut in its header": file("x.npy", npy(FLOATS)[:30], "whose header cannot be read"),
    "more than claimed": file("x.npy", npy(FLOATS) + b"more", "x.npy of 1920 bytes in 1924"),
    "far less than claimed": file("x.npy", npy_claiming(described("(10**9, 10**9)"), BODY), "cannot be read"),
    "a terabyte claimed": file(
        "x.npy", npy_claiming(described("(1000000000, 1000)"), BODY), "8000000000000 bytes in"
    ),
    "a negative shape": file(
        "x.npy", npy_claiming(described("(-4, -6)"), BODY), "shape (-4, -6); save it again"
    ),
    "a long header": file("x.npy", npy_claiming(described("(4, 6)") + " " * 60_000, BODY), "cannot be read"),
    "a very long header": file("x.npy", npy_claiming(" " * 2**20, version=2), "cannot be read"),
    "an unknown header": file("x.npy", npy_claiming("{'shape': (4, 6)}", BODY), "cannot be read"),
    "an unfinished header": file("x.npy", npy_claiming("{'descr': ('<f8'", BODY), "cannot be read"),
    "a deep header": file("x.npy", npy_claiming("-" * 9000 + "1", BODY), "cannot be read"),
    "an unknown version": file("x.npy", b"\x93NUMPY\x09\x09" + bytes(100), "x.npy must be NumPy's format"),
    "an array of npy": file("x.npy", npy(FLOATS), "--array must be for an npz file", "--array X"),
    "a delimiter of npy": file("x.npy", npy(FLOATS), "--delimiter must be for a table", "--delimiter ';'"),
    "no such column": file("x.npy", npy(FLOATS), "got '6'; it has '0', '1'", "--label 6"),
    "too many labels": file(
        "x.npy", npy(np.random.default_rng(1).random((50, 3))), "50 different ones", "--label 0"
    ),
    "not a zip": file("x.npz", b"PK and nothing", "one that cannot be opened"),
    "npy named npz": file("x.npz", npy(FLOATS), "one that cannot be opened"),
    "no arrays": file("x.npz", zipped(), "hold arrays, got none; save some with numpy.savez"),
    "no arrays but text": file("x.npz", zipped(readme=b"hello there"), "readme, whose header cannot be read"),
    "a changed byte": file("x.npz", changed(npz(X=FLOATS), 600), "cannot be opened (Bad CRC-32"),
    "a cut zip": file("x.npz", npz(X=FLOATS)[:-40], "one that cannot be opened"),
    "encrypted": file("x.npz", encrypted(), "encrypted"),
    "a bomb": file("x.npz", bomb(), "compressed 300 times at most"),
    "info, a bomb": file("x.npz", bomb(), "save it uncompressed", command="info"),
    "a pickled member": file("x.npz", zipped(**{"X.npy": PICKLE}), "X, whose header cannot be read"),
    "an object member": file("x.npz", npz(X=FLOATS.astype(object)), "X of Python objects"),
    "a member cut short": file("x.npz", zipped(**{"X.npy": npy(FLOATS)[:-8]}), "hold what its header claims"),
    "several arrays": file("x.npz", npz(X=FLOATS, Z=FLOATS), "got 2 (X, Z); name one with --array"),
    "no array of rows": file("x.npz", npz(y=FLOATS[:, 0]), "got 0 (none with two axes)"),
    "no such array": file("x.npz", npz(X=FLOATS), "got 'Z' among X; correct it", "--array Z"),
    "an array of words": file("x.npz", npz(X=FLOATS, y=BITS.astype(str)), "values of type <U", "--array y"),
    "labels too few": file(
        "x.npz", npz(X=FLOATS, y=np.arange(3)), "a label for each of 40 rows in y", "--label y"
    ),
    "labels too deep": file("x.npz", npz(X=FLOATS, y=BITS), "a label for each of 40 rows in y", "--label y"),
    "labels of bytes": file(
        "x.npz", npz(X=FLOATS, y=np.array([b"a"] * 40)), "shape (40,) of |S1", "--label y"
    ),
    "labels of no kind": file("x.npz", npz(X=FLOATS), "got 'y'; it has '0'", "--label y"),
}

MNIST = dict(zip(FILES, (idx(GRAY), idx(np.arange(6, dtype=np.uint8))) * 2, strict=True))


def mnist(piece: str, *options: str, **others: bytes) -> Bad:
    """A folder with MNIST's four files, some of them others; "_" stands for "-"."""
    held = MNIST | {name.replace("_", "-"): content for name, content in others.items()}
    return Bad({f"d/{name}": content for name, content in held.items()}, " ".join(("fit d", *options)), piece)


PICTURES = {
    "an empty folder": file("d/", None, "got none; check the folder"),
    "a folder of text": Bad({"d/x.txt": b"hello"}, "fit d", "d must hold images (.png"),
    "gif alone": Bad({"d/x.gif": image(GRAY[0], "GIF")}, "fit d", "d must hold images (.png"),
    "gif named png": Bad({"d/x.png": image(GRAY[0], "GIF")}, "fit d", "x.png must be an image (PNG"),
    "text named png": Bad({"d/x.png": b"hello"}, "fit d", "remove or repair it"),
    "an empty image": Bad({"d/x.png": b""}, "fit d", "x.png must be an image"),
    "a damaged webp": Bad({"d/x.webp": b"RIFF\x04\0\0\0WEBPVP8 "}, "fit d", "x.webp must be"),
    "a cut tiff": Bad({"d/x.tif": image(GRAY[0], "TIFF")[:-40]}, "fit d", "x.tif must be"),
    "a tiff of two images": Bad({"d/x.tif": several(GRAY[0], "TIFF")}, "fit d", "x.tif must hold one image"),
    "a moving webp": Bad({"d/x.webp": several(GRAY[0], "WEBP")}, "fit d", "x.webp must hold one image"),
    "a tiff of 16 bits": Bad(
        {"d/x.tif": image(GRAY[0].astype(np.uint16) * 257, "TIFF")}, "fit d", "x.tif must have 8 bits"
    ),
    "a cut image": Bad({"d/x.png": image(GRAY[0])[:-25]}, "fit d", "x.png must be"),
    "a cut photo": Bad(
        {"d/x.jpg": image(np.zeros((40, 40), np.uint8), "JPEG")[:-100]},
        "fit d",
        "x.jpg must be a complete image",
    ),
    "a changed image": Bad({"d/x.png": changed(image(GRAY[0]), 45)}, "fit d", "x.png must be"),
    "a broken pgm": Bad({"d/x.pgm": b"P5\n2 x\n255\n1234"}, "fit d", "x.pgm must be"),
    "a cut pgm": Bad({"d/x.pgm": b"P5\n20 20\n255\n1234"}, "fit d", "x.pgm must be"),
    "one image": Bad({"d/x.png": image(GRAY[0])}, "fit d", "at least 2 rows"),
    "a large image": Bad(
        {"d/x.png": png_claiming(9000, 9000)}, "fit d", "at most 67108864 pixels, got 9000 × 9000"
    ),
    "a huge image": Bad({"d/x.png": png_claiming(2**31 - 1, 2**31 - 1)}, "fit d", "x.png must be an image"),
    "an image of 16 bits": Bad(
        {"d/x.png": image(GRAY[0].astype(np.uint16) * 257)}, "fit d", "x.png must have 8 bits"
    ),
    "another label": Bad({"d/x.png": image(GRAY[0])}, "fit d --label kind", "pass --label folder"),
    "no subfolders": Bad(
        {"d/x.png": image(GRAY[0]), "d/z.png": image(GRAY[1])}, "fit d --label folder", "no label at all"
    ),
    "a dropped pixel": Bad({"d/x.png": image(GRAY[0])}, "fit d --drop 3", "--drop must be for columns"),
    "a delimiter of images": Bad(
        {"d/x.png": image(GRAY[0])}, "info d --delimiter ,", "--delimiter must be for a table"
    ),
    "idx cut short": file("x.idx", idx(GRAY)[:-5], "claims 72 bytes and that holds 67"),
    "idx with more": file("x.idx", idx(GRAY) + b"1", "claims 72 bytes and that holds more"),
    "idx cut in its header": file("x-idx3-ubyte", idx(GRAY)[:9], "ends within its header"),
    "idx of floats": file("x.idx", idx(GRAY.astype(">f4"), 0x0D), "of type 0x0d, and only unsigned bytes"),
    "idx of labels": file(
        "x.idx", idx(np.arange(9, dtype=np.uint8)), "as labels have; give the file of images"
    ),
    "idx of four axes": file("x.idx", idx(GRAY[None]), "hold images or rows, got shape (1, 6, 4, 3)"),
    "idx without images": file("x.idx", idx(GRAY[:0]), "0 rows"),
    "idx and a label": file("x.idx", idx(GRAY), "give the folder, and --label labels", "--label y"),
    "idx, compressed and cut": file("x.gz", gzip.compress(idx(GRAY))[:-15], "x.gz"),
    "idx, compressed and changed": file(
        "x.gz", changed(gzip.compress(idx(GRAY)), -6), "cannot be decompressed"
    ),
    "a compressed bomb": file(
        "x.gz", gzip.compress(idx(np.zeros((70, 2**10, 2**10), np.uint8)), 6), "compressed 300 times"
    ),
    "a compressed table, cut": file(
        "x.csv.gz", gzip.compress(b"a,b\n0,1\n1,0\n")[:-9], "x.csv.gz must be compressed by gzip"
    ),
    "something compressed": file("x.gz", b"\x1f\x8b\x08" + bytes(7) + b"\xff" * 20, "a file of another kind"),
    "MNIST with another label": mnist("pass --label labels", "--label kind"),
    "MNIST with labels too few": mnist("with a label for each", **{FILES[1]: idx(GRAY[:3, 0, 0])}),
    "MNIST cut short": mnist("claims 72 bytes", **{FILES[2]: idx(GRAY)[:-9]}),
}

CASES = {
    f"{of}: {name}": bad
    for of, cases in (("name", NAMED), ("table", TABLES), ("array", ARRAYS), ("image", PICTURES))
    for name, bad in cases.items()
}


@pytest.mark.parametrize("name", CASES)
def test_bad_file_is_refused_in_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files, line, piece = CASES[name]
    for place, content in files.items():
        path = tmp_path / place
        path.parent.mkdir(exist_ok=True, parents=True)
        if content is None:
            path.mkdir()
        else:
            path.write_bytes(content)

    def work(*arguments: object) -> None:
        raise AssertionError("the fit was started")

    monkeypatch.setattr("ebse.workflow.fit.carry_out", work)
    assert_refused(line, piece, tmp_path, monkeypatch, capsys)
