"""The commands of `python -m labs`: options and help are in `app` and `time_app`, measurements in the other modules.

They use the experiments, crawler.cli and the store.
"""
