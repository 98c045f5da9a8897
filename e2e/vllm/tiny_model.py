"""Write a model directory of a few kilobytes that vLLM loads with random weights: `python tiny_model.py DIRECTORY`.

Runs under the environment of vLLM, whose tokenizers library it needs. Byte-level tokens, 512 of them; two layers, two
key-value heads of 32, bfloat16: 512 bytes of KV cache per token.
"""

import json
import sys
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY = 512
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "vocab_size": VOCABULARY,
    "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 32, "max_position_embeddings": 2048, "torch_dtype": "bfloat16",
    "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False,
    "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2,
}  # fmt: skip
TOKENIZER = {
    "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>",
    "chat_template": "{% for message in messages %}{{ message['content'] }}{% endfor %}",
}  # fmt: skip
GENERATION = {name: CONFIG[name] for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
CORPUS = ["what a plan reserves, a request may use; what it does not use, another request may not have"] * 20


def write(directory: Path) -> None:
    """Write the four files of the model."""
    directory.mkdir(parents=True, exist_ok=True)
    _tokenizer().save(str(directory / "tokenizer.json"))
    for name, content in (("config", CONFIG), ("tokenizer_config", TOKENIZER), ("generation_config", GENERATION)):
        (directory / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")


def _tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<s>", "</s>", "<pad>"],
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


if __name__ == "__main__":
    write(Path(sys.argv[1]))
