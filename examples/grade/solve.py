"""Predicts every y of test.csv by the mean of train.csv, and writes submission.csv."""

from __future__ import annotations

import csv


def main() -> None:
    with open("train.csv", newline="") as file:
        known = [float(row["y"]) for row in csv.DictReader(file)]
    with open("test.csv", newline="") as file:
        numbers = [row["id"] for row in csv.DictReader(file)]
    mean = sum(known) / len(known)
    with open("submission.csv", "w") as out:
        out.write("id,y\n" + "".join(f"{number},{mean:.4f}\n" for number in numbers))


main()
