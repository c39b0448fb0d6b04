"""What the headers of an answer say of the rate limits, in the forms that providers send."""

import pytest

from rag_eval.judge.quota import Quota, read_quotas


@pytest.mark.parametrize(
    ("headers", "is_refused", "expected"),
    [
        pytest.param(
            {
                "x-ratelimit-limit-requests": "5000",
                "x-ratelimit-limit-tokens": "160000",
                "x-ratelimit-remaining-requests": "4999",
                "x-ratelimit-remaining-tokens": "159976",
                "x-ratelimit-reset-requests": "12ms",
                "x-ratelimit-reset-tokens": "8ms",
                "x-ratelimit-remaining-tokens_usage_based": "1",
            },
            False,
            {"requests": Quota(4999, 0.012, 5000), "tokens": Quota(159_976, 0.008, 160_000)},
            id="openai",
        ),
        pytest.param(
            {"x-ratelimit-remaining-requests": "79", "x-ratelimit-remaining-tokens": "61353"},
            False,
            {},
            id="azure_tells_no_time",
        ),
        pytest.param(
            {
                "x-ratelimit-remaining-requests": "79",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "7",
            },
            True,
            {"tokens": Quota(0, 7)},
            id="azure_refuses",
        ),
        pytest.param({"x-rate-limit-reset-tokens": "55"}, True, {"tokens": Quota(0, 55)}, id="azure_of_2023"),
        pytest.param({"x-ratelimit-reset-tokens": "55"}, False, {}, id="time_alone"),
        pytest.param(
            {
                "x-ratelimit-limit-tokens": "-1",
                "x-ratelimit-remaining-tokens": "-1",
                "x-ratelimit-reset-tokens": "0",
            },
            True,
            {},
            id="azure_knows_nothing",
        ),
        pytest.param(
            {"x-ratelimit-remaining-tokens": "12", "x-ratelimit-reset-tokens": "soon"}, False, {}, id="words"
        ),
        pytest.param(
            {"x-ratelimit-remaining-tokens": "1e9", "x-ratelimit-reset-tokens": "1s"},
            False,
            {},
            id="no_count",
        ),
        pytest.param({}, True, {}, id="nothing"),
    ],
)
def test_headers(headers: dict[str, str], is_refused: bool, expected: dict[str, Quota]) -> None:
    assert read_quotas(headers, is_refused=is_refused) == expected


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1),
        ("6m0s", 360),
        ("2m59.56s", 179.56),
        ("120ms", 0.12),
        ("1h0m7.5s", 3607.5),
        ("1d2h", 93_600),
        ("59", 59),
        ("7.66", 7.66),
    ],
)
def test_times(text: str, seconds: float) -> None:
    quota = read_quotas({"x-ratelimit-remaining-tokens": "5", "x-ratelimit-reset-tokens": text})["tokens"]
    assert quota.whole_after == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "1", "٣s", "1s later", "-1s", "1m-2s", "9" * 400 + "s", "1 s"])
def test_what_is_no_time_holds_nobody_up(text: str) -> None:
    headers = {"x-ratelimit-remaining-tokens": "5", "x-ratelimit-reset-tokens": text}
    assert set(read_quotas(headers)) == ({"tokens"} if text == "1" else set())


HALF_USED = Quota(remaining=50, whole_after=10, limit=100)
"""Five flow back a second."""


@pytest.mark.parametrize(
    ("quota", "wanted", "age", "seconds"),
    [
        pytest.param(HALF_USED, 50, 0, 0, id="enough"),
        pytest.param(HALF_USED, 60, 0, 2, id="what_is_missing_flows_back"),
        pytest.param(HALF_USED, 60, 0.5, 1.5, id="some_of_it_has"),
        pytest.param(HALF_USED, 60, 2, 0, id="all_of_it_has"),
        pytest.param(HALF_USED, 1000, 4, 6, id="more_than_the_limit_waits_for_all_of_it"),
        pytest.param(HALF_USED, 1000, 10, 0, id="the_report_is_too_old"),
        pytest.param(Quota(3, 10), 3, 0, 0, id="enough_of_an_unknown_limit"),
        pytest.param(Quota(3, 10), 4, 1, 9, id="an_unknown_limit_is_waited_for"),
        pytest.param(Quota(9, 10, 5), 12, 1, 9, id="more_left_than_the_limit"),
    ],
)
def test_how_long_to_wait(quota: Quota, wanted: float, age: float, seconds: float) -> None:
    assert quota.wait(wanted, age) == pytest.approx(seconds, abs=0.001)
