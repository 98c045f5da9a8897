"""Flags of vLLM 0.32 that change nothing the stand-in shows: accepted, and without effect. Data."""

VALUES = (
    "allowed-local-media-path", "allowed-media-domains", "api-server-count", "async-engine-args", "attention-backend",
    "chat-template", "chat-template-content-format", "code-revision", "config-format", "cpu-offload-gb",
    "data-parallel-address", "data-parallel-backend", "data-parallel-rank", "data-parallel-rpc-port",
    "data-parallel-size", "data-parallel-size-local", "data-parallel-start-rank", "decode-context-parallel-size",
    "distributed-executor-backend", "download-dir", "dtype", "fully-sharded-loras", "generation-config",
    "guided-decoding-backend", "hf-config-path", "hf-token", "io-processor-plugin", "kv-cache-dtype",
    "kv-offloading-backend", "kv-offloading-size", "kv-sharing-fast-prefill", "limit-mm-per-prompt", "load-format",
    "log-config-file", "logits-processor-pattern", "logprobs-mode", "long-prefill-token-threshold-adaptive",
    "lora-dtype", "mamba-cache-dtype", "mamba-ssm-cache-dtype", "master-addr", "master-port", "max-cpu-loras",
    "max-long-partial-prefills", "max-log-len", "max-logprobs", "max-lora-rank", "max-loras",
    "max-num-partial-prefills", "max-parallel-loading-workers", "max-seq-len-to-capture", "mm-processor-cache-gb",
    "mm-encoder-tp-mode", "model-impl", "nnodes", "node-rank", "numa-bind-nodes", "optimization-level",
    "otlp-traces-endpoint", "prefill-schedule-interval", "prefix-caching-hash-algo", "quantization", "ray-workers",
    "reasoning-parser", "response-role", "revision", "root-path", "runner", "seed", "show-hidden-metrics-for-version",
    "ssl-ca-certs", "ssl-cert-reqs", "ssl-certfile", "ssl-keyfile", "stream-interval", "structured-outputs-backend",
    "swap-space", "task", "tokenizer", "tokenizer-mode", "tokenizer-revision", "tool-call-parser",
    "tool-parser-plugin", "uvicorn-log-level", "worker-cls", "worker-extension-cls", "device", "convert",
)  # fmt: skip
"""Take one value."""

OBJECTS = (
    "additional-config", "compilation-config", "default-chat-template-kwargs", "default-mm-loras", "ec-transfer-config",
    "eplb-config", "hf-overrides", "kv-events-config", "kv-transfer-config", "media-io-kwargs",
    "mm-processor-kwargs", "model-loader-extra-config", "override-attention-dtype", "override-generation-config",
    "override-pooler-config", "pooler-config", "profiler-config", "rope-scaling", "speculative-config",
    "structured-outputs-config",
)  # fmt: skip
"""Take a JSON object."""

LISTS = (
    "allowed-headers", "allowed-methods", "allowed-origins", "collect-detailed-traces", "cuda-graph-sizes",
    "cudagraph-capture-sizes", "ignore-patterns", "logits-processors", "lora-modules", "middleware",
)  # fmt: skip
"""Take one value or more."""

SWITCHES = (
    "allow-credentials", "calculate-kv-scales", "disable-access-log", "disable-cascade-attention",
    "disable-custom-all-reduce", "disable-fastapi-docs", "disable-hybrid-kv-cache-manager", "disable-log-requests",
    "disable-log-stats", "disable-sliding-window", "disable-uvicorn-access-log", "enable-auto-tool-choice",
    "enable-dbo", "enable-eplb", "enable-expert-parallel", "enable-log-outputs", "enable-log-requests",
    "enable-lora", "enable-lora-bias", "enable-mfu-metrics", "enable-multimodal-encoder-data-parallel",
    "enable-prompt-embeds", "enable-sleep-mode", "enable-ssl-refresh", "enforce-eager", "headless",
    "interleave-mm-strings", "kv-cache-metrics", "language-model-only", "ray-workers-use-nsight",
    "return-tokens-as-token-ids", "skip-mm-profiling", "skip-tokenizer-init", "trust-remote-code",
    "use-tqdm-on-load", "numa-bind", "async-scheduling",
)  # fmt: skip
"""Take no value; each also has its ``--no-`` form."""
