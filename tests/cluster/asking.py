"""What the tests of answers do again and again."""

from playground import Playground


def minimum(text: str) -> tuple[str, str]:
    """Options of a funded job with this minimum runtime."""
    return "--qos=funded", f"--comment=min-runtime={text}"


def why(site: Playground, job: int | str, code: int = 0) -> str:
    """What `sbudget why` says of a job."""
    return site.sbudget("why", str(job), code=code).out
