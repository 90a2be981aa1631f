"""How a Celery worker is started. docker-compose.yml and docs/systemd say it again."""

QUIET = ("--without-mingle", "--without-gossip", "--without-heartbeat")  # workers need no news
THREADS = 8


def worker_argv(*queues: str) -> tuple[str, ...]:
    """Words behind a Python for a worker that serves these queues."""
    argv = ("-m", "celery", "--quiet", "-A", "slotserve", "worker", "-P", "threads")
    return (*argv, "-c", str(THREADS), "-Q", ",".join(queues), *QUIET, "--loglevel", "INFO")
