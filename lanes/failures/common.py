"""What programs of any engine write when they fail: drivers, PyTorch, Hugging Face, libc. Pure.

The first pattern that any line has wins: causes stand before the lines that follow from them.
"""

from lanes.failures.causes import NAME, Kind, Pattern, pattern

# What to try, where neither the engine nor the pattern knows better.
ADVICE: dict[Kind, str] = {
    Kind.GPU_TAKEN: "It is loaded as soon as the memory is free: ask the process's user to end it, "
    "or take another lane.",
    Kind.SHARED_MEMORY: "Give it more of /dev/shm: --shm-size or --ipc=host for a container.",
    Kind.DISK_FULL: "Free some disk space on the host.",
    Kind.FILE_MISSING: "Put the file back, or register where it is now.",
    Kind.FILE_BROKEN: "Fetch the file again and compare its size and checksum.",
    Kind.UNSUPPORTED: "Install a newer {program}, or take another model.",
    Kind.ARGUMENT: "Correct the preset's arguments.",
    Kind.PORT_TAKEN: "The next attempt takes another port.",
    Kind.ACCESS: "Download the model to the host with an account that may, and register that.",
    Kind.DRIVER: "Run nvidia-smi (or rocm-smi) on the host: install, update or reload the driver.",
    Kind.GPU_FAULT: "Look at dmesg on the host; resetting the card or a reboot may be needed.",
    Kind.PROGRAM: "Install what is missing on the host.",
    Kind.INSTRUCTION: "Use a build of {program} for this processor.",
    Kind.TIMEOUT: "Look at the server's log; a slow disk needs a longer "
    "SLOTSERVE_LOAD_TIMEOUT_SECONDS.",
    Kind.CRASH: "Look at the server's log; try another build or other arguments.",
    Kind.UNKNOWN: "Look at the server's log.",
}

MEMORY: tuple[Pattern, ...] = (
    pattern(
        Kind.GPU_MEMORY,
        r"(?:CUDA|HIP|XPU|MPS backend) out of memory\.? Tried to allocate ([\d.]+ [KMGT]i?B)",
        "The GPU ran out of memory (it asked for {0} more).",
    ),
    pattern(
        Kind.GPU_MEMORY,
        r"OutOfMemoryError: (?:CUDA|HIP|Allocation on device)|Allocation on device .*out of memory"
        r"|(?:CUDA|HIP|ROCm|hip|cuda)\w* ?[Ee]rror.*out of memory|CUDA_ERROR_OUT_OF_MEMORY"
        r"|hipErrorOutOfMemory|cudaErrorMemoryAllocation|(?:cuda|hip)Malloc failed: out of memory"
        r"|CUBLAS_STATUS_ALLOC_FAILED|HIPBLAS_STATUS_ALLOC_FAILED"
        r"|MPS backend out of memory|kIOGPUCommandBufferCallbackErrorOutOfMemory"
        r"|CommandBuffer.*OutOfMemory|ErrorOutOfDeviceMemory|ERROR_OUT_OF_DEVICE_MEMORY"
        r"|(?:cuda|CUDA|vulkan|Vulkan|Metal|ROCm)\w*.*out of memory",
        "The GPU ran out of memory.",
    ),
    pattern(
        Kind.SHARED_MEMORY,
        r"insufficient shared memory|/dev/shm\S* .*No space left|No space left.*/dev/shm"
        r"|unable to (?:allocate|open|resize|write).* (?:shared memory|file </torch_)"
        r"|[Ee]rror while creating shared memory segment|/torch_\d+\S*>: No space left",
        "The host's shared memory (/dev/shm) is full.",
    ),
    pattern(
        Kind.HOST_MEMORY,
        r"DefaultCPUAllocator: (?:can't allocate|not enough) memory.*?(\d+) bytes",
        "The host ran out of memory (it asked for {0} bytes more).",
    ),
    pattern(
        Kind.HOST_MEMORY,
        r"std::bad_alloc|Cannot allocate memory|DefaultCPUAllocator.*memory|^MemoryError\b"
        r"|[^\w]MemoryError(?::|$)|numpy.*ArrayMemoryError|memory allocation of \d+ bytes failed",
        "The host ran out of memory.",
    ),
)

PLACE: tuple[Pattern, ...] = (
    pattern(
        Kind.DISK_FULL,
        r"No space left on device|Errno 28\b|Disk quota exceeded|Not enough free disk space",
        "A disk of the host is full.",
    ),
    pattern(
        Kind.PORT_TAKEN,
        r"(?:address|Address) already in use|EADDRINUSE|Errno 98\b|port is already allocated",
        "Its port is in use by another program.",
    ),
)

ACCESS: tuple[Pattern, ...] = (
    pattern(
        Kind.ACCESS,
        r"access a gated repo|Cannot access gated repo|GatedRepoError"
        r"|Access to model (\S+) is restricted|must (?:be authenticated|have access) to access",
        "The model is gated: its licence has to be accepted before it can be had.",
        "Accept the licence on its page, download it to the host with that account's token, and "
        "register the folder.",
    ),
    pattern(
        Kind.ACCESS,
        r"RepositoryNotFoundError|is not a local folder and is not a valid model identifier"
        r"|LocalEntryNotFoundError|OfflineModeIsEnabled|[Cc]ouldn't connect to .?https?://hugg"
        r"|Cannot find the requested files in the (?:disk|local) cache"
        r"|40[13] Client Error.*huggingface\.co",
        "It wants to download something, which servers here do not.",
    ),
    pattern(
        Kind.ACCESS,
        r"^(?!.*Warning).*(?:contains custom code which must be executed|`trust_remote_code=True`)",
        "The model brings code of its own, which runs only with consent.",
        "Read that code; if you trust it, add --trust-remote-code to the preset.",
    ),
)

FILES: tuple[Pattern, ...] = (
    pattern(
        Kind.FILE_BROKEN,
        r"[Ee]rror while deserializing header|SafetensorError|MetadataIncompleteBuffer"
        r"|HeaderTooLarge|PytorchStreamReader failed|invalid load key"
        r"|(?:version https://)?git-lfs\.github\.com/spec",
        "A file of the model is cut off or damaged.",
        "Fetch the model again; files of a few hundred bytes are git-lfs pointers, not weights.",
    ),
    pattern(
        Kind.FILE_MISSING,
        r"Cannot find any model weights with .(\S+?).$|no file named .*safetensors.* in directory "
        r"(\S+?)\.?$|does not appear to have a file named (\S+)",
        "Files of the model are missing.",
    ),
    pattern(
        Kind.FILE_MISSING,
        r"FileNotFoundError:.*[Nn]o such file or directory: ['\"](.+?)['\"]"
        r"|Errno 2\] No such file or directory: ['\"](.+?)['\"]",
        "A file is missing on the host: {any}.",
    ),
    pattern(
        Kind.FILE_MISSING,
        r"PermissionError:.*Permission denied: ['\"](.+?)['\"]",
        "{0} may not be read by the user that runs model servers.",
        "Change its permissions (or those of the folders above) on the host.",
    ),
    pattern(
        Kind.UNSUPPORTED,
        r"model type `?(\S+?)`? but Transformers does not recognize this architecture",
        "The installed {program} does not know models of the type {0}.",
    ),
    pattern(
        Kind.UNSUPPORTED,
        r"Model architectures \[?(.+?)\]? are not supported|Unsupported architectures?: (\S+)",
        "The installed {program} does not know the architecture {any}.",
    ),
)

# What interpreters and shells say of what they were to run.
_SHELL = r"(?:^|/)(?:\w*sh|env): (?:\d+: |line \d+: |cannot open )*"
_WORD = r"['\"\u2018]?([^\s:'\"\u2019]+)['\"\u2019]?"
COMMANDS: tuple[Pattern, ...] = (
    pattern(
        Kind.PROGRAM,
        r"can't open file ['\"](.+?)['\"]: \[Errno 2\]|Cannot find module ['\"](/.+?)['\"]"
        rf"|{_SHELL}{_WORD}: (?:command not found|not found|No such file(?: or directory)?)$",
        "{any}, which it was to run, is not on the host.",
        "Put it there, or correct the preset's command.",
    ),
    pattern(
        Kind.FILE_MISSING,
        rf"can't open file ['\"](.+?)['\"]: \[Errno 13\]|{_SHELL}{_WORD}: Permission denied$",
        "{any} may not be read or run by the user that runs model servers.",
        "Change its permissions (or those of the folders above) on the host.",
    ),
    pattern(
        Kind.PROGRAM,
        r"No module named ['\"]?([\w.]+)['\"]?$",
        "{program} cannot start: the Python module {0} is not installed.",
    ),
)

PROGRAM: tuple[Pattern, ...] = (
    pattern(
        Kind.DRIVER,
        r"Found no NVIDIA driver|libcuda\.so(?:\.1)?: cannot open|driver not loaded"
        r"|couldn't communicate with the NVIDIA driver|could not select device driver",
        "The GPU's driver is not there.",
    ),
    pattern(
        Kind.DRIVER,
        r"CUDA driver version is insufficient|NVIDIA driver on your system is too old"
        r"|forward compatibility was attempted on non supported HW|Driver/library version mismatch",
        "The GPU's driver is too old for this {program}, or was updated without a reboot.",
        "Update the driver and reboot, or install a {program} for an older CUDA.",
    ),
    pattern(
        Kind.GPU_FAULT,
        r"uncorrectable (?:NVLink|ECC) error|has fallen off the bus|GPU is lost|Xid \(PCI"
        r"|illegal memory access was encountered|unspecified launch failure|HW Exception by GPU",
        "The GPU or its driver failed while it computed.",
    ),
    pattern(
        Kind.UNSUPPORTED,
        r"no kernel image is available for execution on the device"
        r"|is not compatible with the current PyTorch installation",
        "This build of {program} was not made for the host's GPU.",
        "Install a build for the card's generation.",
    ),
    pattern(
        Kind.DRIVER,
        r"no CUDA-capable device is detected|No (?:CUDA|HIP) GPUs are available"
        r"|Torch not compiled with CUDA enabled|Failed to infer device type"
        r"|ggml_\w+: no devices? found",
        "It finds no GPU.",
    ),
    pattern(
        Kind.PROGRAM,
        r"slotserve: the image (\S+) is not on this host",
        "The container image {0} is not on this host.",
        "Fetch it there: docker pull {0}.",
    ),
    pattern(
        Kind.PROGRAM,
        r"slotserve: the Docker Engine does not answer",
        "The host's Docker Engine does not answer.",
        "Start it, let the worker's user reach its socket, or set SLOTSERVE_DOCKER_SOCKET.",
    ),
    pattern(
        Kind.PROGRAM,
        r"error while loading shared libraries: ([^:\s]+)|ImportError: (lib\S+?): cannot open",
        "{program} cannot start: the library {any} is missing on this host.",
    ),
    pattern(
        Kind.PROGRAM,
        r"(?:ModuleNotFoundError|Error while finding module specification).*?'?([\w.]+)'?\)?$",
        "{program} cannot start: the Python module {0} is not installed.",
    ),
    pattern(
        Kind.ARGUMENT,
        rf"error: unrecognized arguments: {NAME}|[Nn]o such option:? {NAME}",
        "{program} does not know the argument {any}.",
        "Take it out of the preset.",
    ),
    pattern(
        Kind.ARGUMENT,
        r"error: unrecognized arguments: |[Nn]o such option",
        "{program} does not know an argument of the preset.",
        "Take it out of the preset: the server's log names it.",
    ),
    pattern(
        Kind.ARGUMENT,
        r"error: (argument [^:]+):|error: (the following arguments are required: .+)$",
        "{program} does not take its arguments: {any}.",  # no values: members read it, too
    ),
    pattern(
        Kind.INSTRUCTION,
        r"[Ii]llegal instruction",
        "This {program} needs instructions that the processor lacks.",
    ),
)

# Which memory is not said; what the Docker Engine says is in the line that is shown beside.
LAST: tuple[Pattern, ...] = (
    pattern(Kind.HOST_MEMORY, r"[Oo]ut of memory", "It ran out of memory."),
    pattern(
        Kind.PROGRAM,
        r"slotserve: the container could not be made: ",
        "The Docker Engine did not make its container.",
        "Look at the server's log.",
    ),
    pattern(
        Kind.PROGRAM,
        r"slotserve: the container could not be started: ",
        "The Docker Engine did not start its container.",
        "Look at the server's log.",
    ),
)
PATTERNS: tuple[Pattern, ...] = (
    *MEMORY,
    *PLACE,
    *ACCESS,
    *FILES,
    *PROGRAM,
    *COMMANDS,
    *LAST,
)
