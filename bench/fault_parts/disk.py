"""A small disk of its own for the data folder, that can be full for a while."""

import os
import subprocess
from pathlib import Path

SIZE_MB = 320  # bin/up asks for 200 MB free


class SmallDisk:
    """A tmpfs at `folder` where that is permitted; else there is none and nothing can be full."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o711)
        self._folder = folder
        self._filling = folder / "filling"
        options = f"size={SIZE_MB}m,mode=0711"
        argv = ["mount", "-t", "tmpfs", "-o", options, "slotserve-faults", str(folder)]
        self.why_not = ""
        if os.geteuid() != 0:
            self.why_not = "only root may mount a tmpfs"
        elif (done := subprocess.run(argv, check=False, capture_output=True, text=True)).returncode:
            self.why_not = done.stderr.strip()

    def fill(self) -> None:
        """Not a byte is left."""
        with self._filling.open("ab") as file:
            while (left := os.statvfs(self._folder).f_bavail) > 0:
                try:
                    os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, left * 4096)
                except OSError:
                    return

    def empty(self) -> None:
        """As before."""
        self._filling.unlink(missing_ok=True)

    def close(self) -> None:
        """Take it away."""
        if not self.why_not:
            subprocess.run(["umount", "--lazy", str(self._folder)], check=False)
