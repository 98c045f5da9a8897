"""Whether a plan may be put in force: ordered small functions, each refusal with a reason a person can act on."""
