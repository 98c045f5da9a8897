"""The versions of vLLM that the scheduler was run on, and the refusal of all others. Standard library only."""

TESTED = ("0.32.0",)
"""Each by ``make e2e-vllm``: start, preemptions against reservation, drain."""


class UntestedVersion(RuntimeError):
    """The engine is of a version that the scheduler was never run on."""


def check_version(version: str) -> None:
    """Let tested versions pass, whatever their local suffix (``0.32.0+cpu``).

    Raises:
        UntestedVersion: any other; it names the remedy.
    """
    if version.partition("+")[0] not in TESTED:
        tested = ", ".join(TESTED)
        raise UntestedVersion(
            f"kvplan_vllm extends an interface of vLLM that is not public and was tried on {tested} only, not on "
            f"{version}: leave out --scheduler-cls (the router's ledger reserves without it) or use a tested version"
        )
