"""Lets vLLM's build for CUDA run on a machine without a GPU: an H100 by name, with tensors on the CPU. Import it before vllm.

PW_VLLM_STUB names a shared library that replaces libcuda (see run.py); PW_VLLM_WORK names a folder for caches and model configs. Ops that exist only for
CUDA can be traced but not run; everything else runs on CPU tensors.
"""
import ctypes
import json
import os
import types
from pathlib import Path

WORK = Path(os.environ["PW_VLLM_WORK"])
os.environ.update(
    {
        "VLLM_HOST_IP": "127.0.0.1",
        "MASTER_ADDR": "127.0.0.1",
        "GLOO_SOCKET_IFNAME": "lo",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }
)
for name, value in {
    "VLLM_CACHE_ROOT": str(WORK / "cache"),
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_USE_MEGA_AOT_ARTIFACT": "0",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "PWR_CACHE_DIR": str(WORK / "kernels"),
}.items():
    os.environ.setdefault(name, value)
ctypes.CDLL(os.environ["PW_VLLM_STUB"], mode=ctypes.RTLD_GLOBAL)

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import vllm.platforms  # noqa: E402
from torch.testing._internal.distributed import fake_pg  # noqa: E402
from vllm.platforms.cuda import CudaPlatformBase  # noqa: E402
from vllm.platforms.interface import DeviceCapability  # noqa: E402

CAPABILITY = (9, 0)
RANKS = int(os.environ.get("PW_VLLM_RANKS", "1"))
_NAME = "NVIDIA H100 80GB HBM3"


def _constant(value):
    return classmethod(lambda cls, *args, **kwargs: value)


class FakeGpu(CudaPlatformBase):
    """vLLM's CUDA platform with the answers of an H100 and the tensors of the CPU."""

    device_type = "cpu"
    device_name = "cuda"
    dispatch_key = "CPU"
    dist_backend = "gloo"
    get_device_capability = _constant(DeviceCapability(*CAPABILITY))
    get_device_name = _constant(_NAME)
    get_device_total_memory = _constant(80 << 30)
    is_fully_connected = _constant(True)
    device_count = _constant(8)
    num_compute_units = _constant(132)
    set_device = _constant(None)
    is_pin_memory_available = _constant(False)
    is_integrated_gpu = _constant(False)
    get_device_communicator_cls = _constant("vllm.distributed.device_communicators.base_device_communicator.DeviceCommunicatorBase")
    get_current_memory_usage = _constant(0)
    get_device_numa_node = _constant(None)
    get_all_device_numa_nodes = _constant(None)


class _Nothing:
    """A stream or an event."""

    def __init__(self, *args, **kwargs):
        pass

    def record(self, *args):
        pass

    def wait(self, *args):
        pass


vllm.platforms._current_platform = FakeGpu()
torch.cuda.get_device_properties = lambda *args, **kwargs: types.SimpleNamespace(
    name=_NAME,
    major=CAPABILITY[0],
    minor=CAPABILITY[1],
    multi_processor_count=132,
    total_memory=80 << 30,
    warp_size=32,
    shared_memory_per_block_optin=232448,
    shared_memory_per_multiprocessor=233472,
    L2_cache_size=50 << 20,
)
torch.cuda.get_device_capability = lambda *args, **kwargs: CAPABILITY
torch.cuda.get_device_name = lambda *args, **kwargs: _NAME
torch.cuda.current_device = lambda: 0
torch.cuda.Stream = torch.cuda.Event = _Nothing

import vllm.utils.torch_utils  # noqa: E402

vllm.utils.torch_utils.aux_stream = lambda *args, **kwargs: None

_init_process_group, _new_group = dist.init_process_group, dist.new_group


def _init(*args, **kwargs):
    return _init_process_group("fake", store=fake_pg.FakeStore(), world_size=RANKS, rank=0)


dist.init_process_group = _init
dist.new_group = lambda ranks=None, *args, **kwargs: _new_group(ranks, backend="fake")


def join(config):
    """Makes the process groups of a config, once per process."""
    if dist.is_initialized():
        return
    from vllm.config import set_current_vllm_config
    from vllm.distributed import parallel_state
    from vllm.distributed.device_communicators import shm_broadcast

    shm_broadcast.MessageQueue.create_from_process_group = staticmethod(lambda *args, **kwargs: None)
    parallel_state.in_the_same_node_as = lambda *args, **kwargs: [True] * RANKS
    with set_current_vllm_config(config):
        parallel_state.init_distributed_environment(RANKS, 0, "tcp://127.0.0.1:29511", 0, "gloo")
        parallel_state.initialize_model_parallel(RANKS, 1)
    parallel_state._EP = parallel_state._EP or parallel_state._TP  # for mixtures of experts


def write_config(name, config):
    """Writes the config.json of a model; returns its folder."""
    folder = WORK / "models" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    return str(folder)
