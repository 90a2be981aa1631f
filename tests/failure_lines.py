"""Single lines as PyTorch, Hugging Face, drivers and libc write them, and what they mean."""

from lanes.failures.causes import Kind

COMMON_LINES = [
    (
        Kind.PROGRAM,
        "python3: can't open file '/tmp/nofile.py': [Errno 2] No such file or directory",
        "nofile.py, which it was to run, is not on the host.",
    ),
    (
        Kind.PROGRAM,
        "/usr/bin/python3: can't open file '/srv/a b/serve.py': [Errno 2] No such file",
        "serve.py, which it was to run, is not on the host.",
    ),
    (
        Kind.PROGRAM,
        "bash: /opt/run.sh: No such file or directory",
        "run.sh, which it was to run, is not on the host.",
    ),
    (
        Kind.PROGRAM,
        "sh: 1: tabby: not found",
        "tabby, which it was to run, is not on the host.",
    ),
    (
        Kind.PROGRAM,
        "/bin/bash: line 1: tabby: command not found",
        "tabby, which it was to run, is not on the host.",
    ),
    (
        Kind.PROGRAM,
        "/usr/bin/env: \u2018node\u2019: No such file or directory",
        "node, which it was to run, is not on the host.",
    ),
    (
        Kind.PROGRAM,
        "Error: Cannot find module '/srv/app/server.js'",
        "server.js, which it was to run, is not on the host.",
    ),
    (
        Kind.FILE_MISSING,
        "bash: /opt/run.sh: Permission denied",
        "run.sh may not be read or run by the user that runs model servers.",
    ),
    (
        Kind.FILE_MISSING,
        "python3: can't open file '/root/serve.py': [Errno 13] Permission denied",
        "serve.py may not be read or run by the user that runs model servers.",
    ),
    (
        Kind.PROGRAM,
        "/usr/bin/python3: No module named infinity_emb",
        "server cannot start: the Python module infinity_emb is not installed.",
    ),
    (
        Kind.PROGRAM,
        "ModuleNotFoundError: No module named 'fastapi'",
        "server cannot start: the Python module fastapi is not installed.",
    ),
    (
        Kind.PORT_TAKEN,
        "Error: listen EADDRINUSE: address already in use 127.0.0.1:18102",
        "Its port is in use by another program.",
    ),
    (
        Kind.GPU_MEMORY,
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 14.00 GiB. GPU 0 has a "
        "total capacity of 23.64 GiB of which 9.21 GiB is free.",
        "The GPU ran out of memory (it asked for 14.00 GiB more).",
    ),
    (
        Kind.GPU_MEMORY,
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 978.00 MiB. GPU 0 has a "
        "total capacity of 15.98 GiB of which 630.00 MiB is free.",
        "The GPU ran out of memory (it asked for 978.00 MiB more).",
    ),
    (
        Kind.GPU_MEMORY,
        "RuntimeError: MPS backend out of memory (MPS allocated: 8.02 GiB, other allocations: "
        "992.00 KiB, max allowed: 9.07 GiB).",
        "The GPU ran out of memory.",
    ),
    (
        Kind.GPU_MEMORY,
        "torch.cuda.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. "
        "(out of memory)",
        "The GPU ran out of memory.",
    ),
    (
        Kind.GPU_MEMORY,
        "2024-12-16 17:10:56,767 - root - ERROR - torch.OutOfMemoryError: Allocation on device",
        "The GPU ran out of memory.",
    ),
    (
        Kind.GPU_MEMORY,
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "The GPU ran out of memory.",
    ),
    (
        Kind.HOST_MEMORY,
        "RuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't "
        "allocate memory: you tried to allocate 2359296 bytes. Error code 12 (Cannot allocate "
        "memory)",
        "The host ran out of memory (it asked for 2359296 bytes more).",
    ),
    (Kind.HOST_MEMORY, "MemoryError", "The host ran out of memory."),
    (
        Kind.SHARED_MEMORY,
        "RuntimeError: unable to write to file </torch_169035_1920244589_10>: No space left on "
        "device (28)",
        "The host's shared memory (/dev/shm) is full.",
    ),
    (
        Kind.SHARED_MEMORY,
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient "
        "shared memory (shm).",
        "The host's shared memory (/dev/shm) is full.",
    ),
    (
        Kind.SHARED_MEMORY,
        "Error while creating shared memory segment /dev/shm/nccl-cjY8K5 (size 10617216), error: "
        "No space left on device (28)",
        "The host's shared memory (/dev/shm) is full.",
    ),
    (
        Kind.DISK_FULL,
        "OSError: [Errno 28] No space left on device: '/root/.cache/vllm/torch_compile_cache'",
        "A disk of the host is full.",
    ),
    (
        Kind.PORT_TAKEN,
        "ERROR: [Errno 98] error while attempting to bind on address ('127.0.0.1', 18102): "
        "address already in use",
        "Its port is in use by another program.",
    ),
    (
        Kind.ACCESS,
        "OSError: You are trying to access a gated repo.",
        "The model is gated: its licence has to be accepted before it can be had.",
    ),
    (
        Kind.ACCESS,
        "Cannot access gated repo for url https://huggingface.co/google/gemma-3-1b-pt.",
        "The model is gated: its licence has to be accepted before it can be had.",
    ),
    (
        Kind.ACCESS,
        "OSError: meta-llama/nope is not a local folder and is not a valid model identifier "
        "listed on 'https://huggingface.co/models'",
        "It wants to download something, which servers here do not.",
    ),
    (
        Kind.ACCESS,
        "The repository /models/exaone contains custom code which must be executed to correctly "
        "load the model.",
        "The model brings code of its own, which runs only with consent.",
    ),
    (
        Kind.FILE_BROKEN,
        "safetensors_rust.SafetensorError: Error while deserializing header: "
        "MetadataIncompleteBuffer",
        "A file of the model is cut off or damaged.",
    ),
    (
        Kind.FILE_BROKEN,
        "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central "
        "directory",
        "A file of the model is cut off or damaged.",
    ),
    (
        Kind.FILE_MISSING,
        "RuntimeError: Cannot find any model weights with `/models/qwen`",
        "Files of the model are missing.",
    ),
    (
        Kind.FILE_MISSING,
        "FileNotFoundError: [Errno 2] No such file or directory: 'ninja'",
        "A file is missing on the host: ninja.",
    ),
    (
        Kind.FILE_MISSING,
        "PermissionError: [Errno 13] Permission denied: '/models/qwen/config.json'",
        "config.json may not be read by the user that runs model servers.",
    ),
    (
        Kind.UNSUPPORTED,
        "ValueError: The checkpoint you are trying to load has model type `qwen4_exp` but "
        "Transformers does not recognize this architecture.",
        "The installed server does not know models of the type qwen4_exp.",
    ),
    (
        Kind.UNSUPPORTED,
        "ValueError: Model architectures ['DbrxForCausalLM'] are not supported for now. "
        "Supported architectures: ['AquilaModel']",
        "The installed server does not know the architecture 'DbrxForCausalLM'.",
    ),
    (
        Kind.DRIVER,
        "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an "
        "NVIDIA GPU and installed a driver from http://www.nvidia.com/Download/index.aspx",
        "The GPU's driver is not there.",
    ),
    (
        Kind.DRIVER,
        "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory",
        "The GPU's driver is not there.",
    ),
    (
        Kind.DRIVER,
        "CUDA error: CUDA driver version is insufficient for CUDA runtime version",
        "The GPU's driver is too old for this server, or was updated without a reboot.",
    ),
    (
        Kind.DRIVER,
        "Failed to initialize NVML: Driver/library version mismatch",
        "The GPU's driver is too old for this server, or was updated without a reboot.",
    ),
    (
        Kind.DRIVER,
        "RuntimeError: No CUDA GPUs are available",
        "It finds no GPU.",
    ),
    (
        Kind.GPU_FAULT,
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "The GPU or its driver failed while it computed.",
    ),
    (
        Kind.UNSUPPORTED,
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "This build of server was not made for the host's GPU.",
    ),
    (
        Kind.PROGRAM,
        "ModuleNotFoundError: No module named 'flash_attn'",
        "server cannot start: the Python module flash_attn is not installed.",
    ),
    (
        Kind.ARGUMENT,
        "main.py: error: unrecognized arguments: --load-workflow",
        "server does not know the argument --load-workflow.",
    ),
    (
        Kind.ARGUMENT,
        "launch_server.py: error: argument --tp-size: invalid int value: 'two'",
        "server does not take its arguments: argument --tp-size.",
    ),
    (
        Kind.PORT_TAKEN,
        "slotserve: the container could not be started: driver failed programming external "
        "connectivity on endpoint a: Bind for 127.0.0.1:18100 failed: port is already allocated",
        "Its port is in use by another program.",
    ),
    (
        Kind.PROGRAM,
        "slotserve: the image vllm/vllm-openai:v1 is not on this host: docker pull x",
        "The container image vllm/vllm-openai:v1 is not on this host.",
    ),
    (
        Kind.PROGRAM,
        "slotserve: the Docker Engine does not answer at /var/run/docker.sock (FileNotFoundError)",
        "The host's Docker Engine does not answer.",
    ),
    (
        Kind.PROGRAM,
        "slotserve: the container could not be made: invalid mount config for type bind",
        "The Docker Engine did not make its container.",
    ),
    (
        Kind.PROGRAM,
        'slotserve: the container could not be started: exec: "serve": executable file not found',
        "The Docker Engine did not start its container.",
    ),
    (
        Kind.HOST_MEMORY,
        "slotserve: the container was killed: out of memory (OOMKilled)",
        "It ran out of memory.",
    ),
]
