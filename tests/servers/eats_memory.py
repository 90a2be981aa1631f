"""A bad citizen: loads more than its control group may have, and is killed without a word."""

import os
from pathlib import Path

GROUP = Path(os.environ["TEST_STARTS"]).with_name("memory-group")
Path(GROUP.read_text(), "cgroup.procs").write_text(str(os.getpid()))
held = [os.urandom(2**20) for _ in range(1024)]
