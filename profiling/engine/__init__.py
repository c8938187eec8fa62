"""The engine process: plans an experiment, drives one worker process per variant, watches the machine, tells it all.

Start it with `python -P -m gptscope.profiling.engine`; it speaks frames (`gptscope.profiling.channel`) on stdin
and stdout and ends with its client. It never imports torch, the models or Qt.
"""
