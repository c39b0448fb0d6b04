"""The XML parts of a zipped workbook, element by element, without holding more than one of them."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from xml.etree.ElementTree import Element, XMLPullParser
from xml.parsers import expat
from zipfile import ZipFile

from rag_eval.errors import TableError

_BLOCK = 2**16
_LONGEST_PIECE = 8 * 2**20
"""Bytes of one text or tag; a cell may hold far less."""
_LARGEST_ELEMENT = 32 * 2**20
"""Bytes of one element that is read as a whole, such as a row."""
_MOST_INSIDE = 500_000
"""Starts and ends of elements within one that is read as a whole. A full row of Excel's has 100,000."""


class Package:
    """An open file. Raises TableError for what only a damaged or hostile file holds."""

    def __init__(self, path: Path) -> None:
        self._name = path.name
        self._archive = ZipFile(path)
        self._left = 1_200_000 + path.stat().st_size // 2
        """Starts and ends of elements that may still come. Real sheets have less than one for each byte of the file."""
        self.names = frozenset(self._archive.namelist())

        self._open: list[IO[bytes]] = []

    def close(self) -> None:
        """Also the part that is being read."""
        for part in self._open:
            part.close()
        self._archive.close()

    def elements(self, part: str, tags: Collection[str]) -> Iterator[Element]:
        """Each outermost element with one of the tags, complete. It must be used before the next one is asked for.

        Raises KeyError for a part that is not there.
        """
        with self.opened(part) as xml:
            yield from self._elements(part, xml, tags)

    @contextmanager
    def opened(self, part: str) -> Iterator[IO[bytes]]:
        """The part, from its beginning on; one that defines entities is refused, since they can expand without end."""
        with self._archive.open(part) as xml:
            if _has_doctype(xml):
                raise TableError(
                    f"{self._name}: its part {part[:80]} declares a document type, as no spreadsheet program does; "
                    "copy the table into a new workbook"
                )
        with self._archive.open(part) as xml:
            self._open.append(xml)
            yield xml
            self._open.remove(xml)

    def _elements(self, part: str, xml: IO[bytes], tags: Collection[str]) -> Iterator[Element]:
        parser: Any = XMLPullParser(("start", "end"))
        around: list[Element] = []
        wanted: Element | None = None
        piece = held = inside = 0
        while block := xml.read(_BLOCK):
            parser.feed(block)
            piece += len(block)
            held += len(block)
            for event, element in parser.read_events():
                piece = 0
                inside += 1
                if wanted is not None:
                    if element is not wanted:
                        continue
                    yield wanted
                    wanted = None
                elif event == "start":
                    if element.tag in tags:
                        wanted = element
                    else:
                        around.append(element)
                    continue
                else:
                    around.pop()
                element.clear()
                if around:
                    around[-1].clear()  # what is read ahead of the events stays alive in them
                self._spend(part, inside)
                held = inside = 0
            if piece > _LONGEST_PIECE or held > _LARGEST_ELEMENT or inside > _MOST_INSIDE:
                self._refuse(part)
        parser.close()

    def _spend(self, part: str, events: int) -> None:
        self._left -= events
        if self._left < 0:
            self._refuse(part)

    def _refuse(self, part: str) -> None:
        raise TableError(
            f"{self._name}: its part {part[:80]} contains far more than the size of the file suggests; copy the table "
            "into a new workbook, or save it as .csv"
        )


def _has_doctype(xml: IO[bytes]) -> bool:
    """Whether the XML declares a document type before its first element. What is no XML is for the parser to say."""
    parser = expat.ParserCreate()
    seen: list[bool] = []
    parser.StartDoctypeDeclHandler = lambda *_: seen.append(True)
    parser.StartElementHandler = lambda *_: seen.append(False)
    read = 0
    try:
        while not seen and read <= _LONGEST_PIECE and (block := xml.read(_BLOCK)):
            parser.Parse(block)
            read += len(block)
    except expat.ExpatError:
        return False
    return seen[:1] == [True]
