"""`xschedctl acceptance` in a root, as a user of that release would run it: installed from the archive that `./dev dist` makes,
on the software GPU, with the root's own HIP, hiprtc and Python.

Contract: leaves nothing behind. Thread rule: one thread.
"""

import dataclasses
import json
import pathlib
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
NAME = "acceptance"
MINUTES = 5
# The software GPU shares a loaded machine's processor with everything else, so what works there is said and not asserted.
MUST_BE_YES = ("sound", "harmless")
NOT_REACHED = "no time was left"  # frame.not_reached
STAND_IN = "Made on the software GPU, a stand-in"
PAGES = ("report.md", "report.html")
INSTALL_AND_RUN = """
set -e
"$1"/xschedd-*/install --prefix /opt/xschedd >/dev/null
exec /opt/xschedd/bin/xschedctl acceptance --minutes "$2" --output "$1/report"
"""


@dataclasses.dataclass
class Result:
    root: str
    isa: str
    verdicts: dict  # section -> verdict
    lines: dict  # section -> its sentence
    wrong: list
    seconds: float


def findings(report):
    """What is wrong with the report's folder, as sentences, and its sections."""
    results = json.loads((report / "results.json").read_text())
    sections = {section["name"]: section for section in results["sections"]}
    wrong = [f"{name} is '{sections[name]['verdict']}': {sections[name]['line']}" for name in MUST_BE_YES if sections[name]["verdict"] != "yes"]
    wrong += [f"{page} does not say that it was made on a stand-in" for page in PAGES if STAND_IN not in (report / page).read_text()]
    wrong += [f"{name} did not run: {section['line']}" for name, section in sections.items() if section["line"] == NOT_REACHED]
    if not results["stand_in"]:
        wrong.append("results.json does not say that it was made on a stand-in")
    return wrong, sections


def run(root, isa, softgpu, dist):
    """`dist`: the folder that ./dev dist has made; `softgpu`: the folder of its library."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="xa-") as folder:  # short, for names of sockets
        report = pathlib.Path(folder) / "report"
        archive, = dist.glob("xschedd-*-linux-x86_64.tar.zst")
        subprocess.run(["tar", "-C", folder, "-xf", archive], check=True)
        words = [HERE / "root", "run", "--bind", softgpu, "--bind", folder]
        for variable in (f"LD_LIBRARY_PATH={softgpu}", f"SOFTGPU_NAME={pathlib.Path(folder).name}", f"SOFTGPU_ISA={isa}"):
            words += ["--env", variable]
        done = subprocess.run([*map(str, words), root, "sh", "-c", INSTALL_AND_RUN, "sh", folder, str(MINUTES)],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if not (report / "results.json").exists():
            return Result(root, isa, {}, {}, [f"exit status {done.returncode}, no report: {(done.stderr or done.stdout)[-2000:]}"],
                          time.monotonic() - begin)
        wrong, sections = findings(report)
        # 1: a section found an error.
        if done.returncode not in (0, 1):
            wrong.append(f"exit status {done.returncode}: {done.stderr[-2000:]}")
    return Result(root, isa, {name: section["verdict"] for name, section in sections.items()},
                  {name: section["line"] for name, section in sections.items()}, wrong, time.monotonic() - begin)


def line(result):
    said = ", ".join(f"{name} {verdict}" for name, verdict in result.verdicts.items())
    return f"{'FAIL' if result.wrong else 'PASS'}  {result.root} {NAME:18} {result.isa}  {said}  {result.seconds:.0f} s"
