"""Numbers, currencies, percentages, times of day and units in one form each, however a text writes them.

Pure. `rag_eval.texts.words` applies it to every text that is compared, so both sides have the same form.
"""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import chain


def canonical_number(digits: str) -> str:
    """A number written in one way: no thousands separators, a decimal point, no trailing zeros; a time of day likewise.

    "1,250.50", "1.250.000" and "3,5" become "1250.5", "1250000" and "3.5". A single group of three after a
    point ("1.250") is read as thousands, because decimals of that length are seldom written in another way.
    "8:30", "08:30", "8.30" and "8h30" become "8.3", "8:00" becomes "8", as "08" becomes "8". "007" stays as it is.
    """
    if digits.isdecimal() and digits[0] != "0":  # most often
        return digits
    if _PADDED.match(digits):
        digits = digits[1:]
    if _COMMA_THOUSANDS.fullmatch(digits):
        digits = digits.replace(",", "")
    elif _POINT_THOUSANDS.fullmatch(digits):
        digits = digits.replace(".", "").replace(",", ".")
    elif _DECIMAL_COMMA.fullmatch(digits):
        digits = digits.replace(",", ".")
    elif _TIME.fullmatch(digits):
        digits = digits.replace(":", ".").replace("h", ".")
    return digits.rstrip("0").rstrip(".") if digits.count(".") == 1 else digits


def numeral(characters: str) -> str:
    """Digits of a Chinese or Japanese numeral: "30" of 三十; of one that nobody writes, the characters."""
    if len(characters) > _LONGEST_NUMERAL:
        return characters
    total, group, digit = 0, 0, 0
    for character in characters:
        if character in _DIGIT_VALUES:
            digit = 10 * digit + _DIGIT_VALUES[character]
        elif (unit := _UNIT_VALUES[character]) < _MYRIAD:
            group, digit = group + (digit or 1) * unit, 0
        else:
            total, group, digit = total + (group + digit or 1) * unit, 0, 0
    return str(total + group + digit)


def one_amount(stems: Sequence[str]) -> list[str]:
    """The stems with each amount of several words as one; an empty stem for each word that goes into it.

    "1.5", "million" become "1500000"; "9", "pm" become "21"; "19", "per", "cent" become "19", "percent".
    """
    found = list(stems)
    number = earlier = -1
    """Indices of the number right before, and of the one at the beginning of a span: "2 to 6 pm"."""
    for place, stem in enumerate(stems):
        if stem in _POWERS and place and (number >= 0 or stems[place - 1] in ONES):
            value = "1" if number < 0 else found[number]
            number = place - 1 if number < 0 else number
            found[number], found[place] = times(value, _POWERS[stem]), ""
        elif stem in _HALVES and number >= 0:
            if earlier >= 0 and _is_earlier(found[earlier], found[number]):
                found[earlier] = hour_of_day(found[earlier], stem)
            found[number], found[place] = hour_of_day(found[number], stem), ""
            number = -1
        elif stem in _CENTS and number >= 0 and stems[place - 1] in _PER:
            found[place - 1], found[place] = "", PERCENT
            number = -1
        elif stem[:1].isdigit() and _NUMBER.fullmatch(stem):
            is_behind_hour = number >= 0 and stems[place - 1] == HOUR_SIGN and _HOUR.fullmatch(found[number])
            if is_behind_hour and len(stem) == _LENGTH_OF_MINUTES:
                found[number], found[place - 1], found[place] = (
                    canonical_number(f"{found[number]}:{stem}"),
                    "",
                    "",
                )
                continue
            begins_span = _begins_span(stems[place - 2 : place]) and found[place - 2] != ""
            earlier = number if number >= 0 else place - 2 if begins_span else -1
            number = place
        elif not (number == place - 1 and (stem in _PER or stem in SIGNS or stem == HOUR_SIGN)):
            number = -1
    return found


def _begins_span(before: Sequence[str]) -> bool:
    """Whether a number with a function word behind it is before another number."""
    return len(before) > 1 and before[1] == "" and _NUMBER.fullmatch(before[0]) is not None


def _is_earlier(hour: str, other: str) -> bool:
    """Whether an hour of 12 is before another one in the same half of the day."""
    return Decimal(hour) % _NOON < Decimal(other) % _NOON


def times(number: str, factor: int) -> str:
    """The product, written like any other number; what is no number of usual length, as it is."""
    if not _NUMBER.fullmatch(number):
        return number
    return f"{(Decimal(number) * factor).normalize():f}"


def hour_of_day(number: str, half: str) -> str:
    """An hour of 12, with or without minutes, as one of 24; any other number as it is."""
    hours, _, minutes = number.partition(".")
    if not _HOUR.fullmatch(hours) or not 1 <= int(hours) <= _NOON or len(minutes) > 2:
        return number
    value = int(hours) % _NOON + (_NOON if half == "pm" else 0)
    return f"{value}.{minutes}" if minutes else str(value)


_MYRIAD = 10_000
MYRIADS = {"万": _MYRIAD, "萬": _MYRIAD, "億": 100_000_000, "亿": 100_000_000}
_UNIT_VALUES = {"十": 10, "百": 100, "千": 1_000, **MYRIADS}
_DIGIT_VALUES = {"〇": 0, "零": 0, "两": 2, "兩": 2} | {
    digit: value for value, digit in enumerate("一二三四五六七八九", 1)
}
PERCENT = "percent"
CURRENCY_SIGNS: Mapping[str, str] = {
    "$": "dollar",
    "us$": "dollar",
    "€": "euro",
    "£": "pound",
    "¥": "yen",
    "₹": "rupee",
}
SIGNS = frozenset((PERCENT, *CURRENCY_SIGNS.values()))
"""What makes another amount of a number: "19" is not "19 %"."""
HOUR_SIGN = "h:"
"""Stands for an "h" that is written as a word of its own: "8 h 30"."""
_LENGTH_OF_MINUTES = 2
_LONGEST_NUMERAL = 30
_NOON = 12
_HALVES = frozenset(("am", "pm"))
_PER = frozenset(("per", "pour", "por"))
_CENTS = frozenset(("cent", "ciento", "cento"))
ONES = frozenset(("one", "ein", "eine", "einen", "un", "une", "una"))
_POWERS = {"hundr": 100, "hundert": 100} | {
    word: factor
    for factor, listed in {
        1_000: "thousand tausend mil mille",
        1_000_000: "million mio millionen millon millone",
        1_000_000_000: "billion milliard milliarden mrd",
    }.items()
    for word in listed.split()
}
"""By stem. "Billion" is the English one."""
JOINING = frozenset((*_POWERS, "pm", *_CENTS))
"""Stems without which `one_amount` changes nothing, but for "am", which has no stem."""

_NUMERALS = "".join((*_DIGIT_VALUES, *_UNIT_VALUES))
COUNTERS = "元块塊円圆年月日号號天个個小分秒点點時时人名位岁歳歲米公斤克里本冊册枚匹台次回度楼樓階层層周週種种间間级級"
"""Characters that count or measure something in Chinese and Japanese."""
_MEASURES = {
    "year": "年間 年间 年",
    "month": "个月 個月 ヶ月 ヵ月 箇月 か月 カ月 ケ月",
    "月": "月",
    "week": "週間 周间 个星期 個星期 星期 週 周",
    "day": "日間 天 日 号 號",
    "h": "個小時 个小时 小時 小时 時間 个钟头 钟头",
    "点": "点钟 點鐘 点 點 時 时",
    "min": "分钟 分鐘 分間 分",
    "second": "秒钟 秒鐘 秒間 秒",
    "km": "公里 千米 キロメートル",
    "cm": "厘米 公分 センチメートル センチ",
    "mm": "毫米 ミリメートル",
    "meter": "米 メートル",
    "kg": "公斤 千克 キログラム",
    "gram": "克 グラム",
    "dollar": "美元 美金 ドル",
    "euro": "欧元 歐元 ユーロ",
    "pound": "英镑 英鎊 ポンド",
    "yen": "日元 日圆 円",
    "yuan": "元 块钱 塊錢 块 塊 圆 人民币 人民幣",
}
MEASURE_OF: Mapping[str, str] = {word: unit for unit, listed in _MEASURES.items() for word in listed.split()}
"""A stem, by what is behind a number in Chinese or Japanese. A 月 is one of the year, and a 点 an hour of the day."""
MEASURE_STEMS = frozenset(_MEASURES)
TIMES = frozenset(("year", "month", "月", "week", "day", "h", "点", "min", "second"))
LENGTHS = frozenset(("km", "cm", "mm", "meter", "metr", "mile", "foot", "inch", "yard"))
CURRENCIES = frozenset(
    (*CURRENCY_SIGNS.values(), "yuan", "cent", "złoty", "рубль", "franc", "krona", "krone")
)
"""Stems of which an amount has one or another."""
_NOT_BEFORE = {
    "年": "级級生",
    "分": "之",
    "日": "本曜",
    "月": "曜",
    "周": "年末",
    "週": "末",
    "米": "国國",
    "号": "楼线館馆店车",
    "號": "樓線館店車",
}
"""Characters that make another word of a measure: "3年级" is no time."""
MEASURE = re.compile(
    "|".join(
        rf"{word}(?![{_NOT_BEFORE[word]}])" if word in _NOT_BEFORE else word
        for word in sorted(MEASURE_OF, key=len, reverse=True)
    )
)
"""What a number with it measures. Neutral counters, such as 个 and 冊, are none."""
_FORENOON = "凌晨 深夜 早上 早晨 清晨 上午 午前 朝"
_AFTERNOON = "下午 傍晚 晚上 晚 夜 夕方 午後 今晚"
HALVES_OF_DAY: Mapping[str, str] = dict.fromkeys(_FORENOON.split(), "am") | dict.fromkeys(
    _AFTERNOON.split(), "pm"
)
HALF_OF_DAY = re.compile(rf"(?:{'|'.join(sorted(HALVES_OF_DAY, key=len, reverse=True))})\Z")
HOUR = re.compile(rf"(?:\d{{1,2}}[:h]\d\d|(?:\d{{1,2}}|[{_NUMERALS}]{{1,3}})(?=[点點時时](?![間间])))")
"""A time of day behind a half of the day."""
NUMERAL = re.compile(
    rf"(?:[{_NUMERALS}](?<![{_NUMERALS}]{{2}})[{_NUMERALS}]++|[^\W一百千万萬億亿〇零](?<=[{_NUMERALS}]))(?=(?!分[之の])[{COUNTERS}]|か月|美[元金]|[欧歐]元|英[镑鎊]|ドル|ユーロ|メートル|キロ|センチ|\Z)"
)
"""A numeral with a counter behind it, or at the end. A mere 一 is "a" more often than "one".

Only the beginning of several characters is tried, or thousands in a row would take minutes.
"""
_PADDED = re.compile(r"0\d(?!\d)")
"""A day, month or hour of two digits."""
_NUMBER = re.compile(r"\d{1,20}(?:\.\d{1,20})?")
"""What can be calculated with: not "1,2,3", and nothing so long that it is a code, not a quantity."""
_HOUR = re.compile(r"\d{1,2}")
_COMMA_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})++(?:\.\d+)?")
_POINT_THOUSANDS = re.compile(
    r"\d{1,3}(?:\.\d{3}){2,}+(?:,\d+)?|\d{1,3}(?:\.\d{3})++,\d+|[1-9]\d{0,2}\.\d{3}"
)
_DECIMAL_COMMA = re.compile(r"\d+,\d{1,2}")
_TIME = re.compile(r"\d{1,2}[:h]\d\d")

_FROM_TWO = """
    two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
    nineteen twenty
"""
_ELSEWHERE = """
    zwei drei vier funf sechs sieben acht neun zehn elf zwolf dreizehn vierzehn funfzehn sechzehn siebzehn achtzehn
    neunzehn zwanzig
    deux trois quatre cinq six _ huit neuf dix onze douze treize quatorze quinze seize _ _ _ vingt
    dos tres cuatro cinco seis siete ocho nueve diez _ doce trece catorce quince dieciseis diecisiete dieciocho
    diecinueve veinte
"""
"""German, French and Spanish, without accents. An underscore stands for what is another word, too, or several."""
_TENS = """
    thirty forty fifty sixty seventy eighty ninety
    dreissig vierzig funfzig sechzig siebzig achtzig neunzig
    trente quarante cinquante soixante _ _ _
    treinta cuarenta cincuenta sesenta setenta ochenta noventa
"""


def _number_words() -> dict[str, str]:
    from_two = chain(_FROM_TWO.split(), _ELSEWHERE.split())
    found = {word: str(2 + place % 19) for place, word in enumerate(from_two)}
    found |= {word: str(30 + 10 * (place % 7)) for place, word in enumerate(_TENS.split())}
    del found["_"]
    return found


NUMBER_WORDS: Mapping[str, str] = _number_words()
"""Digits, by the word in normal form."""
_MONTHS = """
    january february march april may june july august september october november december
    januar februar marz april mai juni juli august september oktober november dezember
    janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre
    enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
"""
_WEEKDAYS = """
    monday tuesday wednesday thursday friday saturday sunday
    montag dienstag mittwoch donnerstag freitag samstag sonntag
    lundi mardi mercredi jeudi vendredi samedi dimanche
    lunes martes miercoles jueves viernes sabado domingo
"""
_PERIODS = """
    day week month year hour minute
    tag tage tagen woche wochen monat monate monaten jahr jahre jahren stunde minute
    jour jours semaine semaines mois an ans heure
    dia dias semana semanas mes meses ano anos hora
"""
PERIODS = frozenset(_PERIODS.split())
MONTH_NUMBERS: Mapping[str, int] = {word: 1 + place % 12 for place, word in enumerate(_MONTHS.split())}
MONTHS = frozenset(MONTH_NUMBERS)
WEEKDAYS = frozenset(_WEEKDAYS.split())
"""English, German, French and Spanish, as MONTHS and PERIODS, in normal form."""
_UNITS = {
    "km": "kilometer kilometers kilometre kilometres",
    "cm": "centimeter centimeters centimetre centimetres",
    "mm": "millimeter millimeters millimetre millimetres",
    "kg": "kilogram kilograms kilogramme kilogrammes kgs",
    "mile": "mi",
    "lb": "lbs",
    "foot": "feet ft",
    "h": "hour hours hr hrs heure heures hora horas stunde stunden std",
    "min": "minute minutes mins minuten minuto minutos",
    PERCENT: "percentage pct prozent pourcent percento procent",
    "dollar": "usd dolar dolares",
    "euro": "eur",
    "pound": "gbp",
    "yen": "jpy",
    "złoty": "zł złote złotych pln",
    "рубль": "руб рубля рублей rub",
    "franc": "francs franken chf",
    "krona": "kronor sek",
    "krone": "kroner nok dkk",
    "januari": "jan",
    "februari": "feb",
    "april": "apr",
    "august": "aug",
    "september": "sep",
    "october": "oct",
    "november": "nov",
    "december": "dec",
}
UNIT_WORDS: Mapping[str, str] = {word: unit for unit, listed in _UNITS.items() for word in listed.split()}
"""The one form (a stem) of a unit of measurement, a currency or a month, by the word in normal form."""
