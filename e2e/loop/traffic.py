"""What the demonstration asks for: lengths of the sample's three classes, from real traces where they lie.

Inputs: the directory of traces (`KVPLAN_DATA`), the classes' limits. Outputs: a ``Shape`` per class, and a sentence on
where they come from. Requests beyond a class's limits are left out; keys are Zipf, since these traces have none.
"""

from collections.abc import Mapping
from itertools import islice

from e2e.loop import manifests
from e2e.loop.shapes import Shape
from kvplan_cli.sample_generated import GENERATED, generated_trace
from kvplan_cli.sample_workload import data_directory
from kvplan_cli.traces import load_trace
from kvplan_operator.model.trace import RequestTrace

TRACES = {
    "chat": "azure2023_conv.csv.gz",
    "code": "azure2023_code.csv.gz",
    "summarise": "lengths_arxiv_summarization.csv.gz",
}
SHARED_TOKENS = {"chat": 512, "code": 256, "summarise": 128}
"""Beginning that the prompts of a key have in common."""
KEYS = {"chat": 40, "code": 0, "summarise": 0}
_REQUESTS = 2_000
"""Of each trace; enough that no length is asked for again and again."""


def shapes() -> tuple[Mapping[str, Shape], str]:
    """A shape per class, and where they come from."""
    directory = data_directory()
    if all((directory / name).is_file() for name in TRACES.values()):
        traces = {name: load_trace(directory / file, {}, name).traces[0] for name, file in TRACES.items()}
        source = f"lengths of real traces ({', '.join(TRACES.values())}), arrivals Poisson"
    else:
        traces = {made.name: generated_trace(made, seed=0) for made in GENERATED}
        source = f"generated: no traces in {directory}; " + "; ".join(made.described() for made in GENERATED)
    return {name: _shape(trace) for name, trace in traces.items()}, source


def _shape(trace: RequestTrace) -> Shape:
    name = trace.name
    return Shape(name, _lengths(trace), keys=KEYS[name], shared_tokens=SHARED_TOKENS[name])


def _lengths(trace: RequestTrace) -> list[tuple[int, int]]:
    """(prompt, output) tokens within the class's limits."""
    tokens = next(c for c in manifests.sample("classes") if c["metadata"]["name"] == trace.name)["spec"]["tokens"]
    prompts = trace.prompt_tokens if trace.prompt_tokens is not None else trace.output_tokens
    pairs = zip(prompts.tolist(), trace.output_tokens.tolist(), strict=True)
    fitting = ((int(p), int(o)) for p, o in pairs if 0 < p <= tokens["inputMax"] and 0 < o <= tokens["maxOutput"])
    return list(islice(fitting, _REQUESTS))
