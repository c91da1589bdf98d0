"""One run of NVIDIA FLARE's federated statistics in its simulator: flare_run.py FOLDER OUT."""

import sys

from flare_rows import HospitalRows
from nvflare.job_config.stats_job import StatsJob

SITES = ["north", "east", "south", "west"]
RANGES = {"age": [18, 100], "months": [0, 100], "visits": [0, 40]}

folder, out = sys.argv[1:]
histogram = {name: {"bins": 64, "range": ends} for name, ends in RANGES.items()}
statistics = {"count": {}, "sum": {}, "mean": {}, "stddev": {}, "histogram": histogram}
# Its filter refuses histograms of more bins than this share of the rows, by default 10 %: 8 of the smallest table.
job = StatsJob("statistics", statistics, HospitalRows(folder), "statistics.json", max_bins_percent=100)
job.setup_clients(SITES)
job.simulator_run(out)
