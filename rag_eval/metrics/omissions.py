"""Does a reply leave out what it was asked about? Told by the words, and only where that is beyond doubt.

A judge may merge two statements, or say one in other words. So nothing is left out unless the reply has fewer
statements than it was asked about, and one of these has no near match in it. What has no words, such as "...", is no
statement.
"""

from collections.abc import Collection, Sequence

from rag_eval.texts.words import has_words, normalise, read, sentences, stems_of

_SHARED = 1 / 2
"""Of the content of the shorter of two statements: so much in common makes a near match."""
_SHARED_WITH_OTHER_TEXT = 1 / 3
"""The same for statements of two texts."""
_CONTENT = 3
"""Stems that make a sentence worth classifying; fewer are a heading or a 'Yes.'."""


def skipped_statement(sent: Sequence[str], replied: Sequence[str]) -> str | None:
    """The first statement without a near match; None when the reply has as many as were sent, or leaves none out."""
    if _count(replied) >= _count(sent):
        return None
    unknown, others = _without_copies(sent, replied)
    return _first_without_match(unknown, others)


def unanswered_statement(
    sent: Sequence[str], replied: Sequence[str], hits: Sequence[str], others: Sequence[str]
) -> str | None:
    """As `skipped_statement`, where a hit stands for one or more of the sent, and says so in its own words.

    `hits` and `others` are statements of another text: those that agree with the sent, and the rest.
    """
    if _count(replied) + _count(hits) >= _count(sent):
        return None
    unknown, reworded = _without_copies(sent, replied)
    unmatched = [each for each in unknown if _first_without_match([each], reworded)]
    return _first_without_match(unmatched, [*hits, *others], _SHARED_WITH_OTHER_TEXT)


def skipped_sentence(text: str, replied: Sequence[str]) -> str | None:
    """The first sentence with content but without a near match; None when the reply has as many as there are."""
    sent = [sentence for sentence in sentences(text) if len(_content(sentence)) >= _CONTENT]
    return None if _count(replied) >= len(sent) else _first_without_match(sent, replied)


def skips_most(text: str, replied: Sequence[str]) -> bool:
    """Whether more than two thirds of the sentences have no near match, and the reply has fewer statements than these.

    Questions and exclamations claim nothing, and need none.
    """
    sent = [each for each in sentences(text) if len(_content(each)) >= _CONTENT and each[-1] not in "?!"]
    skipped = [each for each in sent if _first_without_match([each], replied)]
    return _count(replied) < len(sent) and 3 * len(skipped) > 2 * len(sent)


def _without_copies(sent: Sequence[str], replied: Sequence[str]) -> tuple[list[str], list[str]]:
    """What of both lists is not in the other word for word: a copy of one statement does not stand for another."""
    known, given = _plain(sent), _plain(replied)
    return (
        [each for each in sent if normalise(each).strip() not in given],
        [each for each in replied if normalise(each).strip() not in known],
    )


def _plain(statements: Sequence[str]) -> set[str]:
    return {normalise(each).strip() for each in statements}


def _count(statements: Sequence[str]) -> int:
    return sum(map(has_words, statements))


def _first_without_match(sent: Sequence[str], replied: Sequence[str], shared: float = _SHARED) -> str | None:
    contents = [content for each in replied if (content := _content(each))]
    for statement in sent:
        content = _content(statement)
        if content and not any(
            len(set(content) & set(other)) >= shared * min(len(content), len(other)) for other in contents
        ):
            return statement
    return None


def _content(statement: str) -> Collection[str]:
    return read(statement).stems or frozenset(stems_of(statement))
