"""Makes a shared library in libcuda's place, without a device: each function returns CUDA_ERROR_NO_DEVICE."""
import re
import subprocess

_NO_DEVICE = 100
_ALWAYS = ("cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuGetProcAddress", "cuGetProcAddress_v2")  # which libraries look up by name
_FUNCTION = re.compile(r"\bU (cu[A-Z]\w*)$", re.M)


def functions(libraries):
    """Returns the driver functions that libraries import."""
    found = set(_ALWAYS)
    for library in libraries:
        done = subprocess.run(["nm", "-D", "--undefined-only", str(library)], capture_output=True, text=True)
        found.update(name for name in _FUNCTION.findall(done.stdout) if not re.match(r"cu(da|blas|dnn|fft|rand|solver|sparse|pti)[A-Z]", name))
    return sorted(found)


def make(libraries, path):
    """Writes the library for those that import from it; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    source = path.with_suffix(".c")
    source.write_text("".join(f"int {name}(void) {{ return {_NO_DEVICE}; }}\n" for name in functions(libraries)))
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(path), str(source)], check=True)
    return path
