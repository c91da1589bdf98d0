"""The statistics of one hospital for NVIDIA FLARE: those of its data frames, of the table that its name says."""

from pathlib import Path

import pandas as pd
from nvflare.apis.fl_context import FLContext
from nvflare.app_opt.statistics.df.df_core_statistics import DFStatisticsCore

COLUMNS = ["age", "months", "visits"]


class HospitalRows(DFStatisticsCore):
    """Reads FOLDER/SITE.csv."""

    def __init__(self, folder: str):
        super().__init__()
        self.folder = folder

    def initialize(self, fl_ctx: FLContext):
        table = pd.read_csv(Path(self.folder) / f"{fl_ctx.get_identity_name()}.csv")
        self.data = {"rows": table[COLUMNS]}
