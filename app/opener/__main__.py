"""The opener process: `python -P -m gptscope.app.opener load FILE TIMELINE`; see `gptscope.app.opener.jobs`."""

from gptscope.profiling.processes import end_with_parent, protect_stdout

if __name__ == "__main__":
    # First of all, before anything can print or start a thread: see `profiling.processes`.
    _messages = protect_stdout()
    end_with_parent()

    import sys

    from gptscope.app.opener.jobs import run

    run(sys.argv[1:], _messages)
