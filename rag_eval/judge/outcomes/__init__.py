"""What an answer of the judge's endpoint means: every one falls into exactly one class, with a stable code.

- retry: transient; the same request may succeed later
- reject: this call has no usable reply, and asking again would not help; other calls may well succeed
- adapt: the endpoint does not take one parameter; leave it out or rename it, once for the whole run
- stop: no further call can succeed
"""

from rag_eval.judge.outcomes.bodies import read_body
from rag_eval.judge.outcomes.classes import (
    LOADING,
    LONGEST_WAIT,
    LOOP,
    TRUNCATED,
    Action,
    Completion,
    Fault,
    Parameter,
    Tokens,
)
from rag_eval.judge.outcomes.connections import oversized, timed_out, unreachable
from rag_eval.judge.outcomes.statuses import read_status

__all__ = [
    "LOADING",
    "LONGEST_WAIT",
    "LOOP",
    "TRUNCATED",
    "Action",
    "Completion",
    "Fault",
    "Parameter",
    "Tokens",
    "oversized",
    "read_body",
    "read_status",
    "timed_out",
    "unreachable",
]
