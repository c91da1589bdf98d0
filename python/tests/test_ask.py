"""Questions to all sites: `rota.ask`, `rota.explain`, `rota.answers`."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import rota
from rota import _sites, _toml

import pooled
from conftest import ROOT, data

QUESTIONS = ROOT / "examples" / "questions"
SITES = ("north", "east", "south", "west")
HAZARDS = dict(
    kind="cox", time="months", event="status > 0", terms=["age", "stage = II", "stage = III", "treatment = new"], ranges={"age": (18, 100)}
)


@pytest.fixture(scope="module")
def hospitals():
    """The four tables as dictionaries of columns."""
    return {site: pooled.rows_of(QUESTIONS / f"{site}.csv") for site in SITES}


@pytest.fixture(scope="module")
def patients(hospitals):
    return pooled.pooled(hospitals)


@pytest.fixture(scope="module")
def hazards():
    return rota.ask(QUESTIONS / "hazards.toml")


@pytest.fixture(scope="module")
def survival():
    return rota.ask(QUESTIONS / "survival.toml")


def without(monkeypatch, *modules):
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)


def column(answer, name, table=None):
    """A column of a table, with pandas or without."""
    frame = answer.frame(table)
    return [row[name] for row in frame] if isinstance(frame, list) else list(frame[name])


def covariates(patients):
    complete = ~np.isnan(patients["age"].astype(float))
    rows = {name: cells[complete] for name, cells in patients.items()}
    x = np.column_stack([rows["age"].astype(float), rows["stage"] == "II", rows["stage"] == "III", rows["treatment"] == "new"])
    return x.astype(float), rows


# What it answers.


def test_a_cox_regression_is_that_of_the_pooled_rows(hazards, patients):
    x, rows = covariates(patients)
    beta, errors = pooled.cox(x, rows["months"], rows["status"] > 0, rows["site"])
    assert np.allclose(column(hazards, "coefficient"), beta, rtol=1e-7)
    assert np.allclose(column(hazards, "error"), errors, rtol=1e-7)
    assert np.allclose(column(hazards, "ratio"), np.exp(beta), rtol=1e-7)


def test_a_logistic_regression_is_that_of_the_pooled_rows(patients):
    answer = rota.ask(QUESTIONS / "complications.toml")
    x, rows = covariates(patients)
    beta, errors = pooled.logistic(x[:, [0, 2, 3]], (rows["complication"] == "yes").astype(float), rows["site"])
    assert np.allclose(column(answer, "coefficient"), beta, rtol=1e-7)
    assert np.allclose(column(answer, "error"), errors, rtol=1e-7)
    assert set(answer.frames) == {"rows", "coefficients", "fit", "comparison"}


def test_curves_are_those_of_the_pooled_rows(survival, patients):
    for group in ("usual", "new"):
        own = patients["treatment"] == group
        known = pooled.survival(patients["months"][own], patients["status"][own] > 0, 3.0)
        points = [at for at, name in enumerate(column(survival, "group")) if name == group]
        assert len(points) > 5
        for at in points:
            assert np.isclose(column(survival, "survival")[at], known[float(column(survival, "time")[at])], rtol=1e-12)


def test_the_log_rank_test_is_that_of_the_pooled_rows(hospitals, patients):
    answer = rota.ask(
        kind="logrank", time="months", event="status > 0", group="treatment", levels={"treatment": ["usual", "new"]}, tables=hospitals
    )
    known = pooled.logrank(patients["months"], patients["status"] > 0, patients["treatment"] == "new", patients["site"])
    assert np.isclose(column(answer, "chi_squared")[0], known, rtol=1e-9)


def test_means_and_correlations_are_those_of_numpy(hospitals, patients):
    ranges = {"age": (18, 100), "visits": (0, 40), "months": (0, 100)}
    answer = rota.ask(kind="describe", columns=list(ranges), ranges=ranges, tables=hospitals)
    for name, mean, deviation in zip(*(column(answer, part) for part in ("column", "mean", "standard_deviation"))):
        assert np.isclose(mean, np.nanmean(patients[name]), rtol=1e-8)
        assert np.isclose(deviation, np.nanstd(patients[name], ddof=1), rtol=1e-8)
    answer = rota.ask(kind="correlate", columns=list(ranges), ranges=ranges, tables=hospitals)
    complete = ~np.isnan(patients["age"])
    known = np.corrcoef([patients[name][complete] for name in ranges])
    assert np.allclose([column(answer, name) for name in ranges], known, atol=1e-8)


def test_the_known_answers_of_public_data_come_out():
    folder = data()
    if folder is None:
        pytest.skip("needs the data sets, and ROTA_DATA is not set")
    names = ["age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "thalach", "exang", "oldpeak", "slope", "ca", "thal", "num"]
    tables = {}
    for site in ("cleveland", "hungarian", "switzerland", "va"):
        lines = (folder / "heart_disease" / f"processed.{site}.data").read_text().splitlines()
        rows = [[float(cell) if cell.strip() not in ("?", "") else None for cell in line.split(",")] for line in lines]
        tables[site] = dict(zip(names, zip(*(row for row in rows if len(row) == 14))))
    terms = ["age", "sex = 1", "trestbps", "thalach", "exang = 1", "oldpeak", "cp = 4"]
    ranges = {"age": (0, 120), "trestbps": (0, 300), "thalach": (0, 300), "oldpeak": (-10, 10)}
    heart = dict(kind="glm", family="binomial", outcome="num > 0", terms=terms, ranges=ranges, tables=tables)
    answer = rota.ask(**heart, robust=True, without=["cp = 4"])
    assert (answer.n, answer.sites) == (854, 4)
    assert np.isclose(column(answer, "log_likelihood", "fit")[0], -331.5099646, rtol=1e-9)
    for name, known in {"coefficient": 1.278256079, "error": 0.2519947079, "robust_error": 0.2424094869}.items():
        assert np.isclose(column(answer, name)[1], known, rtol=1e-8)
    assert np.isclose(column(answer, "statistic", "comparison")[0], 61.06952648, rtol=1e-8)
    linear = heart | {"family": "gaussian", "outcome": "thalach", "terms": [term for term in terms if term != "thalach"]}
    # Ten years, as the known answer has them.
    assert np.isclose(column(rota.ask(**linear), "coefficient")[0] * 10, -9.07724326, rtol=1e-8)


def test_the_known_survival_of_public_data_comes_out():
    folder = data()
    if folder is None:
        pytest.skip("needs the data sets, and ROTA_DATA is not set")
    with (folder / "tcga_brca" / "tcga_brca.csv").open() as file:
        rows = list(csv.DictReader(file))
    used = {
        "age": lambda row: (float(row["age_at_index"]) - 58) / 10,
        "black": lambda row: float(row["race_black or african american"]),
        "prior": lambda row: float(row["prior_malignancy_yes"]),
        "treatment": lambda row: float(row["treatment_or_therapy_yes"]),
        "lobular": lambda row: float(row["primary_diagnosis_Lobular carcinoma, NOS"]),
        "n1a": lambda row: float(row["ajcc_pathologic_n_N1a"]),
        "days": lambda row: float(row["days"]),
        "months": lambda row: float(np.ceil(max(float(row["days"]), 0) / 30.4375)),
        "event": lambda row: int(row["event"]),
    }
    regions = sorted({row["region"] for row in rows})
    tables = {one: {name: [of(row) for row in rows if row["region"] == one] for name, of in used.items()} for one in regions}
    terms = ["age", *(f"{name} = 1" for name in ("black", "prior", "treatment", "lobular", "n1a"))]
    cox = rota.ask(kind="cox", time="months", event="event", terms=terms, robust=True, concordance=True, ranges={"age": (-5, 5)}, tables=tables)
    assert np.isclose(column(cox, "log_likelihood", "fit")[0], -603.6084994, rtol=1e-9)
    for name, known in {"coefficient": -1.205152086, "error": 0.1926361559, "robust_error": 0.184822656}.items():
        assert np.isclose(column(cox, name)[3], known, rtol=1e-7)
    levels = {"treatment": ["0", "1"]}
    test = rota.ask(kind="logrank", time="days", event="event", group="treatment", levels=levels, tables=tables)
    assert np.isclose(column(test, "chi_squared")[0], 66.82724959, rtol=1e-9)


# How it is asked.


def test_keys_and_files_and_dictionaries_ask_the_same(hospitals, hazards):
    file = QUESTIONS / "hazards.toml"
    more = dict(robust=True, hazards="log-plus-one", concordance=True)
    for other in (
        rota.ask(**HAZARDS, **more, tables=hospitals),
        rota.ask(HAZARDS | more, tables=hospitals),
        rota.ask(file, tables={site: QUESTIONS / f"{site}.csv" for site in SITES}),
        rota.ask(_toml.read(file), tables=hospitals),
    ):
        assert other["answer"] == hazards["answer"]


def test_keys_stand_in_place_of_those_of_a_file(hazards):
    shrunken = rota.ask(QUESTIONS / "hazards.toml", ridge=10.0, robust=False, hazards=None)
    assert all(np.isnan(error) if error is not None else True for error in column(shrunken, "error"))
    assert sum(abs(b) for b in column(shrunken, "coefficient")) < sum(abs(b) for b in column(hazards, "coefficient"))
    # A key that is None is left out, and paths are still those of the file's folder.
    assert "proportional_hazards" in hazards.frames


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "numpy"])
def test_tables_of_every_library_are_read_alike(library, hospitals, hazards):
    module = pytest.importorskip(library)

    def made(table):
        if library == "pandas":
            return module.DataFrame(table).set_index(np.arange(len(table["age"])) * 3)
        if library == "polars":
            return module.DataFrame(table, strict=False)
        if library == "pyarrow":
            return module.table({name: [None if cell != cell else cell for cell in cells] for name, cells in table.items()})
        kinds = [(name, "f8" if isinstance(cells[0], float) else "U20") for name, cells in table.items()]
        return np.array(list(zip(*table.values())), dtype=kinds)

    found = rota.ask(**HAZARDS, tables={site: made(table) for site, table in hospitals.items()})
    assert column(found, "coefficient") == column(hazards, "coefficient")
    assert found.missing == 24


def test_cells_are_written_as_they_are_meant():
    written = _sites._texts("north", "x", [1.0, 2.5, None, float("nan"), True, "NA", "a,b", 7, np.float64(3.0), np.float64(0.1), np.int64(4)])
    assert written == ["1", "2.5", "", "", "1", "NA", "a,b", "7", "3", "0.1", "4"]
    with pytest.raises(ValueError, match="site 'north', column 'x', row 2: inf is no number.*put NaN"):
        _sites._texts("north", "x", [0.0, float("inf")])
    with pytest.raises(ValueError, match="leave the column out"):
        _sites._texts("north", "x", [[1, 2]])


def test_levels_that_look_missing_are_levels():
    countries = {"a": {"country": ["NA", "DE", "-"] * 20}, "b": {"country": ["NA", "DE", ""] * 20}}
    answer = rota.ask(kind="describe", columns=["country = NA", "country = -"], tables=countries)
    assert column(answer, "n") == [100, 100] and column(answer, "missing") == [20, 20]
    assert np.allclose(column(answer, "mean"), [0.4, 0.2])


def test_sites_remember_what_they_have_answered(hospitals, tmp_path):
    asked = dict(kind="describe", columns=["visits"], ranges={"visits": (0, 40)}, tables=hospitals, record=tmp_path / "record.json")
    first, again = rota.ask(**asked), rota.ask(**asked)
    assert not first["stored"] and again["stored"] and again["answer"] == first["answer"]
    assert "stored" in repr(again)
    with pytest.raises(rota.RotaError, match="rule pieces"):
        rota.ask(**asked, filter=["age <= 84"])


def test_a_question_says_what_it_opens_before_anybody_answers(hospitals):
    said = rota.explain(**HAZARDS)
    assert said.startswith("Each site computes") and "partial log likelihood" in said and "Opened is the sum" in said
    assert rota.explain(QUESTIONS / "hazards.toml", robust=True).startswith("Each site computes")
    with pytest.raises(rota.RotaError, match="ranges"):
        rota.explain(**HAZARDS | {"ranges": {}})


# What comes out.


def test_an_answer_says_of_whom_it_is(hazards, survival):
    assert (hazards.kind, hazards.sites, hazards.rows, hazards.n, hazards.missing, hazards.outside) == ("cox", 4, 410, 386, 24, 0)
    assert hazards.suppressed == 0 and hazards.certificate is None and hazards.state == "answered" and hazards.why is None
    stages = rota.ask(QUESTIONS / "stages.toml")
    assert stages.suppressed == 4 and any("suppressed" in note for note in stages.notes)
    assert any("rounded up" in note for note in survival.notes)


def test_frames_have_numbers_and_no_value_where_a_cell_is_suppressed():
    pandas = pytest.importorskip("pandas")
    frame = rota.ask(QUESTIONS / "stages.toml").frame()
    assert isinstance(frame, pandas.DataFrame) and list(frame["level"][:3]) == ["I", "II", "III"]
    assert str(frame["1"].dtype) == "Int64" and frame["0"].isna().sum() == 2 and frame["0"][0] == 97
    assert any("suppressed" in note for note in frame.attrs["notes"])
    fit = rota.ask(QUESTIONS / "complications.toml").frame("fit")
    assert fit["rows"][0] == 386 and fit["log_likelihood"].dtype == np.float64


def test_without_pandas_tables_are_lists(monkeypatch, hazards):
    without(monkeypatch, "pandas")
    rows = hazards.frame()
    assert isinstance(rows, list) and rows[0]["term"] == "age" and rows[0]["ratio"] > 1
    assert rota.ask(QUESTIONS / "stages.toml").frames["counts"][1]["0"] is None


def test_a_table_that_is_not_there_is_refused_with_those_that_are(hazards):
    with pytest.raises(ValueError, match="no table 'coefs'; there are rows, coefficients, fit, proportional_hazards"):
        hazards.frame("coefs")


def test_text_of_an_answer_fits_in_five_lines(hazards, survival, hospitals):
    for answer in (hazards, survival, rota.ask(QUESTIONS / "stages.toml"), rota.ask(QUESTIONS / "patients.toml")):
        lines = repr(answer).splitlines()
        assert len(lines) <= 5 and all(len(line) < 160 for line in lines), repr(answer)
    said = repr(hazards)
    for part in ("386 of 410 at 4 sites", "24 missing", "210 events", "age ×1.023 (p = 0.0007)", "117 numbers in 7 rounds", "nothing suppressed"):
        assert part in said, said


def test_a_notebook_shows_the_tables(hazards):
    said = hazards._repr_html_()
    for part in ("<th>hazards p value</th>", "Log hazard ratios, stratified by site", "<td>treatment = new</td>", "<td>&lt; 0.0001</td>"):
        assert part in said, said
    hostile = rota.ask(kind="describe", columns=["<b>"], ranges={"<b>": (0, 1)}, tables={site: {"<b>": [0.5] * 9} for site in "abcd"})
    assert "<b>" not in hostile._repr_html_()


def test_csv_and_json_have_all_digits(hazards, tmp_path):
    tables = hazards.to_csv(tmp_path / "all.csv").split("\n\n")
    assert (tmp_path / "all.csv").read_text() == hazards.to_csv() and len(tables) == 4
    read = list(csv.DictReader(io.StringIO(hazards.to_csv(table="coefficients"))))
    assert [float(row["coefficient"]) for row in read] == column(hazards, "coefficient")
    assert json.loads(hazards.json) == hazards
    suppressed = rota.ask(QUESTIONS / "stages.toml").to_csv(table="counts")
    assert "suppressed" not in suppressed and "II,,63,,0,137" in suppressed


def test_the_page_is_written_once(tmp_path, hospitals):
    page = tmp_path / "page.html"
    rota.ask(QUESTIONS / "survival.toml", html=page)
    assert "<svg" in page.read_text() and "at risk" in page.read_text()
    with pytest.raises(rota.RotaError, match="exists|overwrite"):
        rota.ask(QUESTIONS / "survival.toml", html=page)


# A running federation.


def of_a_federation(monkeypatch, tmp_path, found):
    """`rota federation answers` prints these documents, and nothing else is there."""
    program = tmp_path / "rota"
    (tmp_path / "found.json").write_text(json.dumps(found))
    program.write_text(f'#!/bin/sh\n[ "$1 $2 $3" = "federation answers --json" ] && echo "$@" > {tmp_path}/asked && cat {tmp_path}/found.json\n')
    program.chmod(0o755)
    monkeypatch.setenv("ROTA_BIN", str(program))


def test_answers_of_a_federation_have_their_certificate(monkeypatch, tmp_path, hazards):
    hashes = {"block": "b1" * 32, "outcome": "c2" * 32, "certificate": "d3" * 32, "federation_id": "f0" * 32}
    certificate = hashes | {"federation": "wards", "round": 9, "quorum": 3, "members": 4}
    common = {"reason": "does it help?", "kind": "cox", "numbers_opened": 117, "bytes_per_site": 1368}
    answered = common | {"number": 1, "state": "answered", "rounds": 7, "why": None, "answer": hazards["answer"], "certificate": certificate}
    answered["refused"] = ["1 site by the rule pieces"]
    stopped = common | {"number": 2, "state": "stopped", "rounds": 3, "why": "three rounds in a row lacked a site", "answer": [], "certificate": None}
    waiting = stopped | {"number": 3, "state": "open", "rounds": 1, "why": None}
    of_a_federation(monkeypatch, tmp_path, [answered, stopped, waiting])
    first, second, third = rota.answers(tmp_path / "node.toml")
    assert (tmp_path / "asked").read_text().split()[-2:] == ["--config", str(tmp_path / "node.toml")]
    assert first.certificate["quorum"] == 3 and first.sites == 4 and first.frame("fit") is not None
    assert first.refused == ["1 site by the rule pieces"] and "refused: 1 site by the rule pieces" in repr(first)
    assert "question 1 of the federation: does it help?" in repr(first) and "final by round 9 (d3d3d3" in repr(first)
    assert (second.state, second.why, second.sites, second.frames) == ("stopped", "three rounds in a row lacked a site", None, {})
    assert "none: three rounds" in repr(second) and "not yet, after 1 round" in repr(third)
    with pytest.raises(ValueError, match="no answer: three rounds in a row"):
        second.plot()
    with pytest.raises(ValueError, match="no answer: 1 round so far"):
        third.frame()


def test_no_node_is_said_by_the_program(tmp_path):
    with pytest.raises(rota.RotaError, match="node.toml"):
        rota.answers(tmp_path)


# Drawings.


@pytest.fixture
def pyplot(monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def words(axes):
    return [text.get_text() for text in axes.texts]


def test_curves_are_drawn_with_intervals_and_numbers_at_risk(survival, pyplot):
    axes = survival.plot()
    lines = {line.get_label(): line for line in axes.get_lines()}
    assert set(lines) == {"usual", "new"} and len(axes.collections) == 2
    times, values = lines["usual"].get_data()
    assert (times[0], values[0]) == (0.0, 1.0) and values[-1] == [one for one, name in zip(column(survival, "survival"), column(survival, "group")) if name == "usual"][-1]
    assert {"at risk", "194", "216"} <= set(words(axes))
    axes.figure.savefig("curves.png")


def test_ratios_are_drawn_on_a_logarithmic_axis_with_their_intervals(hazards, pyplot):
    axes = hazards.plot()
    assert axes.get_xscale() == "log" and axes.get_xlabel() == "hazard ratio"
    assert [label.get_text() for label in axes.get_yticklabels()] == HAZARDS["terms"]
    assert "0.622 (0.472 to 0.819)" in words(axes)
    odds = rota.ask(QUESTIONS / "complications.toml").plot()
    assert odds.get_xlabel() == "odds ratio"
    _, own = pyplot.subplots()
    assert hazards.plot(own) is own


def test_every_kind_is_drawn(hospitals, pyplot):
    ranges = {"age": (18, 100), "visits": (0, 40), "months": (0, 100)}
    levels = {"treatment": ["usual", "new"], "stage": ["I", "II", "III"]}
    common = dict(ranges=ranges, levels=levels, tables=hospitals)
    many = {f"site {at}": {"y": [value], "v": [variance]} for at, (value, variance) in enumerate([(0.1, 0.05), (0.5, 0.02), (-0.2, 0.08), (0.8, 0.04)] * 4)}
    freely = {"unknowns_per_number": 0.1, "largest_share": 1.0, "smallest_cell": 1}
    studies = rota.ask(kind="meta", effect={"given": {"estimate": "y", "variance": "v"}}, mode="clear", rules={"smallest_cell": 1}, tables=many, site_rules=freely)
    kinds = {
        "describe": rota.ask(QUESTIONS / "patients.toml"),
        "quantiles": rota.ask(kind="quantiles", columns=["age", "months"], probabilities=[0.25, 0.5, 0.75], site_rules=freely, **common),
        "crosstab": rota.ask(QUESTIONS / "stages.toml"),
        "correlate": rota.ask(kind="correlate", columns=list(ranges), **common),
        "logrank": rota.ask(kind="logrank", time="months", event="status > 0", group="treatment", **common),
        "mixed": rota.ask(kind="mixed", outcome="months", terms=["age"], mode="clear", site_rules=freely, **common),
        "meta": studies,
        "baselines": rota.ask(QUESTIONS / "together.toml"),
        "trees": rota.ask(QUESTIONS / "risk.toml"),
    }
    for kind, answer in kinds.items():
        axes = np.ravel(answer.plot())
        axes[0].figure.savefig(f"{kind}.png")
        assert answer.kind == kind and sum(len(one.get_children()) for one in axes) > 10
    assert "·" in words(kinds["crosstab"].plot())
    gain = kinds["baselines"].frame()
    losses = kinds["trees"].frame()
    assert list(losses["trees"]) == list(range(21)) and "20 trees 0.45" in repr(kinds["trees"])
    assert kinds["trees"].n == 306 and "306 of 410 at 4 sites" in repr(kinds["trees"]) and "104 held out" in repr(kinds["trees"])
    assert [line.get_label() for line in kinds["trees"].plot().get_lines()] == ["in training", "held out"]
    assert list(gain["model"]) == ["global instead of local"] and gain["sites"][0] == 4
    with pytest.raises(ValueError, match="needs 2 axes, and there is 1"):
        kinds["quantiles"].plot(pyplot.subplots()[1])


def test_a_drawing_without_matplotlib_says_what_to_install(monkeypatch, hazards):
    without(monkeypatch, "matplotlib", "matplotlib.ticker")
    with pytest.raises(rota.RotaError, match="pip install matplotlib"):
        hazards.plot()


# What goes wrong.


def test_refusals_name_the_site_and_the_rule():
    with pytest.raises(rota.RotaError, match=r"west would single out fewer than 5 rows.*\(rule pieces\).*coarser") as error:
        rota.ask(QUESTIONS / "one-patient.toml")
    # At the line that asked: nothing of this package but the function that was called.
    assert [frame.name for frame in error.traceback] == ["test_refusals_name_the_site_and_the_rule", "ask"]


def test_what_is_wrong_with_a_question_is_said(hospitals):
    with pytest.raises(rota.RotaError, match="termss") as error:
        rota.ask(**HAZARDS, termss=["age"], tables=hospitals)
    assert str(error.value).startswith('error: the question: there is no key `termss`; did you mean "terms"?')
    with pytest.raises(rota.RotaError, match=r"range.*age"):
        rota.ask(**HAZARDS | {"ranges": {}}, tables=hospitals)
    with pytest.raises(rota.RotaError, match="spaces"):
        rota.ask(**HAZARDS, filter="age>60", tables=hospitals)
    with pytest.raises(rota.RotaError, match="nowhere.toml"):
        rota.ask("nowhere.toml")


def test_a_cell_that_is_no_number_is_named_by_its_site(hospitals):
    wrong = hospitals | {"south": hospitals["south"] | {"age": ["old", *hospitals["south"]["age"][1:]]}}
    with pytest.raises(rota.RotaError, match="the table of site 'south', row 1.*\"old\"") as error:
        rota.ask(**HAZARDS, tables=wrong)
    assert ".csv" not in str(error.value)


def test_a_site_without_a_column_is_named(hospitals):
    lacking = hospitals | {"east": {name: cells for name, cells in hospitals["east"].items() if name != "stage"}}
    with pytest.raises(rota.RotaError, match="east.*stage"):
        rota.ask(**HAZARDS, tables=lacking)


def test_separated_data_have_no_large_number():
    table = {"y": [0] * 30 + [1] * 30, "x": [0] * 30 + [1] * 30}
    with pytest.raises(rota.RotaError, match="separate"):
        rota.ask(kind="glm", family="binomial", outcome="y = 1", terms=["x = 1"], tables={site: table for site in "abc"})


def test_what_is_no_table_is_refused_with_what_is(hospitals):
    with pytest.raises(TypeError, match="who is asked.*tables=.*scenario="):
        rota.ask(**HAZARDS)
    with pytest.raises(TypeError, match="nothing is asked"):
        rota.ask(tables=hospitals)
    with pytest.raises(TypeError, match="either `tables` or a `scenario`"):
        rota.ask(**HAZARDS, tables=hospitals, scenario="diabetes")
    with pytest.raises(TypeError, match="names the sites"):
        rota.ask(**HAZARDS, tables=list(hospitals.values()))
    with pytest.raises(TypeError, match="columns have no names"):
        rota.ask(**HAZARDS, tables={"north": np.zeros((3, 3))})
    with pytest.raises(ValueError, match="different lengths: 1, 2"):
        rota.ask(**HAZARDS, tables={"north": {"age": [1, 2], "months": [1]}})


def test_silos_of_a_scenario_are_asked():
    answer = rota.ask(kind="describe", columns=["bmi"], ranges={"bmi": (-1, 1)}, scenario="diabetes")
    assert answer.sites == 8 and answer.n == 442


def test_an_interruption_leaves_no_rows_behind(tmp_path):
    script = textwrap.dedent(
        f"""
        import rota, signal, os, threading
        table = {{"x": [0.5] * 200_000}}
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        rota.ask(kind="describe", columns=["x"], ranges={{"x": (0, 1)}}, tables={{str(at): table for at in range(8)}})
        """
    )
    environment = os.environ | {"TMPDIR": str(tmp_path), "ROTA_BIN": rota.binary()}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode != 0 and done.stderr.strip() == "a question was interrupted", done.stderr
    assert not list(tmp_path.iterdir())
