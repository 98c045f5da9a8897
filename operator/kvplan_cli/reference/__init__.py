"""The reference pages in ``docs/reference``, from the code: fields, settings, the routers' metrics.

Inputs: API types, settings types, the routers' collector. Outputs: Markdown. Only ``__main__`` touches files.
"""
