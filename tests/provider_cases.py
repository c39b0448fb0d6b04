"""The cases of `provider_answers/`, as values."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fake_judge import Answer

FOLDER = Path(__file__).with_name("provider_answers")


@dataclass(frozen=True)
class ProviderCase:
    id: str
    row: str
    status: int
    headers: dict[str, str]
    text: str
    action: str
    code: str
    wait: float | None = None
    attempts: int | None = None
    refuses: str = ""
    told: str = ""

    def answer(self, elsewhere: str = "") -> Answer:
        headers = {name: value.format(elsewhere=elsewhere) for name, value in self.headers.items()}
        return Answer(self.status, self.text.encode(), headers)

    def objects_to(self, body: dict[str, Any]) -> bool:
        return self.refuses in body or self.refuses in json.dumps(body.get("response_format", {}))


def _read(path: Path) -> ProviderCase:
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["id"] == path.stem, path
    assert document["source"], path
    text = document["text"] if "text" in document else json.dumps(document["body"])
    headers = {"x-request-id": f"id-{path.stem}", **document["headers"]}
    return ProviderCase(path.stem, document["row"], document["status"], headers, text, **document["expected"])


CASES = tuple(_read(path) for path in sorted(FOLDER.glob("*.json")))
