"""The engine process: `python -P -m gptscope.profiling.engine`. Frames in on stdin, frames out on stdout."""

from gptscope.profiling.processes import lead_own_session, protect_stdout

if __name__ == "__main__":
    # First of all, before anything can print: see `profiling.processes`.
    _frames = protect_stdout()
    lead_own_session()

    from gptscope.profiling.engine.main import main

    main(_frames)
