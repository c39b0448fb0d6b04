"""A table with one row per message, to one row for each answer of a bot, with the question and the turns before it."""

import re
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from rag_eval.errors import TableError
from rag_eval.records import ASSISTANT, USER, Turn
from rag_eval.tables.cells import BadCell, Cell, ChatMessage, as_message, cell_at, column_letter
from rag_eval.tables.columns import Asked, ColumnUse, Named, matches
from rag_eval.tables.input_files import Room
from rag_eval.tables.names import folded, is_conversation, names_bots
from rag_eval.tables.speakers import is_speaker, is_speakers, role_of, roles_of

Row = tuple[int, Sequence[Cell]]

_TEXTS = (
    "content", "text", "message", "utterance", "body", "message text", "value", "nachricht", "inhalt", "contenu",
    "contenido", "mensaje", "conteúdo", "mensagem", "contenuto", "messaggio", "inhoud", "bericht", "内容", "內容",
    "消息", "訊息", "メッセージ", "発言", "本文",
)  # fmt: skip
_SPEAKERS = frozenset(
    (
        "role", "speaker", "from", "sender", "sender type", "message type", "direction",
        "author", "author role", "author type", "participant",
        "rolle", "sprecher", "absender", "rôle", "rol", "ruolo", "papel", "emisor", "remetente", "mittente", "afzender",
        "角色", "役割", "話者", "送信者", "发送者", "發送者",
    )
)  # fmt: skip
"""Names of columns that name the speakers."""
_ORDERS = frozenset(
    (
        "turn", "turn id", "turn index", "turn number", "message index", "message number", "position", "sequence",
        "timestamp", "created at", "sent at",
    )
)  # fmt: skip
"""Names of columns that tell the order of messages."""
_NUMBER, _DATE = re.compile(r"\d{1,15}(?:\.\d+)?"), re.compile(r"\d{4}-\d\d-\d\d[T ]?[\d:.]*Z?")


class Messages:
    """Such a table, once its columns are known; its rows are walked over once."""

    def __init__(
        self,
        place: str,
        header: Sequence[Cell],
        columns: Mapping[str, int],
        roles: Mapping[str, str],
        room: Room,
    ) -> None:
        """`columns` has the positions of "speaker", "text", "conversation" and, if there is one, "bot".

        `roles` are those of the speakers of the first rows, in lower case.
        """
        self._place = place
        self._header = header
        self._speaker, self._text = columns["speaker"], columns["text"]
        self._conversation = columns["conversation"]
        self._bot = columns.get("bot")
        self._order = next(
            (n for n, name in enumerate(header) if isinstance(name, str) and folded(name) in _ORDERS), None
        )
        self._roles = roles
        self._room = room
        self._said: dict[str, list[tuple[str, Turn, int, Sequence[Cell]]]] = defaultdict(list)
        """By conversation: bot, turn, number and cells of each message so far."""
        self.others = array("Q")
        """Numbers of the rows that are no answer."""
        self._unasked = 0

    @property
    def header(self) -> list[Cell]:
        """The header with a column for the question and one for the answer: bot, if no column has names of bots."""
        text = self._header[self._text]
        return [*self._header, f"{text}.query", "bot" if self._bot is None else f"{text}.response"]

    def asked(self, asked: Asked) -> Asked:
        """With the roles of its columns."""
        header = [str(name) for name in self.header]
        origin = "one row per message"
        mine = [
            Named(header[-2], "query", origin),
            Named(header[-1], "bot", origin),
            Named(header[self._speaker], "ignore", origin),
            Named(header[self._text], "ignore", origin),
            Named(header[self._conversation], "conversation", origin),
        ]
        taken = [each.column for each in mine]
        kept = [each for each in asked.named if not any(matches(name, each.column) for name in taken)]
        return replace(asked, named=(*kept, *mine))

    def rows(self, rows: Iterator[Row]) -> Iterator[Row]:
        """A row for each answer to the message before it. Raises TableError for one that cannot be placed."""
        width = len(self._header)
        for number, cells in rows:
            cells = [*cells, *[""] * (width - len(cells))]
            answer = self._answer(number, cells)
            if answer is not None:
                yield number, answer
            elif any(cells):
                self.others.append(number)

    def _answer(self, number: int, cells: Sequence[Cell]) -> list[Cell] | None:
        """The cells of a row that is an answer, with those of its question where its own are blank."""
        if not any(cells):
            return None
        speaker = self._told(number, cells, self._speaker)
        if not is_speaker(speaker):
            self._refuse(
                number, self._speaker, f"'{speaker[:40]}' is not a speaker such as user or assistant"
            )
        role = self._roles.get(speaker.lower(), role_of(speaker))
        if not role:
            return None
        text = cells[self._text]
        content = text if isinstance(text, str) else ""
        bot = "" if self._bot is None else str(cells[self._bot])
        before = self._said[self._told(number, cells, self._conversation)]
        view = [each for each in before if not (bot and each[0]) or folded(each[0]) == folded(bot)]
        self._check_order(number, cells, view)
        self._room.take_text(content)
        before.append((bot, Turn(role, content), number, cells))
        if role != ASSISTANT:
            return None
        if not view or view[-1][1].role != USER:
            self._unasked += 1
            return None
        _, question, _, its = view[-1]
        turns = tuple(turn for _, turn, _, _ in view[:-1] if turn.content.strip())
        own = [cell or cell_at(its, index) for index, cell in enumerate(cells)]
        if self._bot is not None:
            own[self._bot] = cells[self._bot]
        asked = as_message(question.content, ChatMessage(question.content, turns))
        return [*own, asked, text]

    def _told(self, number: int, cells: Sequence[Cell], column: int) -> str:
        cell = cells[column]
        if isinstance(cell, BadCell):
            self._refuse(number, column, cell.problem)
        if not str(cell).strip():
            self._refuse(number, column, "is blank, but the row has a message; fill it in")
        return str(cell).strip()

    def _check_order(
        self, number: int, cells: Sequence[Cell], view: Sequence[tuple[str, Turn, int, Sequence[Cell]]]
    ) -> None:
        if self._order is None or not view:
            return
        now, before = (str(each[self._order]).strip() for each in (cells, view[-1][3]))
        is_less = (_NUMBER.fullmatch(now) and _NUMBER.fullmatch(before) and float(now) < float(before)) or (
            _DATE.fullmatch(now) and _DATE.fullmatch(before) and now < before
        )
        if is_less:
            self._refuse(
                number,
                self._order,
                f"'{now}' is before '{before}' of row {view[-1][2]}; sort the messages of each conversation",
            )

    def _refuse(self, number: int, column: int, problem: str) -> None:
        use = ColumnUse(column_letter(column), str(self._header[column]), "")
        raise TableError(f"{self._place}, row {number}, column {use}: {problem}")

    def warnings(self) -> Iterator[str]:
        """What is no case. To be asked once, after the last row."""
        if self._unasked:
            yield f"Messages of bots that do not follow a question and were not judged: {self._unasked:,}."
        left = self._unanswered()
        if left:
            yield f"Questions without an answer after them, which were not judged: {left:,}."

    def _unanswered(self) -> int:
        return sum(
            turn.role == USER and (n == len(said) or said[n][1].role == USER)
            for said in self._said.values()
            for n, (_, turn, _, _) in enumerate(said, 1)
        )


def find_messages(
    place: str, header: Sequence[Cell], rows: Sequence[Row], asked: Asked, room: Room
) -> Messages | None:
    """The table if its columns are speaker, text and id of the conversation; None for any other one.

    Of its cells, only the first `rows` are known.
    """
    names = {index: name for index, name in enumerate(header) if isinstance(name, str) and name}

    def given(role: str) -> list[int]:
        return [
            index
            for index, name in names.items()
            if any(each.role == role and matches(name, each.column) for each in asked.named)
        ]

    speakers = [index for index in names if is_speakers(speakers_in(rows, index))]
    speakers = [index for index in speakers if folded(names[index]) in _SPEAKERS] or speakers
    texts = given("query") or [
        index for name in _TEXTS for index in names if folded(names[index].rpartition(".")[2]) == name
    ]
    conversations = given("conversation") or [index for index in names if is_conversation(names[index])]
    bots = given("bot_name") or [index for index in names if names_bots(names[index])]
    if len(speakers) != 1 or not texts or not conversations:
        return None
    found = {"speaker": speakers[0], "text": texts[0], "conversation": conversations[0]}
    others = [index for index in bots if index not in found.values()]
    if len({*found.values()}) < len(found):
        return None
    roles = roles_of(speakers_in(rows, speakers[0]))
    return Messages(place, header, found | ({"bot": others[0]} if others else {}), roles, room)


def names_speakers(name: Cell, header: Sequence[Cell]) -> bool:
    """Whether the name is that of a column with speakers, in a table with ids of conversations and texts."""
    if not isinstance(name, str) or folded(name) not in _SPEAKERS:
        return False
    names = [each for each in header if isinstance(each, str)]
    return any(folded(each) in _TEXTS for each in names) and any(map(is_conversation, names))


def speakers_in(rows: Sequence[Row], index: int) -> Collection[str]:
    """What a column has, in lower case."""
    cells = (cell_at(cells, index) for _, cells in rows)
    return {str(cell).strip().lower() for cell in cells if cell}
