"""Words of queries that ask, and small words around them, by language: what a query is not about.

English has its list in `rag_eval.texts.words`. A language is recognised by these words themselves.
"""

import re
from collections import Counter
from collections.abc import Iterable
from itertools import chain

from rag_eval.texts.words import STOP_WORDS, words

_SPACED = {
    "ar": """من ما ماذا متى أين كيف كم لماذا هل أي هو هي هذا هذه ذلك الذي التي الذين في على إلى عن مع أو ثم
        قد لا كان كانت تكون يكون عند بين""",
    "de": """wer was wann wo wie warum welche welcher welches welchem welchen wieviel wem wen wessen woher wohin
        der die das den dem des ein eine einen einem einer eines ist sind war waren wird werden wurde wurden hat
        haben hatte und oder von vom zu zum zur in im an am auf aus bei beim mit nach für über um es er sie ihr
        ihre sein seine sich nicht auch als lange viel viele kann man""",
    "es": """quién quiénes qué cuándo dónde cómo cuánto cuánta cuántos cuántas cuál cuáles por para el la los las
        un una unos unas es son era fue fueron está están se su sus de del al en con y o a que como lo le ha han
        más tiempo""",
    "fr": """qui que quoi quand où comment combien pourquoi quel quelle quels quelles est sont était a ont le la
        les l un une des du de d au aux en dans sur pour par avec et ou ce cet cette ces se s son sa ses leur
        leurs il elle ils elles on qu t y ne pas plus temps""",
    "hi": """क्या कब कौन कहाँ कहां कितना कितने कितनी किस किसने किसके किसका किसकी किसे कैसे क्यों सा सी से है
        हैं था थी थे में का की के को ने पर और या यह वह ये वे हो होता होती होते गया गई गए किया तक एक""",
    "id": """siapa apa kapan mana bagaimana berapa mengapa kenapa yang di ke dari dan atau adalah ini itu untuk
        dengan pada oleh apakah lama""",
    "it": """chi che cosa quando dove come quanto quanta quanti quante quale quali perché il lo la i gli le un
        uno una è sono era fu furono ha hanno di del della dei delle dello a al alla ai da dal dalla in nel nella
        con su sul sulla per e o si suo sua tempo""",
    "ko": """언제 언제입니까 무엇 무엇을 무엇이 무엇입니까 무엇인가요 뭐 누구 누가 누구의 누구입니까 누구인가요 어디
        어디에 어디서 어디에서 어디입니까 어디인가요 어떻게 왜 몇 얼마 얼마나 얼마입니까 무슨 어느 어떤 것은 것
        동안 합니까 있습니까 했습니까 있나요""",
    "nl": """wie wat wanneer waar hoe waarom welke welk hoeveel de het een is zijn was waren wordt werd werden
        heeft en of van in op aan uit bij met naar voor over door er te zich lang""",
    "pl": """kto co kiedy gdzie jak dlaczego ile jaki jaka jakie który która które czy jest są był była było
        były w we na z ze do od o i lub się to po za przez dla""",
    "pt": """quem que quando onde como quanto quanta quantos quantas qual quais por para o a os as um uma uns
        umas é são era foi foram está estão se seu sua de do da dos das em no na nos nas com e ou ao tempo""",
    "ru": """кто что когда где куда откуда как почему зачем сколько какой какая какое какие каком какую каким
        который чей чем кого кому ли это был была было были есть в во на с со из к ко о об от до по за для и или
        у при его её их он она не лет времени""",
    "tr": """kim kimin kime ne neyi neden nasıl nerede nereye nereden hangi kaç niçin niye mi mı mu mü midir
        mıdır bir ve veya ile bu şu o için da de en ki kadar zaman süre""",
    "vi": """ai gì nào khi đâu bao nhiêu lâu sao tại vì như thế là của được bị có trong những các một và hay với
        cho đã sẽ đang này đó ở vào ra từ điều người""",
}
_UNSPACED = """
    什么时候 什麼時候 什么 什麼 为什么 為什麼 为何 為何 为 多少 多久 多长时间 多長時間 多长 多長 多高
    多大 多远 多遠 几 幾 哪个 哪個 哪里 哪裡 哪些 哪 谁 誰 怎么样 怎么 怎麼 怎样 怎樣 如何 何时
    何時 何地 吗 嗎 呢 是 的 了 这位 這位 いつ どこ だれ 何年間 何曜日 何年 何人 何時 何 なぜ
    どうして どのくらい どれくらい どの どんな どのように どう どれ いくつ いくら ものは のは でしたか
    ですか ましたか ますか ありますか เมื่อใด เมื่อไหร่ เมื่อไร อะไร ใคร
    ที่ไหน วันไหน ไหน นานเท่าไร นานเท่าใด เท่าไร เท่าไหร่
    เท่าใด อย่างไร ทำไม กี่ ใด หรือไม่
"""
_UNSPACED_ASKING = re.compile("|".join(sorted(_UNSPACED.split(), key=len, reverse=True)))
_ENGLISH = "en"
_BY_LANGUAGE = {language: frozenset(words(listed)) for language, listed in _SPACED.items()}
_RANKS = {language: rank for rank, language in enumerate((_ENGLISH, *_BY_LANGUAGE))}
_LANGUAGES_OF: dict[str, list[str]] = {}
"""By word."""
for _language, _listed in {_ENGLISH: STOP_WORDS, **_BY_LANGUAGE}.items():
    for _word in _listed:
        _LANGUAGES_OF.setdefault(_word, []).append(_language)

_FOREIGN = _LANGUAGES_OF.keys() - STOP_WORDS


def without_unspaced_asking(query: str) -> str:
    """The query with a space for each asking wording of a script without spaces."""
    return query if query.isascii() else _UNSPACED_ASKING.sub(" ", query)


def small_words_of(query: Iterable[str]) -> frozenset[str]:
    """The asking and small words of the language that has most of the query's words; none for English.

    `query` are normalised words. Of languages that have equally many the first counts, English before all.
    """
    given = list(query)
    if _FOREIGN.isdisjoint(given):
        return frozenset()
    counts = Counter(chain.from_iterable(_LANGUAGES_OF[word] for word in given if word in _LANGUAGES_OF))
    best = max(counts, key=lambda language: (counts[language], -_RANKS[language]), default=_ENGLISH)
    return _BY_LANGUAGE.get(best, frozenset())
