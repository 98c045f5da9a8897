"""How long a step takes: a fixed part, its prompt tokens, its running answers; less with tensor parallelism.

t = scale · [ (base + per_answer · answers) / tp^e + prompt_tokens / (rate · pp · tp^e) ], seconds.
Pipeline stages work on different prompts at the same time, but one answer passes through all of them, so
that only the prompt part gets shorter. Pure.
"""

from dataclasses import dataclass

from kvplan_engine.core.step import Step


@dataclass(frozen=True)
class StepTime:
    """The speed of an engine.

    Attributes:
        base_seconds: fixed part of a step on one GPU.
        answer_seconds: added per running answer on one GPU.
        prefill_tokens_per_second: prompt tokens computed per second on one GPU.
        tensor_parallel: GPUs that share each layer.
        pipeline_parallel: stages.
        scaling: exponent e; 1 is perfect scaling, 0 none.
        time_scale: factor on everything; 0.1 makes an engine ten times faster.
    """

    base_seconds: float
    answer_seconds: float
    prefill_tokens_per_second: float
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    scaling: float = 0.8
    time_scale: float = 1.0

    def seconds(self, step: Step) -> float:
        """Duration of a step that is about to be computed."""
        answers = sum(1 for request, tokens in step.work.items() if tokens == 1 and request.generated)
        prompt_tokens = step.tokens - answers
        speed = float(self.tensor_parallel**self.scaling)
        decode = (self.base_seconds + self.answer_seconds * answers) / speed
        prefill = prompt_tokens / (self.prefill_tokens_per_second * self.pipeline_parallel * speed)
        return self.time_scale * (decode + prefill)
