"""Gate results as JUnit XML, for CI systems."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, tostring

from rag_eval.results.gates import GateResult
from rag_eval.store.replacement import write_text
from rag_eval.texts.display import printable


def write_junit(target: Path, results: Sequence[GateResult], properties: Mapping[str, str]) -> Path:
    """Write one test case per gate and bot; the properties say what is known of the run.

    Returns the path of the file. Raises OutputError.
    """
    failed = sum(not result.passed for result in results)
    suite = Element("testsuite", name="rag-eval", tests=str(len(results)), failures=str(failed), errors="0")
    listed = SubElement(suite, "properties")
    for name, value in properties.items():
        SubElement(listed, "property", name=printable(name), value=printable(value))
    for result in results:
        case = SubElement(suite, "testcase", classname=printable(result.bot), name=result.gate.title)
        if not result.passed:
            SubElement(case, "failure", message=printable(result.reason))
    return write_text(target, f"{tostring(suite, encoding='unicode', xml_declaration=True)}\n", "--junit")
