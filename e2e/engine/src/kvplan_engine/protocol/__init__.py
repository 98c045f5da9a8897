"""The OpenAI protocol as vLLM speaks it: requests read, answers written. Pure: values in, values out."""
