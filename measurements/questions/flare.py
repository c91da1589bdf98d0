"""Questions to four Rota nodes beside NVIDIA FLARE's federated statistics, on the rows of `examples/questions`.

    python3 -m venv flare && flare/bin/pip install nvflare==2.9.0 pandas==3.1.1
    flare/bin/python measurements/questions/flare.py target/release/rota

Asked is for rows, mean, standard deviation and 64 counts of each of age, months and visits at four hospitals: of FLARE by
its statistics job in its simulator, of Rota by two questions (`describe`, `quantiles` of one round after the counts), played
by one process and answered by four nodes. Every run is in a network namespace of its own, whose loopback device counts the
bytes between its processes, so it needs Linux and root. Printed are medians of RUNS runs, alternating; the means of both
programs are compared first.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

RUNS = 3
HERE = Path(__file__).resolve().parent
ROWS = HERE.parents[1] / "examples/questions"
SITES = ["north", "east", "south", "west"]

SCENARIO = """
name = "hospitals"
rounds = 1
[task.table]
standardise = "silo"
model = {{ linear = {{}} }}
split = {{ validation = 0.0, test = 0.3 }}
[task.table.data.rows]
files = [{files}]
ignore = ["stage", "treatment", "status", "complication"]
[task.table.schema]
min-rows = 10
[task.table.schema.target]
name = "visits"
[[task.table.schema.feature]]
name = ["age", "months"]
range = [0, 150]
missing = "median"
[privacy]
mode = "{mode}"
[strategy]
name = "fedavg"
weight = "equal"
training = {{ epochs = 1, batch = 16, optimiser = {{ name = "sgd", rate = 0.02 }} }}
[protocol]
heartbeat = "100ms"
straggler-timeout = 200
"""
# Who approves for the fourth hospital.
POLICY = """
[policy]
min-rows = 0
min-sum-size = 0
auto-approve = ["rounds", "addresses", "training-epochs", "members", "questions"]
"""
KINDS = [
    'kind = "describe"\ncolumns = ["age", "months", "{last}"]\n',
    # As wide as a bin, so that one round of 64 counts of each column is enough.
    'kind = "quantiles"\ncolumns = ["age", "months", "{last}"]\nprobabilities = [0.5]\nwidth = 2\n',
]
QUESTION = 'reason = "a comparison"\n{kind}[ranges]\nage = [18, 100]\nmonths = [0, 100]\n{last} = [0, 40]\n[sites]\nfiles = [{files}]\n'


def files(paths):
    return ", ".join(f'{{ path = "{path}" }}' for path in paths)


def questions(folder, paths, last):
    """The files of both questions; `last` is what the column of visits is called."""
    written = []
    for at, kind in enumerate(KINDS):
        file = folder / f"question{at}.toml"
        file.write_text(QUESTION.format(kind=kind.format(last=last), last=last, files=files(paths)))
        written.append(file)
    return written


def rows_of(tables):
    """Rows and mean of each column, by its place."""
    table = next(table for table in tables if table["name"] == "columns")
    return [[row[table["columns"].index(name)] for name in ("n", "mean")] for row in table["rows"]]


def flare(folder, _):
    run = [sys.executable, str(HERE / "flare_run.py"), str(ROWS), str(folder / "out")]
    subprocess.run(run, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = json.loads((folder / "out/server/simulate_job/statistics.json").read_text())
    every = [found[name] for name in ("age", "months", "visits")]
    return {"answer": [[one[part]["Global"]["rows"] for part in ("count", "mean")] for one in every]}


def played(folder, program):
    paths = [ROWS / f"{site}.csv" for site in SITES]
    found = []
    for file in questions(folder, paths, "visits"):
        found.append(json.loads(subprocess.run([program, "ask", file, "--json"], check=True, capture_output=True).stdout))
    return {"answer": rows_of(found[0]["answer"]), "numbers": sum(one["numbers_opened"] for one in found)}


class Node:
    """A node and the events that it prints."""

    def __init__(self, program, config):
        self.config, self.events = config, []
        command = [program, "run", "--json", "--config", str(config)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.changed = threading.Condition()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                self.events.append(json.loads(line))
                self.changed.notify_all()

    def until(self, event, which=lambda event: True):
        """The next event of this kind; those before it are done with."""
        end = time.monotonic() + 120
        with self.changed:
            while True:
                for at, found in enumerate(self.events):
                    if found["event"] == event and which(found):
                        del self.events[: at + 1]
                        return found
                if not self.changed.wait(end - time.monotonic()):
                    raise RuntimeError(f"no {event} of {self.config}")


def nodes(folder, program, mode):
    """Four nodes from their start to the answers of two questions; made before are their files."""
    scenario = folder / "scenario.toml"
    scenario.write_text(SCENARIO.format(files=files(ROWS / f"{site}.csv" for site in SITES), mode=mode))
    call = lambda *words: subprocess.run([program, *map(str, words)], check=True, capture_output=True, text=True).stdout
    call("federation", "demo", folder / "demo", "--scenario", scenario)
    configs = [folder / "demo" / site / "node.toml" for site in SITES]
    configs[3].write_text(configs[3].read_text() + POLICY)
    asked = questions(folder, [config.with_name("rows.csv") for config in configs], "target")

    def answers(node):
        return json.loads(call("federation", "answers", "--json", "--config", node.config))

    def run():
        running = [Node(program, config) for config in configs]
        for node in running:
            node.until("finished")
        begun = time.monotonic()
        for number, file in enumerate(asked, 1):
            said = call("federation", "ask", file, "--config", configs[0], "--yes")
            change = said.splitlines()[0].removeprefix("amendment ")
            for node in running[1:3]:
                node.until("amendment", lambda event: event["amendment"] == change)
                call("federation", "approve", change, "--config", node.config, "--yes")
            for node in running:
                node.until("epoch", lambda event: event["epoch"] == number)
                while (found := answers(node))[-1]["state"] == "open":
                    node.until("adopted")
                assert [one["state"] for one in found] == ["answered"] * number, found
        took = time.monotonic() - begun
        for node in running:
            node.process.terminate()
            node.process.wait()
        numbers = sum(one["numbers_opened"] for one in found)
        return {"answer": rows_of(found[0]["answer"]), "numbers": numbers, "questions": took, "sent": sum(one["bytes_per_site"] for one in found)}

    return run


def sent():
    line = next(line for line in Path("/proc/net/dev").read_text().splitlines() if line.strip().startswith("lo:"))
    return int(line.split(":")[1].split()[0])


def inside(what, program):
    """One run, in this process and namespace, as JSON."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        if what in ("clear", "secure-aggregation"):
            run = nodes(folder, program, what)
        else:
            run = lambda: {"flare": flare, "played": played}[what](folder, program)
        used = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
        before, cpu, begun = sent(), used(), time.monotonic()
        found = run()
        found |= {"wall": time.monotonic() - begun, "cpu": used() - cpu, "bytes": sent() - before}
    print(json.dumps(found))


def main(program):
    program = os.path.abspath(program)
    names = {"flare": "FLARE, simulator", "played": "`rota ask`, one process", "clear": "four nodes, clear", "secure-aggregation": "four nodes, secure aggregation"}
    found = {what: [] for what in names}
    for _ in range(RUNS):
        for what in names:
            command = ["unshare", "--net", sys.executable, __file__, "--inside", what, program]
            said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            found[what].append(json.loads(said))
    exact = found["flare"][0]["answer"]
    for what, runs in found.items():
        for rows, mean in zip(exact, runs[0]["answer"]):
            # FLARE rounds to four digits behind the point.
            assert rows[0] == mean[0] and abs(rows[1] - mean[1]) < 1e-4, (what, rows, mean)
    print("| | whole run, s | of it the questions, s | processor, s | bytes between processes | numbers opened |\n|---|---|---|---|---|---|")
    for what, runs in found.items():
        middle = lambda key, digits: "—" if key not in runs[0] else f"{statistics.median(one[key] for one in runs):,.{digits}f}"
        cells = [names[what], middle("wall", 1), middle("questions", 1), middle("cpu", 2), middle("bytes", 0), middle("numbers", 0)]
        print("| " + " | ".join(cells) + " |")
    print(json.dumps({what: [{key: one for key, one in run.items() if key != "answer"} for run in runs] for what, runs in found.items()}), file=sys.stderr)


if __name__ == "__main__":
    if sys.argv[1] == "--inside":
        inside(*sys.argv[2:])
    else:
        main(sys.argv[1])
