"""How many tokens a text is for a model: about, where an estimate is wanted, and at most, where a bound is promised.

No tokenizer is at hand: which one a deployment uses is not known, and those of OpenAI download their vocabularies.
"""

import re


def estimated_tokens(text: str) -> float:
    """About as many tokens as models count.

    A quarter of the UTF-8 bytes, and one for each Chinese, Japanese or Korean character. With tiktoken's cl100k_base
    and o200k_base as the two ends, twelve languages are in between or at most 12% outside (tests/test_tokens.py).
    """
    if text.isascii():
        return len(text) / 4
    return (_bytes_of(text) + sum(map(len, _EAST_ASIAN.findall(text)))) / 4


def most_tokens(text: str) -> int:
    """No model whose vocabulary is built on bytes counts more: every token of it is at least one UTF-8 byte.

    Rare scripts reach the bound: a cuneiform sign is four bytes and four tokens.
    """
    return len(text) if text.isascii() else _bytes_of(text)


def cut_to_tokens(text: str, tokens: float) -> str:
    """The longest beginning of a text that is estimated at no more than so many tokens."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if estimated_tokens(text[:middle]) <= tokens else (low, middle - 1)
    return text[:low]


def _bytes_of(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


_EAST_ASIAN = re.compile("[\u1100-\u11ff\u3000-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]+")
"""Chinese characters, kana, Hangul and their punctuation, of three bytes each: with the bytes, one token."""
