"""What an answer of the judge's endpoint means: every one falls into exactly one class, with a stable code.

- retry: transient; the same request may succeed later
- reject: this call has no usable reply, and asking again would not help; other calls may well succeed
- adapt: the endpoint does not take one parameter; leave it out or rename it, once for the whole run
- stop: no further call can succeed
"""
