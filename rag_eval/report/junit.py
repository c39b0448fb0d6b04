"""Gate results as JUnit XML, for CI systems."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, tostring

from rag_eval.results.gates import GateResult
from rag_eval.store.replacement import write_text
from rag_eval.texts.display import printable


def write_junit(target: Path, results: Sequence[GateResult], properties: Mapping[str, str]) -> Path:
    """Write one test case a gate and bot, and what is known of the run as properties. Raises OutputError."""
    return write_text(target, junit_xml(results, properties), "--junit")


def junit_xml(results: Sequence[GateResult], properties: Mapping[str, str]) -> str:
    failed = sum(not result.passed for result in results)
    suite = Element("testsuite", name="rag-eval", tests=str(len(results)), failures=str(failed), errors="0")
    listed = SubElement(suite, "properties")
    for name, value in properties.items():
        SubElement(listed, "property", name=printable(name), value=printable(value))
    for result in results:
        case = SubElement(suite, "testcase", classname=printable(result.bot), name=result.gate.title)
        if not result.passed:
            SubElement(case, "failure", message=printable(result.reason))
    return f"{tostring(suite, encoding='unicode', xml_declaration=True)}\n"
