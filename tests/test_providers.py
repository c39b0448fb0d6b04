"""What each provider needs to be called is said once, and fits the settings."""

from typing import get_args

import pytest

from rag_eval.cli.options import KEYS
from rag_eval.configuration.effective import endpoint_of
from rag_eval.configuration.settings import Settings
from rag_eval.configuration.sources import VARIABLES
from rag_eval.judge.providers import PROVIDERS, Provider, ProviderName

MODELS = [provider for provider in PROVIDERS.values() if not provider.is_offline]
FILLED = {
    "azure": {"endpoint": "https://a.example.com", "api_key": "key-a", "deployment": "d", "temperature": 0.5},
    "openai": {"base_url": "https://b.example.com/v1", "api_key": "key-b", "model": "m", "temperature": 0.25},
}


def test_every_name_has_its_provider_and_its_section() -> None:
    assert tuple(PROVIDERS) == get_args(ProviderName)
    assert set(PROVIDERS) <= set(Settings.model_fields)
    assert [name for name, provider in PROVIDERS.items() if provider.is_offline] == ["offline"]
    assert {provider.name for provider in MODELS} == set(FILLED)


@pytest.mark.parametrize("provider", MODELS, ids=lambda provider: provider.name)
def test_the_keys_that_a_provider_names_are_those_of_its_section(provider: Provider) -> None:
    keys = set(type(getattr(Settings(), provider.name)).model_fields)
    assert {provider.url_key, provider.model_key, "api_key", "temperature"} <= keys
    assert set(provider.variables.values()) <= keys
    assert {provider.url_key, "api_key"} <= set(provider.variables.values()), (
        "both can come from the environment"
    )


def test_no_variable_and_no_option_sets_two_keys() -> None:
    assert len(VARIABLES) == sum(len(provider.variables) for provider in MODELS)
    assert len(set(VARIABLES.values())) == len(VARIABLES)
    assert len(set(KEYS.values())) == len(KEYS)


@pytest.mark.parametrize(
    ("name", "url", "model", "version", "temperature", "description"),
    [
        (
            "azure",
            "https://a.example.com",
            "d",
            "2024-12-01-preview",
            0.5,
            "Azure OpenAI, deployment d, at a.example.com",
        ),
        ("openai", "https://b.example.com/v1", "m", "", 0.25, "m at b.example.com"),
    ],
)
def test_the_endpoint_is_that_of_the_chosen_provider(
    name: str, url: str, model: str, version: str, temperature: float, description: str
) -> None:
    settings = Settings.model_validate({"judge": {"provider": name}, **FILLED})
    endpoint = endpoint_of(settings)
    found = endpoint.provider, endpoint.url, endpoint.api_key, endpoint.model
    assert found == (name, url, FILLED[name]["api_key"], model)
    assert (endpoint.api_version, endpoint.temperature) == (version, temperature)
    assert endpoint.description == description


@pytest.mark.parametrize(
    ("values", "lacking"),
    [
        ({"judge": {"provider": "offline"}}, []),
        ({}, ["endpoint", "api_key"]),
        ({"azure": {"auth": "entra"}}, ["endpoint"]),
        ({"azure": {"auth": "entra", "endpoint": "https://a.example.com"}}, []),
        ({"judge": {"provider": "openai"}}, ["api_key"]),
        ({"judge": {"provider": "openai"}, **FILLED}, []),
    ],
)
def test_what_is_lacking_to_call_it(values: dict[str, object], lacking: list[str]) -> None:
    settings = Settings.model_validate(values)
    assert settings.provider.lacking(settings.section) == lacking
