"""Does a judge repeat the examples of its prompt, in place of judging the case? Small models do.

Only what stands word for word in an example counts, says something of the example's subject, and has nothing of it in
the case. A case may be about the same subject as an example, and an honest judge may then choose the same words.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from rag_eval.texts.languages import have_one_language
from rag_eval.texts.words import normalise, read

_FEWEST_WORDS = 4
"""Shorter texts, such as a name, may be anybody's."""
_SHARED = 1 / 3
"""Of the words about an example's subject: a case that has so many of them is about the same."""
_REASON = "reason"
"""The field of a reply that no other text decides: nobody has the same reason by chance."""
_KNOWN_NAMES = {
    "einstein": re.compile(
        "einstein|eynsteyn|ajnstajn|anh-?xtanh|эйнштейн|[аеэ][ийј]?н[шщс]т?[аеэ][ийј]н|爱因斯坦|愛因斯坦|アインシュタイン"
        "|아인슈타인|[أآا]ينشتاين|[إا]ينشتين|איינשטיין|αινσταιν|आइ[ंन]्?स्टा?[ीइ]न|আইনস্টাইন|ไอน์สไตน์"
        "|انیشتین|اینشتین|آین ?شتین|آئن ?سٹ?ا?ئن|აინშტაინ|აინშტეინ|[էա]յնշտ[եա]յն|ஐன்ஸ்[டர]|ఐన్.?స్టీన్|ಐನ್.?ಸ್ಟೀನ್|ഐൻസ്റ്റ"
        "|આઇન્સ્ટ|አይንስታይን|អាញស្តាញ|အိုင်းစတိုင်း"
    ),
    "franc": re.compile(
        "par[iy]+[sz]|parigi|parij|fran[ckstz]|ranska|prancu|prantsus|p(?:e)?rancis|pransya|frakkland|ffrainc|fhrainc|phap"
        "|франц|фран[сш]|пари[жзс]|法国|法國|巴黎|フランス|パリ|프랑스|파리|فرنسا|باريس|فران[سک]|پاریس|پیرس|צרפת|פריז"
        "|γαλλια|παρισι|फ[़्]*रा[ंन]्?स|पेरिस|पॅरिस|ফ্রান্স|ফরাসি|প্যারিস|ฝรั่งเศส|ปารีส|საფრანგ|პარიზ|ֆրանս|փարիզ|பிரான்|பாரி"
        "|ఫ్రాన్స్|పారిస్|ಫ್ರಾನ್ಸ್|ಪ್ಯಾರಿಸ್|ഫ്രാൻസ|പാരീ|പാരി|ફ્રાન્સ|પેરિસ|ਫਰਾਂਸ|ਪੈਰਿਸ|ප්‍රංශ|ပြင်သစ်|បារាំង|ຝຣັ່ງ|ፈረንሳይ|ፓሪስ"
    ),
}
"""By the stem of a name in the examples: its spellings in many languages, without accents."""


class Examples:
    """The examples of one prompt."""

    def __init__(self, inputs: Iterable[str], outputs: Iterable[str], instruction: str) -> None:
        """The texts that the prompt shows as given and as replied, and what it says of the task."""
        inputs, outputs = list(inputs), list(outputs)
        self._text = " ".join([*inputs, *outputs])
        self._words = "\n".join(f" {_plain(text)} " for text in (*inputs, *outputs))
        self._subjects = read(" ".join(inputs)).stems - read(instruction).stems

    def are_repeated(self, reply: Any, case: str) -> bool:
        """Whether a reply, as JSON values, repeats an example; `case` is what the prompt says of the case."""
        repeated = [(name, text) for name, text in _named_texts(reply) if self._has(text)]
        if not repeated:
            return False
        known = read(case).stems
        is_comparable = have_one_language(self._text, case)
        return any(
            self._is_evidence(name, text, case.casefold(), known, is_comparable) for name, text in repeated
        )

    def _has(self, text: str) -> bool:
        plain = _plain(text)
        return plain.count(" ") >= _FEWEST_WORDS - 1 and f" {plain} " in self._words

    def _is_evidence(self, name: str, text: str, case: str, known: set[str], is_comparable: bool) -> bool:
        if _plain(text) in _plain(case):
            return False
        about = read(text).stems & self._subjects
        if not about or len(about & known) >= _SHARED * len(about):
            return False
        names = [spelled for name, spelled in _KNOWN_NAMES.items() if name in about]
        plain = normalise(case)
        if any(spelled.search(text) for spelled in names for text in (case, plain)):
            return False
        has_number = any(stem[0].isdigit() and stem not in known for stem in about)
        return is_comparable or bool(names) or has_number or name == _REASON


def texts_in(value: Any) -> Iterator[str]:
    """The texts in JSON values."""
    return (text for _, text in _named_texts(value))


def _named_texts(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """The texts in JSON values, each with the name of its field."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict):
        for key, member in value.items():
            yield from _named_texts(member, key)
    elif isinstance(value, list):
        for member in value:
            yield from _named_texts(member, name)


def _plain(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


_WORD = re.compile(r"\w+")
