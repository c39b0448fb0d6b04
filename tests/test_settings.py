"""Configuration: what is read, what is refused, in which words, and that no secret is ever shown."""

import copy
import os
import pickle
import re
import stat
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError

from rag_eval.cli.options import Options
from rag_eval.configuration import loading
from rag_eval.configuration.effective import effective_weights, endpoint_of
from rag_eval.configuration.loading import LoadedSettings, load_settings
from rag_eval.configuration.settings import Settings, Weights
from rag_eval.configuration.sources import Given, Level, Source
from rag_eval.errors import ExitCode, SettingsError
from rag_eval.records import METRIC_LABELS

ROOT = Path(__file__).parent.parent
CANARY = "c4n4ryk3y0123456789abcdef0123456"
AZURE = {"AZURE_OPENAI_ENDPOINT": "https://r.openai.azure.com/", "AZURE_OPENAI_API_KEY": CANARY}
KNOWN = ", ".join(Settings.model_fields)
FIELDS = {
    (section, key): info for section, model in Settings() for key, info in type(model).model_fields.items()
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The current directory of the run, with a parent that must not matter."""
    (tmp_path / "cwd" / "backend").mkdir(parents=True)
    return tmp_path / "cwd"


def load(
    folder: Path,
    ini: str | bytes | None = None,
    *,
    overrides: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    config: Path | None = None,
) -> LoadedSettings:
    """Load from `folder`, where `ini` becomes a private config.ini."""
    if ini is not None:
        write(folder / "config.ini", ini)
    return load_settings(config, overrides or {}, environ or {}, folder)


def write(path: Path, text: str | bytes, mode: int = 0o600) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(mode)


def problems(folder: Path, ini: str | bytes | None = None, **given: object) -> list[str]:
    """The lines of the SettingsError that loading must raise; none of them shows the canary."""
    with pytest.raises(SettingsError) as caught:
        load(folder, ini, **given)  # type: ignore[arg-type]
    assert CANARY not in repr(caught.value)
    assert caught.value.__cause__ is None  # no chained error brings the input back
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert all("\n" not in line for line in caught.value.problems)
    return list(caught.value.problems)


# Defaults, the shipped sample, the documentation


def test_without_any_source_everything_is_default(folder: Path) -> None:
    """No file, no variable, no option: the documented defaults, each said to be one."""
    loaded = load(folder)
    assert loaded.settings == Settings()
    assert {str(source) for source in loaded.sources.values()} == {"default"}
    assert set(loaded.sources) == {f"{section}.{key}" for section, key in FIELDS}
    assert loaded.warnings == ()


def test_shipped_sample_is_the_defaults(folder: Path) -> None:
    """Config.ini.example gives every key its default, its `delimiter = auto ; …` included, and no other."""
    text = (ROOT / "config.ini.example").read_text(encoding="utf-8")
    loaded = load(folder, text)
    assert loaded.settings == Settings()
    assert loaded.settings.context.delimiter == "auto"
    assert re.search(r"^delimiter = auto    ; auto \| \|\| \| \\n \| <custom>$", text, re.MULTILINE)
    for key, source in loaded.sources.items():
        section, _, name = key.partition(".")
        if section == "thresholds":  # comments: what is written there replaces the offline judge's own
            assert source.level is Level.DEFAULT
            assert f"\n#{name} = 0.3\n" in text
        else:
            assert source.name == "config.ini"
            assert text.splitlines()[source.line - 1].startswith(f"{name} =")


def test_documentation_lists_every_variable(folder: Path) -> None:
    """Each documented variable sets the key that it is said to set."""
    text = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\|`([A-Z_]+)`\|`\[(\w+)\] (\w+)`\|$", text, re.MULTILINE)
    assert len(rows) == 5
    for variable, section, key in rows:
        loaded = load(folder, environ={variable: "https://localhost"})
        assert str(loaded.sources[f"{section}.{key}"]) == f"environment variable {variable}"


def test_documented_error_messages_are_real(folder: Path) -> None:
    """The two messages that docs/configuration.md shows are what such a file brings."""
    text = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    ini = "\n" * 5 + "[thresholds]\nfaithfullness = 0.4\n\n\n\n[evaluation]\nmax_rows = 0\n"
    assert "\n".join(["```", *problems(folder, ini), "```"]) in text


# Precedence and sources

INI = "[azure]\ntemperature = 0.1\nendpoint = https://ini.example.com\napi_key = ini-key\n"


@pytest.mark.parametrize(
    ("levels", "expected", "source"),
    [
        ("", "", "default"),
        ("ini", "https://ini.example.com", "config.ini line 3"),
        ("dotenv", "https://dotenv.example.com", ".env line 2"),
        ("env", "https://env.example.com", "environment variable AZURE_OPENAI_ENDPOINT"),
        ("cli", "https://cli.example.com", "command line"),
        ("ini dotenv", "https://dotenv.example.com", ".env line 2"),
        ("ini env", "https://env.example.com", "environment variable AZURE_OPENAI_ENDPOINT"),
        ("ini cli", "https://cli.example.com", "command line"),
        ("dotenv env", "https://env.example.com", "environment variable AZURE_OPENAI_ENDPOINT"),
        ("dotenv cli", "https://cli.example.com", "command line"),
        ("env cli", "https://cli.example.com", "command line"),
        ("ini dotenv env cli", "https://cli.example.com", "command line"),
    ],
)
def test_precedence(folder: Path, levels: str, expected: str, source: str) -> None:
    """Command line over environment over .env over config file over default, in every pair."""
    if "dotenv" in levels.split():
        write(folder / ".env", "\nAZURE_OPENAI_ENDPOINT=https://dotenv.example.com\n")
    loaded = load(
        folder,
        INI if "ini" in levels.split() else None,
        environ={"AZURE_OPENAI_ENDPOINT": "https://env.example.com"} if "env" in levels.split() else None,
        overrides={"azure.endpoint": "https://cli.example.com"} if "cli" in levels.split() else None,
    )
    assert loaded.settings.azure.endpoint == expected
    assert str(loaded.sources["azure.endpoint"]) == source


@pytest.mark.parametrize(
    ("ini", "overrides", "changed"),
    [
        ("", {"model": "m", "temperature": 1}, {"azure.deployment": "m", "azure.temperature": 1}),
        (
            "[judge]\nprovider = openai",
            {"model": "m", "temperature": 1},
            {"openai.model": "m", "openai.temperature": 1},
        ),
        ("[judge]\nprovider = openai", {"model": "m", "judge.provider": "azure"}, {"azure.deployment": "m"}),
        ("[azure]\ndeployment = d", {"model": None, "temperature": None}, {"azure.deployment": "d"}),
        ("", {"azure.deployment": "gpt-4o-mini"}, {"azure.deployment": "gpt-4o-mini"}),
    ],
)
def test_model_and_temperature_belong_to_the_chosen_provider(
    folder: Path, ini: str, overrides: dict[str, object], changed: dict[str, object]
) -> None:
    """'model' and 'temperature' find their section after the provider is known; None is not given."""
    settings = load(folder, ini, overrides=overrides).settings
    keys = ("azure.deployment", "azure.temperature", "openai.model", "openai.temperature")
    values = {key: getattr(getattr(settings, key.split(".")[0]), key.split(".")[1]) for key in keys}
    assert values == dict(zip(keys, ("gpt-4o", 0, "gpt-4o", 0), strict=True)) | changed


def test_sources_on_the_command_line_name_the_option(folder: Path) -> None:
    """A value from the command line is traced to its option."""
    loaded = load(
        folder, overrides=Options(alpha=0.5, model="m", temperature=0.5, map=("q=query",)).overrides()
    )
    assert str(loaded.sources["weights.answer_correctness"]) == "command line --alpha"
    assert str(loaded.sources["azure.deployment"]) == "command line --model"
    assert str(loaded.sources["azure.temperature"]) == "command line --temperature"
    assert str(loaded.sources["columns.query"]) == "command line --map"


def test_offline_judge_has_no_model(folder: Path) -> None:
    """An option without effect is said to have none, rather than dropped in silence."""
    loaded = load(folder, overrides={"judge.provider": "offline", "model": "m", "temperature": None})
    assert loaded.warnings == ("--model has no effect with the offline judge.",)
    assert loaded.settings == Settings(judge={"provider": "offline"})


def test_environment_of_the_process_is_left_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the mapping that is passed in counts; .env is never put into os.environ."""
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://process.example.com")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    write(folder / ".env", f"OPENAI_API_KEY={CANARY}")
    before = dict(os.environ)
    assert load(folder).settings.azure.endpoint == ""
    assert dict(os.environ) == before


@pytest.mark.parametrize("empty", ["", "  "])
def test_empty_variable_counts_as_unset(folder: Path, empty: str) -> None:
    """An empty variable does not hide the config file's value, in the environment or in .env."""
    write(folder / ".env", f"AZURE_OPENAI_ENDPOINT='{empty}'\nAZURE_OPENAI_API_KEY\n")
    loaded = load(folder, INI, environ={"AZURE_OPENAI_ENDPOINT": empty})
    assert loaded.settings.azure.endpoint == "https://ini.example.com"
    assert loaded.settings.azure.api_key.get_secret_value() == "ini-key"


# Files


def test_search_order(folder: Path) -> None:
    """Config, then .env beside it, in cwd, in backend/; the first counts, parents never do."""
    write(folder.parent / ".env", "AZURE_OPENAI_API_VERSION=parent")
    write(folder / "conf" / "my.ini", "")
    config = Path("conf/my.ini")
    places = ["conf/.env", ".env", "backend/.env"]
    for place in reversed(places):
        write(folder / place, f"AZURE_OPENAI_API_VERSION={place}")
        loaded = load(folder, config=config)
        assert loaded.settings.azure.api_version == place
    assert dict(loaded.files) == {str(folder / name): True for name in ["conf/my.ini", *places]}
    for place in places:
        (folder / place).unlink()
    loaded = load(folder, config=config)
    assert loaded.settings.azure.api_version == "2024-12-01-preview"
    assert dict(loaded.files) == {
        str(folder / name): name == "conf/my.ini" for name in ["conf/my.ini", *places]
    }


def test_backend_next_to_the_folder_of_the_script_or_the_input_is_the_last_resort(folder: Path) -> None:
    """The documented layout: the script and its files in one folder, backend/.env in the folder next to it."""
    outside = folder.parent
    homes = [outside / "tools", Path("../data/2026"), Path("..") / folder.name, folder / "deep"]
    inside = [str(folder / name) for name in ("config.ini", ".env", "backend/.env")]
    first, second = (str(outside / place / "backend" / ".env") for place in ("", "data"))
    write(Path(first), "AZURE_OPENAI_ENDPOINT=https://first.example.com\n")
    write(Path(second), f"AZURE_OPENAI_ENDPOINT=https://second.example.com\nAZURE_OPENAI_API_KEY={CANARY}\n")

    def loaded(**environ: str) -> LoadedSettings:
        return load_settings(None, {}, environ, folder, homes)

    found = loaded()
    assert found.settings.azure.endpoint == "https://first.example.com"
    assert found.settings.azure.api_key.get_secret_value() == CANARY
    assert list(found.files.items()) == [
        *((name, False) for name in inside),
        *((name, True) for name in (first, second)),
    ]
    assert found.warnings == (
        f"azure.api_key comes from {second} line 2, but azure.endpoint, to which it is sent, from {first} line 1: set "
        "both in one place unless this is intended",
        f"azure.endpoint: {first} line 1 names https://first.example.com, {second} line 1 names "
        "https://second.example.com; judge calls go to the first: remove one of them",
    )
    write(folder / ".env", "AZURE_OPENAI_ENDPOINT=https://ours.example.com\n")
    assert loaded().settings.azure.endpoint == "https://ours.example.com"
    ours = loaded(AZURE_OPENAI_API_KEY=CANARY[::-1])
    assert (ours.files[first], ours.files[second]) == (None, None)
    assert load(folder).files.keys() == set(inside), "no other parent is searched"
    Path(second).unlink()
    with pytest.raises(
        SettingsError, match=re.escape(f"backend/.env (not there), {first}, {second} (not there).")
    ):
        loaded().require_credentials()


@pytest.mark.parametrize(
    ("ini", "is_read"),
    [
        ("", True),
        ("[azure]\nendpoint = https://r.example.com\n", True),
        ("[azure]\nendpoint = https://r.example.com\napi_key = k3y\n", False),
        ("[azure]\nendpoint = https://r.example.com\nauth = entra\n", False),
        ("[judge]\nprovider = offline\n", False),
        ("[judge]\nprovider = openai\n", True),
        ("[judge]\nprovider = openai\n[openai]\nbase_url = http://localhost:11434/v1\n", False),
    ],
)
def test_a_neighbour_is_read_only_if_the_judge_lacks_something(folder: Path, ini: str, is_read: bool) -> None:
    """It may belong to another program, which may write what no .env of ours has."""
    write(folder.parent / "backend" / ".env", "not for us\n")
    write(folder / "config.ini", ini)
    if is_read:
        with pytest.raises(SettingsError, match=r"backend/\.env, line 1: is not of the form NAME=value"):
            load_settings(None, {}, {}, folder, [folder])
    else:
        assert load_settings(None, {}, {}, folder, [folder]).warnings == ()


@pytest.mark.skipif(os.name != "posix", reason="needs permissions")
def test_no_file_is_read_that_anybody_could_have_put_there(folder: Path) -> None:
    """As next to a folder in /tmp."""
    write(folder.parent / "backend" / ".env", "AZURE_OPENAI_ENDPOINT=https://o.example.com")
    for mode, is_read in ((0o755, True), (0o775, True), (0o777, False), (0o1777, False)):
        folder.parent.chmod(mode)
        loaded = load_settings(None, {}, {}, folder, [folder])
        assert (len(loaded.files), bool(loaded.settings.azure.endpoint)) == (3 + is_read, is_read)


def test_config_file_is_looked_for_in_the_current_directory_alone(folder: Path) -> None:
    """./config.ini is read if it is there; one in a parent or in backend/ is not."""
    write(folder.parent / "config.ini", "[evaluation]\nmax_rows = 1")
    write(folder / "backend" / "config.ini", "[evaluation]\nmax_rows = 2")
    loaded = load(folder)
    assert loaded.settings.evaluation.max_rows == 200
    assert dict(loaded.files) == {
        str(folder / name): False for name in ("config.ini", ".env", "backend/.env")
    }
    assert load(folder, "[evaluation]\nmax_rows = 3").settings.evaluation.max_rows == 3


def test_named_config_file_must_exist(folder: Path) -> None:
    """A file that the user named and that is not there is an error, a folder too."""
    named = f"{folder / 'my.ini'}: there is no such file; correct --config"
    assert problems(folder, config=Path("my.ini")) == [named]
    (line,) = problems(folder, config=Path("backend"))
    assert line == "backend: is a folder, not a file; name a file in it"
    outside = folder.parent / "my.ini"
    assert problems(folder, config=outside) == [f"{outside}: there is no such file; correct --config"]


def test_paths_are_absolute_in_the_root_of_the_disk(folder: Path) -> None:
    """Where cron begins. Elsewhere a file in the current folder is called by its name."""
    path = folder / "my.ini"
    write(path, "[evaluation]\nmax_rows = many\n")
    (line,) = problems(Path("/"), config=path)
    assert line.startswith(f"{path}, line 2, [evaluation] max_rows: ")
    (line,) = problems(folder, config=path)
    assert line.startswith("my.ini, line 2, [evaluation] max_rows: ")


def test_folder_named_dotenv_is_no_dotenv_file(folder: Path) -> None:
    """`.env` is also a common name of a virtual environment."""
    (folder / ".env").mkdir()
    assert dict(load(folder).files)[str(folder / ".env")] is False


@pytest.mark.parametrize(
    "encoded",
    [
        b"\xef\xbb\xbf[bots]\nstrip_prefix = B\xc3\xb6t\n",
        b"[bots]\r\nstrip_prefix = B\xc3\xb6t\r\n",
        b"[bots]\rstrip_prefix = B\xc3\xb6t",
        b"# \xe2\x80\xa8 [cache]\n[bots]\nstrip_prefix=B\xc3\xb6t",
    ],
)
def test_utf8_is_read(folder: Path, encoded: bytes) -> None:
    """UTF-8 with or without byte order mark, with any line end."""
    loaded = load(folder, encoded)
    assert loaded.settings.bots.strip_prefix == "Böt"
    assert str(loaded.sources["bots.strip_prefix"]) == f"config.ini line {2 + encoded.startswith(b'#')}"


@pytest.mark.parametrize(
    ("encoded", "line"),
    [
        ("[bots]\nstrip_prefix = B".encode("utf-16"), 1),
        ("[bots]\nstrip_prefix = B".encode("utf-16-le"), 1),
        ("[bots]\nstrip_prefix = Böt".encode("cp1252"), 2),
    ],
)
@pytest.mark.parametrize("name", ["config.ini", ".env"])
def test_other_encodings_are_refused(folder: Path, encoded: bytes, line: int, name: str) -> None:
    """UTF-16 and Windows-1252 are refused with the line and the remedy."""
    write(folder / name, encoded)
    assert problems(folder) == [
        f"{name}, line {line}: not UTF-8 text; save the file as UTF-8 (not as UTF-16 or Windows-1252)"
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (r"delimiter = auto    ; auto | || | \n | <custom>", "auto"),
        ("delimiter = ||", "||"),
        (r"delimiter = \n", "\n"),
        (r"delimiter = \r\n\t", "\r\n\t"),
        (r"delimiter = \\n", r"\n"),
        (r"delimiter = \x41\d%(a)s${b}", r"\x41\d%(a)s${b}"),
        ("delimiter = ---  # comment", "---"),
        ("delimiter =##", "##"),
        ("delimiter = a;b#c", "a;b#c"),
        ("delimiter = a = b", "a = b"),
        ("DELIMITER = :", ":"),
        ("delimiter = ###", "###"),
        ("delimiter = ;", ";"),
        ("  Delimiter =\t;;\t", ";;"),
        ("delimiter = #|#  # my mark", "#|#"),
        ("delimiter = # ; my mark", "#"),
        ("delimiter = #\t#", "#"),
        ("delimiter = '||'", "'||'"),
    ],
)
def test_ini_syntax(folder: Path, line: str, expected: str) -> None:
    """Comments, '=' alone as separator, no interpolation; escapes decoded in the delimiter."""
    assert load(folder, f"[context]\n{line}\n").settings.context.delimiter == expected


@pytest.mark.parametrize(
    "line", ["delimiter =", "delimiter = # mine", "delimiter = ;mine", "delimiter = ## mine ##"]
)
def test_an_empty_delimiter_names_the_remedy(folder: Path, line: str) -> None:
    """What has words behind # or ; is a comment."""
    assert problems(folder, f"[context]\n{line}\n") == [
        r"config.ini, line 2, [context] delimiter: '' is not allowed; expected auto, or any text, not empty; "
        r"\n, \t, \r and \\ are decoded; write one that begins with # or ; without white space before it, as in =#x"
    ]


def test_very_many_unknown_keys_are_not_all_looked_up(folder: Path) -> None:
    found = problems(folder, "[judge]\n" + "".join(f"k{number} = 1\n" for number in range(100)))
    assert len(found) == 21
    assert found[-1] == "config.ini, line 22, [judge] k20: unknown; 79 more names are unknown as well"


@pytest.mark.parametrize(
    ("section", "key", "text"),
    [
        ("bots", "strip_prefix", r"\n\t\\"),
        ("cache", "directory", r"C:\new\temp"),
        ("azure", "deployment", r"a\n"),
    ],
)
def test_escapes_stay_elsewhere(folder: Path, section: str, key: str, text: str) -> None:
    """Outside `delimiter` a backslash is a backslash."""
    settings = load(folder, f"[{section}]\n{key} = {text}").settings
    assert str(getattr(getattr(settings, section), key)) == text


def test_marks_of_comments_inside_a_value_belong_to_it(folder: Path) -> None:
    """A key that holds # or ; stays whole; a comment after white space is cut off."""
    loaded = load(
        folder, "[azure]\nendpoint = https://r.example.com ; mine\napi_key = a;b#c%d=  # not yours\n"
    )
    assert loaded.settings.azure.endpoint == "https://r.example.com"
    assert loaded.settings.azure.api_key.get_secret_value() == "a;b#c%d="


def test_comments_do_not_count_as_lines_of_a_key(folder: Path) -> None:
    """A key or section that is commented out is neither a duplicate nor the place of the real one."""
    ini = "# [bots]\n; deployment = a\n[azure] ; [openai]\n  # deployment = b\ndeployment = c # deployment = d\n"
    loaded = load(folder, ini)
    assert loaded.settings.azure.deployment == "c"
    assert str(loaded.sources["azure.deployment"]) == "config.ini line 5"


NO_PAIR = "is not of the form key = value (keys are plain words; ':' is not a separator)"


@pytest.mark.parametrize(
    ("ini", "expected"),
    [
        (
            "[azure]\ntemperature = 0\n\n[azure]\ntemperature = 1\n",
            [
                "line 4, [azure]: occurs already in line 1; keep one of them",
                "line 5, [azure] temperature: occurs already in line 2; keep one of them",
            ],
        ),
        (
            f"api_key = {CANARY}\n[azure]",
            ["line 1: comes before the first [section]; move it into a section"],
        ),
        ("[azure\nauth = key\n", ["line 1: a section is written [name]; add the missing ]"]),
        (f"[azure]\n{CANARY}\n# =\n{CANARY}\n", [f"line 2: {NO_PAIR}", f"line 4: {NO_PAIR}"]),
        (f"[azure]\napi_key: {CANARY}==\n", [f"line 2: {NO_PAIR}"]),
        (
            f"[azure]\nendpoint = https://r.example.com\n  api_key = {CANARY}\n",
            ["line 2, [azure] endpoint: the value continues in an indented line below; remove the indent"],
        ),
        ("[bots]\nstrip_prefix: B\n", [f"line 2: {NO_PAIR}"]),
        (
            "[azure]\ndeployment = a\ntemperature = 0\ntemperature = 1\ndeployment = b",
            [
                "line 4, [azure] temperature: occurs already in line 3; keep one of them",
                "line 5, [azure] deployment: occurs already in line 2; keep one of them",
            ],
        ),
        (f"[{CANARY}]\nx = 1\n", ["line 1: no such section"]),
    ],
)
def test_unclear_files_are_refused(folder: Path, ini: str, expected: list[str]) -> None:
    """Duplicates, stray lines and continued values, by line, all at once, without showing them."""
    assert problems(folder, ini)[: len(expected)] == [f"config.ini, {each}" for each in expected]


NO_EMBEDDINGS = "(RAG Eval uses no embeddings; remove it)"
OWN_LIMITS = (
    "no longer has an effect (a batch has as many requests and bytes as its provider allows); remove it"
)


@pytest.mark.parametrize(
    ("ini", "expected"),
    [
        ("[thresholds]\nfaithfullness=1", "2, [thresholds] faithfullness: unknown key (did you mean 'faithfulness'?)"),
        ("[azure]\n\ntemprature = 0", "3, [azure] temprature: unknown key (did you mean 'temperature'?)"),
        ("[bots]\nzzz = 0", "2, [bots] zzz: unknown key (known: strip_prefix)"),
        ("[Azure]\nendpoint = x", "1, [Azure]: unknown section (did you mean 'azure'?)"),
        ("[AZURE]\nendpoint = x", "1, [AZURE]: unknown section (did you mean 'azure'?)"),
        ("[DEFAULT]\nendpoint = x", f"1, [DEFAULT]: unknown section (known: {KNOWN})"),
        ("[xyz]", f"1, [xyz]: unknown section (known: {KNOWN})"),
        ("[embeddings]\nprovider = azure\nmodel = x", f"1, [embeddings]: unknown section {NO_EMBEDDINGS}"),
        ("[Embedding]", f"1, [Embedding]: unknown section {NO_EMBEDDINGS}"),
        ("[azure]\nembedding_deployment = e", f"2, [azure] embedding_deployment: unknown key {NO_EMBEDDINGS}"),
        ("[batch]\nrequests_per_file = 4", f"2, [batch] requests_per_file: this key {OWN_LIMITS}"),
        ("[batch]\nmb_per_file = 4", f"2, [batch] mb_per_file: this key {OWN_LIMITS}"),
        ("[weights]\nAlpha = 1", "2, [weights] alpha: unknown key (use answer_correctness)"),
        ("[Azure_OpenAI]", "1, [Azure_OpenAI]: unknown section (use [azure])"),
        ("[openai]\nendpoint = x", "2, [openai] endpoint: unknown key (use base_url)"),
        ("[toxicity]\nenabled = no", "2, [toxicity] enabled: unknown key (use [metrics] toxicity)"),
    ],
)  # fmt: skip
def test_unknown_names_are_refused(folder: Path, ini: str, expected: str) -> None:
    """An unknown section or key, [DEFAULT] included, with the nearest valid name."""
    assert problems(folder, ini) == [f"config.ini, line {expected}"]


def test_what_other_tools_call_differently_is_not_ours_and_its_name_here_is() -> None:
    for dotted, hint in loading._OTHER_TOOLS.items():
        section, _, key = dotted.partition(".")
        assert section not in KNOWN.split(", ") or f"{section}.{key}" not in loading._FIELDS
        if name := re.fullmatch(r"use (\w+)", hint):
            assert f"{section}.{name[1]}" in loading._FIELDS
        for there, named in re.findall(r"\[(\w+)\](?: (\w+))?", hint):
            assert there in KNOWN.split(", ")
            assert named in ("", "provider", "with", "or") or f"{there}.{named}" in loading._FIELDS


def test_unknown_override_is_refused(folder: Path) -> None:
    """A key from the command line is checked like one of the file."""
    assert problems(folder, overrides={"cache.enable": True, "cach.enabled": True}) == [
        "command line, [cache] enable: unknown key (did you mean 'enabled'?)",
        "command line, [cach] enabled: unknown section (did you mean 'cache'?)",
    ]


def test_all_problems_are_reported_at_once(folder: Path) -> None:
    """One error, one line a problem, each with its place, its value and what is allowed."""
    ini = """\
[judge]
provider = azur
[azure]
deployment = my gpt
temprature = 0
[weights]
faithfulness = -1
[metrics]
toxicity = y
[evaluation]
max_rows = 2.5
[cache]
directory =
[colour]
red = 1
"""
    environ = {"AZURE_OPENAI_API_VERSION": "2024 12"}
    overrides = {"weights.answer_correctness": "much", "evaluation.min_coverage": 95}
    assert problems(folder, ini, environ=environ, overrides=overrides) == [
        "environment variable AZURE_OPENAI_API_VERSION, [azure] api_version: "
        "'2024 12' is not allowed; expected a name without white space",
        "command line, [weights] answer_correctness: "
        "'much' is not allowed; expected a number of at least 0, not all of them 0",
        "command line, [evaluation] min_coverage: 95 is not allowed; expected a number from 0 to 1",
        "config.ini, line 2, [judge] provider: 'azur' is not allowed; expected azure, openai or offline",
        "config.ini, line 4, [azure] deployment: 'my gpt' is not allowed; expected a name without white space",
        "config.ini, line 5, [azure] temprature: unknown key (did you mean 'temperature'?)",
        "config.ini, line 7, [weights] faithfulness: "
        "'-1' is not allowed; expected a number of at least 0, not all of them 0",
        "config.ini, line 9, [metrics] toxicity: 'y' is not allowed; expected true/false, yes/no, on/off or 1/0",
        "config.ini, line 11, [evaluation] max_rows: "
        "'2.5' is not allowed; expected a whole number of at least 1",
        "config.ini, line 13, [cache] directory: '' is not allowed; expected a path, not empty",
        "config.ini, line 14, [colour]: unknown section (did you mean 'columns'?)",
    ]


def test_unreadable_files_are_reported_together(folder: Path) -> None:
    """What does not parse in any file is named by file and line, in one error."""
    write(folder / ".env", f"# ours\nA=1\n\n\nAZURE_OPENAI_API_KEY {CANARY}\nB='open\n")
    write(folder / "backend" / ".env", "=\n")
    assert problems(folder, "[azure]\nx\n") == [
        "config.ini, line 2: is not of the form key = value (keys are plain words; ':' is not a separator)",
        ".env, line 5: is not of the form NAME=value",
        ".env, line 6: is not of the form NAME=value",
        "backend/.env, line 1: is not of the form NAME=value",
    ]


def test_misplaced_secret_is_not_echoed(folder: Path) -> None:
    """A long value is described by its length, since it may be a key in the wrong place."""
    (line,) = problems(folder, f"[azure]\ntemperature = {CANARY}")
    assert line.endswith("a value of 32 characters is not allowed; expected a number from 0 to 2")
    (line,) = problems(folder, f"[azure]\napikey = {CANARY}")
    assert line.endswith("unknown key (did you mean 'api_key'?)")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("OPENAI_API_KEY=abc", "abc"),
        ("export OPENAI_API_KEY = 'abc'", "abc"),
        ('OPENAI_API_KEY="abc" # mine', "abc"),
        ("OPENAI_API_KEY=a$b${HOME}", "a$b${HOME}"),
        ("OPENAI_API_KEY=abc\nOPENAI_API_KEY=def", "def"),
        ("\ufeffOPENAI_API_KEY=abc\r\n", "abc"),
    ],
)
def test_dotenv_is_read_as_it_stands(folder: Path, line: str, expected: str) -> None:
    """Quotes, export and comments as usual; nothing is interpolated."""
    write(folder / ".env", line)
    assert load(folder).settings.openai.api_key.get_secret_value() == expected


@pytest.mark.slow
@given(
    st.lists(
        st.sampled_from(["[azure]", "[x]", "  ", "=", "a", "endpoint", "api_key", "#", ";", ":", "\n", "\n"])
    )
)
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, tokens: list[str]) -> None:
    """Whatever stands in config.ini or .env, loading gives settings or a SettingsError, nothing else."""
    folder = tmp_path_factory.mktemp("any")
    write(folder / "config.ini", "".join(tokens))
    write(folder / ".env", "".join(tokens))
    with suppress(SettingsError):
        assert load(folder).settings.bots == Settings().bots


# Values


@pytest.mark.parametrize(
    ("text", "expected"),
    [(text, True) for text in ("1", "true", "YES", "On", "tRuE")]
    + [(text, False) for text in ("0", "false", "NO", "Off")],
)
def test_flags(folder: Path, text: str, expected: bool) -> None:
    """The four usual pairs of words, in any case."""
    assert load(folder, f"[evaluation]\nparallel = {text}").settings.evaluation.parallel is expected


@pytest.mark.parametrize("judge", ["azure", "openai"])
@pytest.mark.parametrize("where", ["file", "option"])
def test_several_processes_are_for_the_offline_judge(folder: Path, judge: str, where: str) -> None:
    """One process is what an LLM judge has anyway, and the offline judge takes any number."""
    config = f"[judge]\nprovider = {judge}\n[evaluation]\nprocesses = {{}}\n"
    text = config.format(4 if where == "file" else "")
    overrides = Options(processes=None if where == "file" else 4).overrides()
    offline = {**overrides, "judge.provider": "offline"}
    with pytest.raises(SettingsError) as caught:
        load(folder, text, overrides=overrides)
    place = "config.ini, line 4" if where == "file" else "command line --processes"
    assert str(caught.value) == (
        f"{place}, [evaluation] processes: only the offline judge uses several processes; remove it, and raise "
        "max_workers in [evaluation] for more concurrent calls to an LLM judge"
    )
    assert load(folder, config.format(1)).settings.evaluation.processes == 1
    assert load(folder, config.format("")).settings.evaluation.processes is None
    assert load(folder, text, overrides=offline).settings.evaluation.processes == 4


def test_what_a_value_of_a_setting_is_stays_out_of_messages_of_python() -> None:
    """A key may be among them."""
    assert "canary" not in repr(Given("canary", Source(Level.ENVIRONMENT, "A_KEY")))


SHARES = ", ".join(f"0.{number:03}" for number in range(1, 21))


@pytest.mark.parametrize(
    ("key", "value"),
    [(f"metrics.{key}", value) for key in ("faithfulness", "toxicity") for value in ("", "t", "n", "2", "ja")]
    + [("thresholds.faithfulness", value) for value in ("nan", "inf", "-0.1", "1.1", "30%", "0,3", "")]
    + [("weights.faithfulness", value) for value in ("-0.1", "nan", "inf", "1e999", "x")]
    + [("evaluation.max_rows", value) for value in ("0", "-1", "1.5", "1e3", "nan", "ten")]
    + [("evaluation.max_workers", "0"), ("evaluation.min_coverage", "95")]
    + [("evaluation.processes", value) for value in ("0", "65", "1.5", "auto")]
    + [("judge.max_attempts", value) for value in ("0", "21")]
    + [("judge.timeout_seconds", value) for value in ("0", "-1", "inf", "86401")]
    + [("judge.prompts", value) for value in ("", "Single", "one", "ragas, single")]
    + [("judge.structured_output", "yes"), ("azure.temperature", "2.1"), ("openai.temperature", "-1")]
    + [("azure.deployment", ""), ("openai.model", "a b"), ("openai.base_url", ""), ("azure.api_version", "")]
    + [("toxicity.threshold", "2"), ("toxicity.deployment", "a b"), ("context.delimiter", "")]
    + [("bots.strip_prefix", ""), ("cache.directory", ""), ("columns.cost_unit", "x" * 21)]
    + [("evaluation.looks", SHARES + ", 0.021")]
    + [("privacy.redact", value) for value in ("fax", "email phone", "email,", "email, fax", "true")]
    + [("privacy.redact_pattern", value) for value in ("(", "[a", r"\d*", "a|", "[[a]", "a{1,99999999999}")],
)
def test_values_out_of_range(folder: Path, key: str, value: str) -> None:
    """Refused with the place and with what is allowed, from the file and the command line alike."""
    section, name = key.split(".")
    shown = repr(value) if len(value) <= 20 else f"a value of {len(value)} characters"
    refused = f"[{section}] {name}: {shown} is not allowed; expected {FIELDS[section, name].description}"
    assert problems(folder, f"[{section}]\n{name} = {value}\n") == [f"config.ini, line 2, {refused}"]
    if key != "openai.base_url":
        (folder / "config.ini").unlink()
        (line,) = problems(folder, overrides={key: value})
        assert line.endswith(refused)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("thresholds.faithfulness", "1e-1", 0.1),
        ("toxicity.deployment", "", ""),
        ("openai.model", "org/model:7b", "org/model:7b"),
        ("evaluation.max_rows", "1000000", 1_000_000),
        ("evaluation.looks", SHARES, tuple(number / 1000 for number in range(1, 21))),
        ("columns.cost_unit", "x" * 20, "x" * 20),
        ("privacy.redact", "Phone,email, phone", "phone, email"),
        ("privacy.redact_pattern", r"\bCUST-\d+#;[ ]#%", r"\bCUST-\d+#;[ ]#%"),
    ],
)
def test_values_are_read_as_they_are_meant(folder: Path, key: str, value: str, expected: object) -> None:
    section, name = key.split(".")
    settings = load(folder, f"[{section}]\n{name} = {value}\n").settings
    assert getattr(getattr(settings, section), name) == expected


def test_metrics_may_not_all_be_off(folder: Path) -> None:
    """A run with nothing to judge is refused before it begins."""
    ini = "[metrics]\n" + "".join(f"{metric} = off\n" for metric in (*METRIC_LABELS, "toxicity"))
    assert problems(folder, ini) == [
        "config.ini, line 2, [metrics]: every metric is switched off, so there is nothing to judge"
    ]
    assert load(folder, ini, overrides={"metrics.toxicity": True}).settings.metrics.toxicity


# Weights


def test_options_replace_weights_before_normalisation(folder: Path) -> None:
    """--alpha 0.5 --beta 0.3 --gamma 0.2: stored as given, normalised over all five."""
    given = {
        "weights.answer_correctness": 0.5,
        "weights.faithfulness": 0.3,
        "weights.answer_relevancy": 0.2,
    }
    weights = load(folder, "[weights]\nfaithfulness = 9\n", overrides=given).settings.weights
    assert weights.faithfulness == 0.3
    rounded = {metric: round(weight, 4) for metric, weight in weights.normalised.items()}
    assert rounded == {
        "answer_correctness": 0.4348,
        "faithfulness": 0.2609,
        "answer_relevancy": 0.1739,
        "context_precision": 0.0652,
        "context_recall": 0.0652,
    }


def test_weights_that_add_up_to_one_stay_as_they_were_written() -> None:
    """Added one after the other they make 0.9999999999999999, and the first of them would read 0.35000000000000003."""
    default = {
        "answer_correctness": 0.35,
        "faithfulness": 0.25,
        "answer_relevancy": 0.25,
        "context_precision": 0.075,
        "context_recall": 0.075,
    }
    assert Weights().normalised == default
    assert effective_weights(Settings()) == default
    alone = effective_weights(Settings(), ("faithfulness", "answer_relevancy"))
    assert alone == {"faithfulness": 0.5, "answer_relevancy": 0.5}
    assert effective_weights(Settings(), ()) == {}
    unweighted = Settings(weights=Weights(faithfulness=0))
    assert effective_weights(unweighted, ("faithfulness",)) == {"faithfulness": 0.0}


def test_the_way_of_signing_in_is_all_that_a_dry_run_forgets() -> None:
    settings = Settings(azure={"auth": "entra", "deployment": "d"}, judge={"max_attempts": 3})
    other = settings.without_entra()
    assert other == Settings(azure={"auth": "key", "deployment": "d"}, judge={"max_attempts": 3})


@given(st.lists(st.floats(0, 1e300), min_size=5, max_size=5).filter(any))
def test_normalised_weights_add_up_to_one(weights: list[float]) -> None:
    """For any allowed weights, in the order and under the names of the report's metrics."""
    normalised = Weights(**dict(zip(METRIC_LABELS, weights, strict=True))).normalised
    assert list(normalised) == list(METRIC_LABELS)
    assert sum(normalised.values()) == pytest.approx(1)
    assert all(0 <= weight <= 1 for weight in normalised.values())


@pytest.mark.parametrize("weight", ["0", "1e308"])
def test_weights_need_a_usable_sum(folder: Path, weight: str) -> None:
    """All zero, or too big to add, is refused by section."""
    ini = "[weights]\n" + "".join(f"{metric} = {weight}\n" for metric in METRIC_LABELS)
    assert problems(folder, ini) == [
        "config.ini, line 2, [weights]: the weights must add up to a finite number above 0"
    ]


@pytest.mark.parametrize(
    ("overrides", "heading"),
    [({}, "config.ini, line 7"), (Options(gamma=0.0).overrides(), "command line --gamma")],
)
def test_what_is_judged_needs_a_weight(folder: Path, overrides: Mapping[str, object], heading: str) -> None:
    """Otherwise no case could have an RQS."""
    off = "".join(f"{metric} = off\n" for metric in METRIC_LABELS if metric != "answer_relevancy")
    ini = f"[metrics]\n{off}[weights]\nanswer_relevancy = 0\n"
    assert problems(folder, ini, overrides=overrides) == [
        f"{heading}: the metrics that are switched on have no weight, so there is no RQS; "
        "give one of them a weight above 0 (answer_relevancy)"
    ]


# Keys


@pytest.mark.parametrize(
    ("variable", "key"),
    [(f"{CANARY} ", CANARY), (f"\t{CANARY}\r\n", CANARY), (f'"{CANARY}"', CANARY), (f"' {CANARY} '", CANARY)],
)
def test_wrapping_of_a_key_is_removed(folder: Path, variable: str, key: str) -> None:
    """Outer white space and quotes go, with a warning that does not show the key."""
    loaded = load(folder, environ=AZURE | {"AZURE_OPENAI_API_KEY": variable})
    assert loaded.settings.azure.api_key.get_secret_value() == key
    assert loaded.warnings == (
        "environment variable AZURE_OPENAI_API_KEY: white space or quotes around azure.api_key were removed",
    )


@pytest.mark.parametrize(
    ("section", "provider", "key"),
    [("azure", "azure", "deployment"), ("openai", "openai", "model"), ("toxicity", "azure", "deployment")],
)
@pytest.mark.parametrize("written", ['"gpt-4o-mini"', "'gpt-4o-mini'", '" gpt-4o-mini "'])
def test_quotes_around_the_name_of_a_model_are_removed(
    folder: Path, section: str, provider: str, key: str, written: str
) -> None:
    (folder / "config.ini").write_text(f"[judge]\nprovider = {provider}\n[{section}]\n{key} = {written}\n")
    loaded = load(folder)
    assert getattr(getattr(loaded.settings, section), key) == "gpt-4o-mini"
    assert loaded.warnings == (
        f"config.ini line 4: white space or quotes around {section}.{key} were removed",
    )


@pytest.mark.parametrize("written", ["gpt-4o", 'gpt"4o', "'gpt-4o", "org/model:free"])
def test_other_quotes_in_the_name_of_a_model_are_part_of_it(folder: Path, written: str) -> None:
    (folder / "config.ini").write_text(f"[azure]\ndeployment = {written}\n")
    loaded = load(folder)
    assert (loaded.settings.azure.deployment, loaded.warnings) == (written, ())


BAD_KEYS = {
    "the key contains white space; copy it again": ["ab cd", "ab\ncd", "ab\tcd", "ab\xa0cd", "ab\u2028cd"],
    "the key contains an invisible or non-ASCII character; copy it again": (
        "ab\u200bcd \ufeffabcd “abcd” schlüssel ab\x00cd ab\x1bcd ab\udc80".split(" ")
    ),
    "this is a placeholder, not a key; enter the API key of your provider": (
        "<your-key> ${X} $KEY {{key}} %KEY% your-api-key-here YOUR_KEY changeme change-me xxxxxxxx sk-... **** "
        "paste-key-here TODO"
    ).split(),
}


@pytest.mark.parametrize(
    ("problem", "key"), [(problem, key) for problem, keys in BAD_KEYS.items() for key in keys]
)
@pytest.mark.parametrize("provider", ["azure", "openai"])
def test_bad_keys_are_refused_without_being_shown(
    folder: Path, provider: str, problem: str, key: str
) -> None:
    """Only for the provider that is chosen; the other's key does no harm."""
    variable = "AZURE_OPENAI_API_KEY" if provider == "azure" else "OPENAI_API_KEY"
    environ = {variable: key}
    (line,) = problems(folder, environ=environ, overrides={"judge.provider": provider})
    assert line == f"environment variable {variable}, [{provider}] api_key: {problem}"
    assert key not in line.removesuffix(problem)
    for other in {"azure", "openai", "offline"} - {provider}:
        assert load(folder, environ=environ, overrides={"judge.provider": other}).warnings == ()


@pytest.mark.parametrize(
    "key", [CANARY, "sk-proj-Ab_9", "not-needed", "EMPTY", "xx-9", "lm-studio", "a+/b=="]
)
def test_good_keys_are_kept(folder: Path, key: str) -> None:
    """What could be a key is taken as it is, without a warning."""
    loaded = load(folder, environ=AZURE | {"AZURE_OPENAI_API_KEY": key})
    assert loaded.settings.azure.api_key.get_secret_value() == key
    assert loaded.warnings == ()


def test_no_secret_is_ever_shown(folder: Path) -> None:
    """Neither settings nor what surrounds them show a key as text, JSON or in an error of pydantic."""
    loaded = load(folder, f"[openai]\napi_key = {CANARY}", environ=AZURE)
    assert loaded.settings.azure.api_key.get_secret_value() == CANARY
    shown = (repr(loaded), str(loaded.settings), loaded.settings.model_dump_json(), repr(loaded.warnings))
    assert not any(CANARY in text for text in shown)
    with pytest.raises(ValidationError) as caught:
        Settings(azure={"api_key": {"key": CANARY}})
    assert CANARY not in str(caught.value)


def test_settings_are_immutable() -> None:
    """A section or value cannot be replaced, and no attribute added."""
    settings = Settings()
    with pytest.raises(ValidationError, match="frozen"):
        settings.judge = Settings().judge  # type: ignore[misc]
    with pytest.raises(ValidationError, match="frozen"):
        settings.judge.provider = "offline"  # type: ignore[misc]
    with pytest.raises(ValidationError, match="Extra inputs"):
        Settings(judge={"providr": "offline"})


# Endpoints


@pytest.mark.parametrize(
    "url",
    [
        "https://r.openai.azure.com/",
        "https://r.openai.azure.com",
        "https://gateway.example.com:8443/team/openai",
        "http://localhost:8000",
        "http://127.0.0.1:1",
        "http://127.8.8.8/",
        "http://[::1]:8000/v1",
        "HTTPS://R.example.com",
    ],
)
def test_good_endpoints(folder: Path, url: str) -> None:
    """Https anywhere, http on this computer."""
    assert load(folder, environ=AZURE | {"AZURE_OPENAI_ENDPOINT": url}).settings.azure.endpoint == url


BAD_URLS = {
    "the URL must begin with https://; http is only for localhost, ": [
        "http://r.openai.azure.com", "http://127.0.0.1.example.com", "http://localhost.example.com",
        "http://2130706433", "http://localhost@example.com",
    ],
    "the URL must begin with https:// and name a host": [
        "r.openai.azure.com", "file:///etc/passwd", "https://", "ftp://r.example.com",
    ],
    "the URL must not contain a user name or password": [
        f"https://user:{CANARY}@r.example.com", "https://@r.example.com",
    ],
    "the URL must not contain a query (?…) or fragment (#…)": [
        f"https://r.example.com/?api-key={CANARY}", "https://r.example.com/?", f"https://r.example.com/#{CANARY}",
    ],
    "this is not a URL": ["https://r.example.com:port", "https://[::1"],
    "the URL contains white space, a backslash or a non-ASCII character": [
        "https://a b.example.com", "https://r.example.com\n.evil.com", "https://evil.com\\@r.example.com",
        "https://r\u200b.example.com",
    ],
    "this is a placeholder, not the URL of a resource": [
        "https://your-resource.openai.azure.com/", "https://<name>.openai.azure.com/",
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("problem", "url"), [(problem, url) for problem, urls in BAD_URLS.items() for url in urls]
)
@pytest.mark.parametrize(
    ("provider", "variable", "key"),
    [("azure", "AZURE_OPENAI_ENDPOINT", "endpoint"), ("openai", "OPENAI_BASE_URL", "base_url")],
)
def test_bad_endpoints(folder: Path, provider: str, variable: str, key: str, url: str, problem: str) -> None:
    """Refused for the chosen provider before any call, without showing what the URL may hide."""
    (line,) = problems(folder, environ={variable: url}, overrides={"judge.provider": provider})
    assert line.startswith(f"environment variable {variable}, [{provider}] {key}: {problem}")
    assert load(folder, environ={variable: url}, overrides={"judge.provider": "offline"}).warnings == ()


@pytest.mark.parametrize(
    ("provider", "url", "keep"),
    [
        ("azure", f"https://r.example.com/openai/deployments/gpt-4o/chat/completions?k={CANARY}", "/"),
        ("azure", "https://r.example.com:8443/openai/deployments/gpt-4o", ":8443/"),
        ("azure", "https://r.example.com/openai/v1/", "/"),
        ("azure", "https://r.example.com/team/openai/deployments/x/", "/team"),
        ("openai", "https://r.example.com/v1/chat/completions", "/v1"),
        ("openai", "https://r.example.com/openai/deployments/gpt-4o", "/"),
    ],
)
def test_pasted_request_url_shows_what_to_keep(folder: Path, provider: str, url: str, keep: str) -> None:
    """The URL of a single request was pasted: the message shows the part that belongs here."""
    variable = "AZURE_OPENAI_ENDPOINT" if provider == "azure" else "OPENAI_BASE_URL"
    (line,) = problems(folder, environ={variable: url}, overrides={"judge.provider": provider})
    assert line.endswith(f"this is the URL of a request; keep only https://r.example.com{keep}")


def test_base_url_of_azure_is_one_for_openai(folder: Path) -> None:
    """Azure's own address for the openai protocol ends in /openai/v1/."""
    url = "https://r.openai.azure.com/openai/v1/"
    loaded = load(folder, f"[judge]\nprovider = openai\n[openai]\nbase_url = {url}\napi_key = k")
    assert loaded.settings.openai.base_url == url


# Who may read a key, and where it goes


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX")
@pytest.mark.parametrize(
    ("name", "text", "mode", "warned"),
    [
        ("config.ini", f"[azure]\napi_key = {CANARY}", 0o600, False),
        ("config.ini", f"[azure]\napi_key = {CANARY}", 0o640, True),
        ("config.ini", f"[openai]\napi_key = {CANARY}", 0o604, True),
        ("config.ini", "[azure]\napi_key =", 0o644, False),
        ("config.ini", "[azure]\ndeployment = x", 0o644, False),
        (".env", f"OPENAI_API_KEY={CANARY}", 0o644, True),
        (".env", f"OPENAI_API_KEY={CANARY}", 0o600, False),
        (".env", "OTHER=1", 0o644, False),
    ],
)
def test_file_with_a_key_that_others_can_read(
    folder: Path, name: str, text: str, mode: int, warned: bool
) -> None:
    """A warning that names the file and the remedy, only when there is a key in it."""
    write(folder / name, text, mode)
    assert stat.S_IMODE((folder / name).stat().st_mode) == mode
    warning = f"{name}: contains an API key, and other users can read it; run chmod 600 {name}"
    assert load(folder).warnings == ((warning,) if warned else ())


KEY_ENV = {"AZURE_OPENAI_API_KEY": CANARY}
URL_ENV = {"AZURE_OPENAI_ENDPOINT": "https://r.example.com"}
KEY_LINE, URL_LINE = f"AZURE_OPENAI_API_KEY={CANARY}\n", "AZURE_OPENAI_ENDPOINT=https://r.example.com\n"
KEY_INI, URL_INI = f"[azure]\napi_key = {CANARY}\n", "[azure]\nendpoint = https://r.example.com\n"


@pytest.mark.parametrize(
    ("files", "environ", "key_source", "url_source"),
    [
        ({"config.ini": URL_INI}, KEY_ENV, "environment variable AZURE_OPENAI_API_KEY", "config.ini line 2"),
        ({"config.ini": KEY_INI}, URL_ENV, "config.ini line 2", "environment variable AZURE_OPENAI_ENDPOINT"),
        ({".env": URL_LINE}, KEY_ENV, "environment variable AZURE_OPENAI_API_KEY", ".env line 1"),
        ({".env": URL_LINE, "config.ini": KEY_INI}, {}, "config.ini line 2", ".env line 1"),
        ({".env": URL_LINE, "backend/.env": KEY_LINE}, {}, "backend/.env line 1", ".env line 1"),
        ({}, KEY_ENV | URL_ENV, "", ""),
        ({".env": URL_LINE + KEY_LINE}, {}, "", ""),
        ({"config.ini": f"{URL_INI}api_key = {CANARY}"}, {}, "", ""),
        ({"config.ini": "[azure]\nendpoint =\n"}, KEY_ENV, "", ""),
        ({"config.ini": "[azure]\napi_key =\n"}, URL_ENV, "", ""),
    ],
)
def test_key_and_endpoint_from_different_places(
    folder: Path, files: dict[str, str], environ: dict[str, str], key_source: str, url_source: str
) -> None:
    """A warning that names both sources, and only then."""
    for name, text in files.items():
        write(folder / name, text)
    warning = (
        f"azure.api_key comes from {key_source}, but azure.endpoint, to which it is sent, "
        f"from {url_source}: set both in one place unless this is intended"
    )
    assert load(folder, environ=environ).warnings == ((warning,) if key_source else ())


OTHER = "[azure]\nendpoint = https://{}\n"
NAMED = "environment variable AZURE_OPENAI_ENDPOINT names https://r.example.com"


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"config.ini": OTHER.format("other.example.com")}, ["config.ini line 2 names https://other.example.com"]),
        ({"config.ini": OTHER.format("r.example.com/team")}, ["config.ini line 2 names https://r.example.com/team"]),
        ({"config.ini": OTHER.format("r.example.com:8443")}, ["config.ini line 2 names https://r.example.com:8443"]),
        ({".env": "AZURE_OPENAI_ENDPOINT=https://o.example.com/s3cr3t"}, [".env line 1 names https://o.example.com/…"]),
        (
            {
                "config.ini": OTHER.format("a.example.com"),
                ".env": "AZURE_OPENAI_ENDPOINT=https://b.example.com",
                "backend/.env": "AZURE_OPENAI_ENDPOINT=https://c.example.com",
            },
            [
                ".env line 1 names https://b.example.com",
                "backend/.env line 1 names https://c.example.com",
                "config.ini line 2 names https://a.example.com",
            ],
        ),
        (
            {"config.ini": OTHER.format("a.example.com"), ".env": "AZURE_OPENAI_ENDPOINT=https://r.example.com"},
            ["config.ini line 2 names https://a.example.com"],
        ),
        (
            {"config.ini": OTHER.format("a.example.com"), ".env": "AZURE_OPENAI_ENDPOINT=https://R.example.com/"},
            ["config.ini line 2 names https://a.example.com"],
        ),
        ({"config.ini": OTHER.format("R.example.com/")}, []),
        ({"config.ini": '[azure]\nendpoint = "https://r.example.com"\n'}, []),
        ({"config.ini": "[azure]\nendpoint =\n"}, []),
        ({"config.ini": OTHER.format("your-resource.openai.azure.com")}, []),
        ({"config.ini": "[openai]\nbase_url = https://o.example.com/v1\n"}, []),
    ],
)  # fmt: skip
def test_places_that_name_different_resources(folder: Path, files: dict[str, str], told: list[str]) -> None:
    """The order holds, and each place that is not followed is named, without a secret in its address."""
    for name, text in files.items():
        write(folder / name, text)
    loaded = load(folder, environ=KEY_ENV | URL_ENV)
    assert loaded.settings.azure.endpoint == "https://r.example.com"
    assert loaded.warnings == tuple(
        f"azure.endpoint: {NAMED}, {each}; judge calls go to the first: remove one of them" for each in told
    )


@pytest.mark.parametrize(
    ("ini", "environ", "told"),
    [
        (
            f"[azure]\napi_key = {CANARY[::-1]}\n",
            {},
            "azure.api_key: environment variable AZURE_OPENAI_API_KEY and config.ini line 2 contain different keys; "
            "the first is used: remove one of them",
        ),
        (
            "[azure]\n\napi_version = 2024-12-01-preview\n",
            {"AZURE_OPENAI_API_VERSION": "2025-01-01"},
            "azure.api_version: environment variable AZURE_OPENAI_API_VERSION sets '2025-01-01', config.ini line 3 "
            "sets '2024-12-01-preview'; the first is used: remove one of them",
        ),
        (
            f"[azure]\napi_version = {CANARY}\n",
            {"AZURE_OPENAI_API_VERSION": "2025-01-01"},
            "azure.api_version: environment variable AZURE_OPENAI_API_VERSION sets '2025-01-01', config.ini line 2 "
            "sets a value of 32 characters; the first is used: remove one of them",
        ),
        (f"[azure]\napi_key = '{CANARY}'\n", {}, ""),
        ("[azure]\napi_key =\napi_version = 2025-01-01\n", {"AZURE_OPENAI_API_VERSION": "2025-01-01"}, ""),
        (f"[openai]\napi_key = {CANARY[::-1]}\n", {"OPENAI_API_KEY": CANARY}, ""),
    ],
)
def test_the_environment_wins_and_a_warning_names_what_loses(
    folder: Path, ini: str, environ: dict[str, str], told: str
) -> None:
    """For every credential, and without the value of a key. What belongs to another provider is nobody's concern."""
    loaded = load(folder, ini, environ=KEY_ENV | URL_ENV | environ)
    assert loaded.settings.azure.api_key.get_secret_value() == CANARY
    assert loaded.warnings == ((told,) if told else ())
    assert loaded.settings.azure.api_version == environ.get("AZURE_OPENAI_API_VERSION", "2024-12-01-preview")


def test_places_that_name_different_servers_of_openais_kind(folder: Path) -> None:
    """The address that is built in is nobody's choice."""
    environ = {"OPENAI_BASE_URL": "https://a.example.com/v1", "OPENAI_API_KEY": CANARY}
    chosen = {"judge.provider": "openai"}
    loaded = load(
        folder, "[openai]\nbase_url = https://a.example.com/v2\n", environ=environ, overrides=chosen
    )
    assert loaded.warnings == (
        "openai.base_url: environment variable OPENAI_BASE_URL names https://a.example.com/v1, config.ini line 2 "
        "names https://a.example.com/v2; judge calls go to the first: remove one of them",
    )
    assert load(folder, "", environ=environ, overrides=chosen).warnings == ()


SECRETIVE = Settings(
    azure={"endpoint": "https://r.example.com", "api_key": SecretStr(CANARY)}, openai={"api_key": CANARY}
)


def test_a_pickle_holds_no_key() -> None:
    """What another process gets reads its own environment; whoever copies in this one keeps the key."""
    for holder in (SECRETIVE, SECRETIVE.azure, SECRETIVE.azure.api_key, endpoint_of(SECRETIVE)):
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            assert CANARY.encode() not in pickle.dumps(holder, protocol)
        for twin in (copy.copy(holder), copy.deepcopy(holder)):
            assert twin == holder
    assert pickle.loads(pickle.dumps(SECRETIVE)) == SECRETIVE.without_secrets()  # noqa: S301 - our own bytes
    endpoint = endpoint_of(SECRETIVE)
    assert pickle.loads(pickle.dumps(endpoint)) == replace(endpoint, api_key="")  # noqa: S301 - our own bytes
    assert SECRETIVE.model_copy(deep=True).azure.api_key.get_secret_value() == CANARY


def test_settings_without_secrets_are_the_same_otherwise_and_read_back() -> None:
    plain = SECRETIVE.without_secrets()
    assert plain.azure.endpoint == "https://r.example.com"
    assert {key.get_secret_value() for key in (plain.azure.api_key, plain.openai.api_key)} == {""}
    text = plain.model_dump_json()
    assert CANARY not in text
    assert Settings.model_validate_json(text) == plain
    assert SECRETIVE.openai.api_key.get_secret_value() == CANARY
    for shown in (repr(SECRETIVE), str(SECRETIVE), SECRETIVE.model_dump_json(), f"{SECRETIVE.azure.api_key}"):
        assert CANARY not in shown


def test_key_for_the_default_address_is_no_concern(folder: Path) -> None:
    """The built-in address of OpenAI needs no source of its own."""
    loaded = load(folder, environ={"OPENAI_API_KEY": CANARY}, overrides={"judge.provider": "openai"})
    assert loaded.warnings == ()


# Missing credentials


def test_missing_azure_credentials(folder: Path) -> None:
    """Loading succeeds; asking for credentials says what was looked for, where, and what to set."""
    loaded = load(folder, "[azure]\nendpoint =\n")
    with pytest.raises(SettingsError) as caught:
        loaded.require_credentials()
    assert caught.value.exit_code is ExitCode.USAGE
    assert caught.value.problems == (
        "Azure OpenAI credentials not found: endpoint and api_key not set. "
        f"Set them in section [azure] of {folder / 'config.ini'}, or set AZURE_OPENAI_ENDPOINT and "
        "AZURE_OPENAI_API_KEY in the environment or in .env; --judge offline needs no credentials. "
        f"Looked in: the environment, {folder / 'config.ini'}, {folder / '.env'} (not there), "
        f"{folder / 'backend' / '.env'} (not there).",
    )


@pytest.mark.parametrize(
    ("provider", "environ", "missing"),
    [
        ("azure", {}, "Azure OpenAI credentials not found: endpoint and api_key not set."),
        ("azure", URL_ENV, "Azure OpenAI credentials not found: api_key not set."),
        ("azure", KEY_ENV, "Azure OpenAI credentials not found: endpoint not set."),
        (
            "azure",
            {"AZURE_OPENAI_ENDPOINT": "http://localhost"},
            "Azure OpenAI credentials not found: api_key",
        ),
        ("azure", AZURE, None),
        ("openai", AZURE, "OpenAI credentials not found: api_key not set."),
        ("openai", {"OPENAI_BASE_URL": "https://x.example.com/v1"}, "OpenAI credentials not found: api_key"),
        ("openai", {"OPENAI_API_KEY": CANARY}, None),
        ("openai", {"OPENAI_BASE_URL": "http://localhost:8000/v1"}, None),
        ("openai", {"OPENAI_BASE_URL": "https://[::1]/v1"}, None),
        ("offline", {}, None),
    ],
)
def test_credentials_are_required_for_the_chosen_provider(
    folder: Path, provider: str, environ: dict[str, str], missing: str | None
) -> None:
    """Each provider asks for its own; the offline judge and a local server ask for none."""
    loaded = load(folder, environ=environ, overrides={"judge.provider": provider})
    if missing is None:
        loaded.require_credentials()
        return
    with pytest.raises(SettingsError, match=f"^{re.escape(missing)}"):
        loaded.require_credentials()


@pytest.mark.parametrize("ini", ["", "[openai]\napi_key =\n"])
def test_local_server_needs_no_key(folder: Path, ini: str) -> None:
    """The client wants some text as a key; a server on this computer does not look at it."""
    environ = {"OPENAI_BASE_URL": "http://127.0.0.1:8000/v1"}
    loaded = load(folder, ini, environ=environ, overrides={"judge.provider": "openai"})
    assert loaded.settings.openai.api_key.get_secret_value() == "not-needed"
    assert str(loaded.sources["openai.api_key"]) == "default"
    assert loaded.warnings == ()


@pytest.mark.slow
def test_import_is_light() -> None:
    """Reading settings loads neither dotenv nor anything that belongs to tables, models or the network."""
    script = (
        "import sys, rag_eval.configuration.settings; "
        "print([m for m in ('dotenv', 'openai', 'pandas', 'numpy', 'openpyxl', 'httpx', 'ragas') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


# Limits


_NUMBER = re.compile(
    r"a (?P<whole>whole )?number "
    r"(?:from (?P<first>\d+) to (?P<last>\d+)|of at least (?P<least>\d+)|"
    r"above (?P<above>\d+)(?:, at most (?P<most>\d+))?)"
    r"(?P<empty>, or empty)?(?:, not all of them 0)?"
)


def test_every_key_says_in_words_what_is_allowed() -> None:
    assert [place for place, field in FIELDS.items() if not field.description] == []


@pytest.mark.parametrize(
    ("section", "key", "words"),
    [
        (*place, words)
        for place, field in FIELDS.items()
        if (words := field.description or "").startswith(("a number", "a whole number"))
    ],
)
def test_a_number_is_allowed_up_to_the_limits_that_its_words_name(section: str, key: str, words: str) -> None:
    found = _NUMBER.fullmatch(words)
    assert found is not None, words
    step = 1 if found["whole"] else 0.001
    low, high = found["first"] or found["least"], found["last"] or found["most"]
    allowed = [float(found["above"]) + step] if found["above"] else [float(low)]
    refused = [float(found["above"])] if found["above"] else [float(low) - step]
    if high:
        allowed.append(float(high))
        refused.append(float(high) + step)
    for value in allowed:
        assert not _is_refused(section, key, int(value) if found["whole"] else value), value
    for value in [*refused, *([1.5] if found["whole"] else [])]:
        assert _is_refused(section, key, int(value) if found["whole"] and value != 1.5 else value), value
    assert _is_refused(section, key, "") is (found["empty"] is None)


def _is_refused(section: str, key: str, value: object) -> bool:
    try:
        Settings.model_validate({section: {key: value}})
    except ValidationError as error:
        return any(each["loc"][:2] == (section, key) for each in error.errors())
    return False
