"""Writes heart.csv: FLamby's Fed-Heart-Disease, with its very training and test rows as the column `part`.

    python3 -m venv flamby && flamby/bin/pip install pandas==3.1.1 scikit-learn==1.9.1
    flamby/bin/python measurements/flamby/heart.py DATA/heart_disease measurements/flamby/heart.csv
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

HOSPITALS = ["cleveland", "hungarian", "switzerland", "va"]
# age, sex, cp, trestbps, chol, fbs, restecg, thalach, exang, oldpeak and the label; the other columns are often missing.
KEPT = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 13]


def main():
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    tables = []
    for hospital in HOSPITALS:
        rows = pd.read_csv(folder / f"processed.{hospital}.data", header=None, na_values="?")
        rows = rows[KEPT].dropna().astype(float).reset_index(drop=True)
        ill = (rows[13] > 0).astype(int)
        few = ill.value_counts().min() <= 2 or ill.nunique() < 2
        train, _ = train_test_split(
            np.arange(len(rows)), test_size=1 - 0.66, train_size=0.66, random_state=43,
            shuffle=True, stratify=None if few else ill,
        )
        part = np.full(len(rows), "test", dtype=object)
        part[train] = "train"
        tables.append(rows.assign(ill=ill, part=part, hospital=hospital))
    rows = pd.get_dummies(pd.concat(tables, ignore_index=True), columns=[2, 6], drop_first=True, dtype=int)
    rows = rows.drop(columns=[13])
    rows.columns = [f"c{one}" if isinstance(one, int) else str(one).replace(".0", "") for one in rows.columns]
    rows["ill"] = rows["ill"].map({0: "no", 1: "yes"})
    rows.to_csv(out, index=False)
    print(rows.groupby(["hospital", "part"]).size().to_string())


if __name__ == "__main__":
    main()
