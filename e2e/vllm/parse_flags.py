"""Hold argument lists against vLLM's own parser, without a server: `python parse_flags.py < LISTS`.

Inputs: a JSON list of argument lists on stdin. Output: a JSON list with null where the parser takes a list, else its
words. Runs under the environment of vLLM.
"""

import contextlib
import io
import json
import sys

from vllm.entrypoints.launchers.cli_args import make_arg_parser
from vllm.utils.argparse_utils import FlexibleArgumentParser


def refusal(arguments: list[str]) -> str | None:
    """The parser's words about a list, None if it takes it."""
    words = io.StringIO()
    try:
        with contextlib.redirect_stderr(words):
            make_arg_parser(FlexibleArgumentParser()).parse_args(arguments)
    except SystemExit:
        return words.getvalue().strip().splitlines()[-1]
    return None


if __name__ == "__main__":
    print(json.dumps([refusal(arguments) for arguments in json.load(sys.stdin)]))
