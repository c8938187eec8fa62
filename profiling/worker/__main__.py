"""The worker process: `python -P -m gptscope.profiling.worker`. Frames in on stdin, frames out on stdout."""

from gptscope.profiling.processes import end_with_parent, protect_stdout

if __name__ == "__main__":
    # First of all, before anything can print or start a thread: see `profiling.processes`.
    _frames = protect_stdout()
    end_with_parent()

    from gptscope.profiling.worker.loop import run

    run(_frames)
