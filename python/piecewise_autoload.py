"""The entry point that PyTorch calls at the end of `import torch`: starts the lens if PIECEWISE_LENS is set, and does nothing otherwise."""

import os


def start_lens() -> None:
    if not os.environ.get("PIECEWISE_LENS"):
        return
    try:
        from piecewise.lens import start_from_environment

        start_from_environment()
    except Exception as reason:  # otherwise `import torch` fails
        import warnings

        warnings.warn(f"PIECEWISE_LENS is set, but the lens cannot be loaded: {reason}", stacklevel=2)
