"""CUDA C++ compiled at run time by NVRTC, which comes with torch, kept on disk, and launched on torch's streams.

A kernel is an instance of a template in a source beside this file, such as `eisner_argmax<float, false, 0, 2>`.
It takes a second or two to compile, once a machine: the machine code is kept in the folder that HEADWAY_CUDA_CACHE
names, or in the user's cache, under a name made of everything it depends on, with a checksum before it. What is damaged
is compiled again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import torch
from cuda.bindings import driver, nvrtc

from headway.atomic import write_file
from headway.errors import HeadwayError

_SOURCES = Path(__file__).parent
_HEADERS = ("numbers.cuh", "walks.cuh", "eisner_chart.cuh", "matrix_tree.cu")  # what sources include
_OPTIONS = ("--std=c++17", "--device-as-default-execution-space")  # the latter for lambdas
_CHECKSUM = 32  # bytes of SHA-256
_NO_CONTEXT = driver.CUresult.CUDA_ERROR_INVALID_CONTEXT


class CudaError(HeadwayError, RuntimeError):
    """CUDA could not compile or launch a kernel."""


def configuration(threads: int, shared: int, early: bool) -> Any:
    """How to launch: blocks of so many threads and bytes of shared memory. One that is launched `early` may begin while
    the kernel before it ends, and waits for it by itself."""
    result = driver.CUlaunchConfig()
    result.gridDimY = result.gridDimZ = result.blockDimY = result.blockDimZ = 1
    result.blockDimX, result.sharedMemBytes = threads, shared
    if early:
        attribute = driver.CUlaunchAttribute()
        attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        attribute.value.programmaticStreamSerializationAllowed = 1
        result.attrs, result.numAttrs = [attribute], 1
    return result


def queue(function: Any, device: int, configuration: Any, blocks: int, stream: int, arguments: int) -> None:
    """Launch a function on a stream of the current device; `arguments` is where the addresses of its arguments are. A
    configuration serves one call at a time."""
    configuration.gridDimX, configuration.hStream = blocks, stream
    status = driver.cuLaunchKernelEx(configuration, function, arguments, 0)
    if status[0] == _NO_CONTEXT:  # nothing of CUDA's was called in this thread before
        _enter_context(device)
        status = driver.cuLaunchKernelEx(configuration, function, arguments, 0)
    _checked(status)


@cache
def function(device: int, source: str, expression: str, shared: int) -> Any:
    """The instance `expression` of a template in a source file, allowed so many bytes of shared memory."""
    with torch.cuda.device(device):
        _enter_context(device)
        code, name = _compiled(device, source, expression)
        module = _checked(driver.cuModuleLoadData(code))
        found = _checked(driver.cuModuleGetFunction(module, name))
        largest = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        _checked(driver.cuFuncSetAttribute(found, largest, shared))
    return found


def _enter_context(device: int) -> None:
    """Make a device's context, which torch uses, this thread's."""
    _checked(driver.cuCtxSetCurrent(_checked(driver.cuDevicePrimaryCtxRetain(_checked(driver.cuDeviceGet(device))))))


def _compiled(device: int, source: str, expression: str) -> tuple[bytes, bytes]:
    """Machine code, and the name of the kernel in it; both from disk if they are there."""
    major, minor = torch.cuda.get_device_capability(device)
    options = [f"--gpu-architecture=sm_{major}{minor}", *_OPTIONS]
    texts = [(_SOURCES / name).read_text("utf-8") for name in (source, *_HEADERS)]
    version = _checked(nvrtc.nvrtcVersion())
    key = hashlib.sha256("\0".join([*texts, *options, expression, str(version)]).encode()).hexdigest()
    place = _folder() / f"{key[:32]}.cubin"
    kept = _kept(place)
    if kept is None:
        kept = _compile(source, texts, options, expression)
        _keep(place, kept)
    name, _, code = kept.partition(b"\0")
    return code, name


def _compile(source: str, texts: list[str], options: list[str], expression: str) -> bytes:
    """The kernel's name, a zero byte, and the machine code."""
    main, *headers = (text.encode() for text in texts)
    names = [name.encode() for name in _HEADERS]
    program = _checked(nvrtc.nvrtcCreateProgram(main, source.encode(), len(headers), headers, names))
    _checked(nvrtc.nvrtcAddNameExpression(program, expression.encode()))
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise CudaError(f"NVRTC cannot compile {expression} of {source}: {_log(program)}")
    name: bytes = _checked(nvrtc.nvrtcGetLoweredName(program, expression.encode()))
    code = _filled(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
    _checked(nvrtc.nvrtcDestroyProgram(program))
    return name + b"\0" + code


def _log(program: Any) -> str:
    text = _filled(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
    return text.rstrip(b"\0").decode(errors="replace").strip()


def _filled(size: Callable[[Any], Any], fill: Callable[[Any, bytes], Any], program: Any) -> bytes:
    """A text of the program's, into a buffer of the size that it says."""
    buffer = b" " * int(_checked(size(program)))
    _checked(fill(program, buffer))
    return buffer


def _folder() -> Path:
    named = os.environ.get("HEADWAY_CUDA_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headway" / "cuda"


def _kept(place: Path) -> bytes | None:
    with suppress(OSError):
        content = place.read_bytes()
        if hashlib.sha256(content[_CHECKSUM:]).digest() == content[:_CHECKSUM]:
            return content[_CHECKSUM:]
    return None


def _keep(place: Path, content: bytes) -> None:
    with suppress(OSError):  # a full or read-only disk costs a compilation next time
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_file(place, hashlib.sha256(content).digest() + content)


def _checked(result: tuple[Any, ...]) -> Any:
    """The values of a call of NVRTC's or the driver's, after its status."""
    status, *values = result
    if int(status) != 0:
        raise CudaError(f"a call of CUDA failed: {status}")
    return values[0] if len(values) == 1 else tuple(values)
