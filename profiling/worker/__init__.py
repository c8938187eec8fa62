"""The worker: the one process that runs torch. It loads, measures, profiles and evaluates one variant."""
