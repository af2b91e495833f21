"""Compares documents with each other and with the code, by reading files alone: no build, no network, no GPU.

Every link and every path to a page leads somewhere; the index names every page; defaults, keys, policies, commands, options,
exit statuses, metrics, schemas, environment variables and versions in the documents are those of the code.

usage: documents_test.py [SOURCE_ROOT]
"""

import functools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve()
ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else HERE.parents[3]).resolve()
DOCS = ROOT / "docs"
MAN = DOCS / "man"
ARCHIVE = DOCS / "archive"
# Frozen copies, and bytes recorded from older files.
FROZEN = ("tests/abi/v", "tests/fuzz/corpus/", "tests/fuzz/regressions/", "docs/archive/", "docs/results/")
NO_FOLDERS = re.compile(r"\.(?!ci$)|build|(__pycache__|subprojects|shared)$")


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def name(path):
    return path.relative_to(ROOT).as_posix()


@functools.lru_cache(maxsize=None)
def sources():
    """Every text file of the tree, by its path from the root."""
    found = {}
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [one for one in folders if not NO_FOLDERS.match(one)]
        for one in files:
            path = pathlib.Path(folder, one)
            try:
                if path.is_file() and path.stat().st_size < 1 << 20:
                    found[name(path)] = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                pass
    return found


def pages(frozen=True):
    """The documents: all Markdown files."""
    return {at: text for at, text in sources().items() if at.endswith(".md") and (frozen or not at.startswith(FROZEN))}


def without_code(text):
    return re.sub(r"`[^`\n]*`", "``", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))


def anchors(text):
    """The anchors of headings, as GitHub forms them."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()).replace(" ", "-")
        number = 0
        while (one := slug + (f"-{number}" if number else "")) in found:
            number += 1
        found.add(one)
    return found


def sections(text, macro):
    """The parts of a manual page by heading."""
    parts = re.split(rf"^\.{macro} (.*)$", text.replace("\\-", "-"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def number(text):
    return int(text.replace("'", ""))


class Case(unittest.TestCase):
    def says(self, text, pattern, where):
        """As assertRegex, without the whole page in the message."""
        self.assertTrue(re.search(pattern, text, re.MULTILINE), f"{where} does not say {pattern}")


class Links(Case):
    def test_each_link_leads_to_a_page_and_to_a_heading_of_it(self):
        broken, looked_at = [], 0
        for at, text in pages().items():
            for target in re.findall(r"\]\(([^)\s]+)\)", without_code(text)):
                if re.match(r"[a-z]+:", target):
                    continue
                looked_at += 1
                path, _, heading = target.partition("#")
                there = (ROOT / at).parent / path if path else ROOT / at
                if not there.exists():
                    broken.append(f"{at}: {target}: there is no such file")
                elif heading and there.suffix == ".md" and heading not in anchors(there.read_text(encoding="utf-8")):
                    broken.append(f"{at}: {target}: there is no such heading")
        self.assertEqual(broken, [])
        self.assertGreater(looked_at, 200)

    def test_each_path_to_a_page_that_a_file_names_exists(self):
        broken, looked_at = [], 0
        for at, text in sources().items():
            if at.startswith(FROZEN):
                continue
            for path in re.findall(r"(?<![\w./-])docs/[\w./-]+\.(?:md|svg|png|[1-8])(?![\w-])", text):
                looked_at += 1
                if not (ROOT / path).exists():
                    broken.append(f"{at}: {path}")
        broken = [one for one in broken if not one.endswith("docs/results/sessions.md")]  # made by tools/sessions/record
        self.assertEqual(broken, [])
        self.assertGreater(looked_at, 50)

    def test_each_path_to_a_source_that_a_page_names_exists(self):
        planned = re.compile(r"NAME|lottery")  # of a file that the reader writes
        folders = "|".join(("client-shim", "common", "daemon", "deploy", "proto", "python", "systemd", "tests", "tools"))
        broken, looked_at = [], 0
        for at, text in pages(frozen=False).items():
            for path in re.findall(rf"(?<![\w./@-])((?:{folders})/[\w./-]*\w)(?![\w*{{<])", text):
                looked_at += 1
                if not planned.search(path) and not any((ROOT / (path + end)).exists() for end in ("", ".in")):
                    broken.append(f"{at}: {path}")
        self.assertEqual(broken, [])
        self.assertGreater(looked_at, 100)

    def test_each_runbook_is_a_heading(self):
        found = re.findall(r"runbook_url: file://@docdir@/(\S+)#(\S+)", read("systemd/monitoring/prometheus-alerts.yml"))
        self.assertTrue(found)
        for path, heading in found:
            with self.subTest(heading):
                self.assertIn(heading, anchors(read("docs/" + path)))
                self.assertIn(f"'{path}'", read("docs/meson.build"))  # it is installed

    def test_the_address_of_metrics_is_the_same_everywhere(self):
        port = re.search(r'kDefaultMetricsAddress = "127\.0\.0\.1:(\d+)"', read("daemon/config/listen_address.h")).group(1)
        for path in ("systemd/xschedd-metrics.socket", "systemd/monitoring/prometheus-scrape.yml", "daemon/xschedd.toml",
                     "docs/man/xschedd.toml.5", "docs/reference/metrics.md"):
            with self.subTest(path):
                self.assertEqual(set(re.findall(r"(?:127\.0\.0\.1|\[::1\]):(\d+)", read(path))), {port})

    def test_the_index_names_each_page(self):
        index = DOCS / "README.md"
        named = {(DOCS / path.split("#")[0]).resolve() for path in re.findall(r"\]\(([^)\s:]+)\)", index.read_text(encoding="utf-8"))}
        wanted = [*DOCS.glob("*.md"), *MAN.glob("*.[1-8]"),
                  *(path for kind in ("tutorial", "how-to", "reference", "explanation", "contributing")
                    for path in (DOCS / kind).rglob("*.md"))]
        self.assertEqual([name(path) for path in wanted if path != index and path.resolve() not in named], [])

    def test_installed_documents_exist(self):
        named = re.findall(r"'([\w./-]+\.md)'", read("docs/meson.build"))
        self.assertTrue(named)
        for path in named:
            self.assertTrue((DOCS / path).exists(), path)
        unit = re.search(r"@docdir@/(\S+)", read("systemd/xschedd.service.in")).group(1)
        self.assertIn(unit, named)

    def test_performance_is_short(self):
        self.assertLessEqual(len(read("docs/explanation/performance.md").splitlines()), 150)

    def test_figures_are_in_results_that_commands_wrote(self):
        """Each figure with a decimal point in the pages that give a GPU's figures is in docs/results or in the archive."""
        evidence = "".join(text for at, text in pages().items() if at.startswith(("docs/results/", "docs/archive/")))
        known = set(re.findall(r"(?<![\d.])\d+\.\d+(?![\d.])", evidence))
        for at in ("README.md", "docs/explanation/performance.md", "docs/explanation/scale.md"):
            text = re.sub(r"\]\([^)]*\)|libc[\w.]*|`[^`]*`|Status: [\d.]+", "", read(at))
            said = re.findall(r"(?<![\d.])\d+\.\d+(?![\d.])", text)
            self.assertTrue(said, at)
            self.assertEqual([one for one in said if one not in known], [], f"{at}: in no result")


class Pictures(Case):
    def test_the_architecture_is_what_its_program_draws(self):
        with tempfile.TemporaryDirectory() as folder:
            drawn = pathlib.Path(folder, "drawn.svg")
            subprocess.run([sys.executable, ROOT / "tools/pictures/architecture", "--output", drawn], check=True)
            self.assertEqual(drawn.read_text(encoding="utf-8"), read("docs/pictures/architecture.svg"),
                             "draw it again: tools/pictures/architecture")


def policy_settings():
    """The default of each numeric setting, by key."""
    body = re.search(r"^struct Settings \{$(.*?)^\};$", read("daemon/policy/settings.h"), re.MULTILINE | re.DOTALL).group(1)
    return {key: number(value) for key, value in re.findall(r"uint32_t (\w+) = ([\d']+);", body)}


def policy_options():
    """The options of `policy set`, from the table's keys."""
    keys = re.findall(r'\{"(\w+)",\s*&Settings::', read("daemon/policy/settings.h"))
    return {"--" + re.sub(r"_(us|ms|ms_per_s|percent)$", "", key).replace("_", "-") for key in keys}


class Settings(Case):
    """Keys of the configuration and their defaults. tools/settings/write compares the settings of daemon/policy."""

    def config(self, struct):
        body = re.search(rf"^struct {struct} \{{$(.*?)^\}};$", read("daemon/config/config.h"), re.MULTILINE | re.DOTALL).group(1)
        found = {key: number(value) for key, value in re.findall(r"uint32_t (\w+) = ([\d']+);", body)}
        found.update(re.findall(r"bool (\w+) = (\w+);", body))
        return found

    def installed(self):
        """The keys of daemon/xschedd.toml and their values, by table."""
        found = {"": {}}
        table = found[""]
        for line in read("daemon/xschedd.toml").splitlines():
            if heading := re.match(r"^\[(\w+)\]$", line):
                table = found.setdefault(heading.group(1), {})
            elif entry := re.match(r"^(?:# )?(\w+) = (.*)$", line):
                if not line.startswith("#"):
                    table[entry.group(1)] = entry.group(2).strip('"')
        return found

    def known_keys(self):
        found = {}
        for table, keys in re.findall(r'OnlyKeys\(\w+, "\[+(\w+)\]+",\s*\{(.*?)\}\)', read("daemon/config/config.cc"), re.DOTALL):
            found[table] = set(re.findall(r'"(\w+)"', keys))
        rows = read("daemon/config/keys.h")
        for table, key in re.findall(r'\{"(\w+)", "(\w+)", In<', rows):
            found.setdefault(table, set()).add(key)
        found["quota"] = set(re.findall(r'QuotaRow<[^>]*>\("(\w+)"', rows))
        return found

    def test_the_installed_file_has_the_defaults_and_every_key(self):
        installed = self.installed()
        numbers = {"quota": self.config("Quota"), "daemon": self.config("Config")}
        for table, defaults in numbers.items():
            for key, value in defaults.items():
                with self.subTest(f"{table}.{key}"):
                    self.assertEqual(installed[table].get(key), str(value))
        known = self.known_keys()
        for table in ("daemon", "metrics", "access"):
            with self.subTest(table):
                self.assertEqual(known[table], set(installed[table]))
        for key in known["rule"] | known["ceiling"]:
            self.says(read("daemon/xschedd.toml"), rf"^#.*\b{key}\b", "daemon/xschedd.toml")

    def test_the_manual_page_has_the_defaults_and_every_key(self):
        described = sections(sections(read("docs/man/xschedd.toml.5"), "Sh")["DESCRIPTION"], "Ss")
        for table, keys in self.known_keys().items():
            heading = f"[[{table}]]" if table in ("rule", "ceiling") else f"[{table}]"
            said = {key for line in re.findall(r"^\.It (Ic .*)$", described[heading], re.MULTILINE)
                    for key in re.findall(r"\bIc (\w+)", line)}
            with self.subTest(table):
                self.assertEqual(said, keys)
        for table, defaults in {"quota": self.config("Quota"), "daemon": self.config("Config")}.items():
            for key, value in defaults.items():
                with self.subTest(f"{table}.{key}"):
                    self.says(described[f"[{table}]"], rf"^\.It Ic {key} Pq .*, {value}$", "xschedd.toml(5)")

    def test_the_plugins_files_have_every_key(self):
        """nri.toml and slurm.toml describe what their parsers know."""
        for path, parser in (("tools/nri/nri.toml", "tools/nri/settings.cc"),
                             ("tools/slurm/slurm.toml", "tools/xschedctl/slurm/limits.cc")):
            keys = {key for known in re.findall(r"OnlyKeys\([^{};]*\{([^}]*)\}", read(parser)) for key in re.findall(r'"(\w+)"', known)}
            said = set(re.findall(r"^#? ?(\w+) = ", read(path), re.MULTILINE))
            said |= set(re.findall(r"^#? ?\[+(\w+)", read(path), re.MULTILINE))
            with self.subTest(path):
                self.assertGreater(len(keys), 4)
                self.assertEqual(said, keys)

    def test_the_plugins_defaults(self):
        code = dict(re.findall(r"^  (?:int|std::uint32_t) (\w+) = (\d+);", read("tools/nri/settings.h"), re.MULTILINE))
        self.assertEqual(set(code), {"ceiling", "weight_ceiling"})
        for key, value in code.items():
            self.says(read("tools/nri/nri.toml"), rf"^# {key} = {value}$", "nri.toml")
        limits = dict(re.findall(r"\b(\w+) = ([\d']+);", read("tools/xschedctl/slurm/limits.h")))
        self.says(read("tools/slurm/slurm.toml"), rf"^#nice_unit = {number(limits['nice_unit'])}$", "slurm.toml")
        words = dict(re.findall(r'\{"(\w+)", (-?\d+)\}', read("tools/xschedctl/slurm/limits.h")))
        self.assertEqual(dict(re.findall(r"^#(low|normal|high) = (-?\d+)$", read("tools/slurm/slurm.toml"), re.MULTILINE)), words)

    def test_the_annotations_of_pods(self):
        words = re.search(r"kNames\[\] = \{(.*?)\}", read("tools/nri/translate.cc")).group(1)
        known = {f"xschedd.io/{word}" for word in re.findall(r'"(\w+)"', words)}
        self.assertEqual(set(re.findall(r"^\| `(xschedd\.io/\w+)` \|", read("docs/how-to/nri.md"), re.MULTILINE)), known)
        listed = re.search(r"^ANNOTATIONS = \{(.*?)\}", read("tests/unit/deploy/manifests_test.py"), re.MULTILINE).group(1)
        self.assertEqual(set(re.findall(r'"([^"]+)"', listed)), known)

    def test_the_defaults_in_policies(self):
        text = read("docs/explanation/policies.md")
        said = re.findall(r"`(\w+)`(?:, | \()default (\d+)(?: (ms|µs))?", text)
        self.assertGreater(len(said), 6)
        for key, value, unit in said:
            wanted = policy_settings()[key]
            factor = 1000 if unit == "ms" and key.endswith("_us") else 1
            with self.subTest(key):
                self.assertEqual(int(value) * factor, wanted)

    def test_the_quotas_in_the_security_model(self):
        rows = dict(re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| ([^|]*) \|", read("docs/explanation/security-model.md"), re.MULTILINE))
        quota, seen = self.config("Quota"), set()
        for keys, values in rows.items():
            keys = re.findall(r"`(\w+)`", keys)
            if set(keys) <= set(quota):
                for key, value in zip(keys, re.findall(r"\d+", values)):
                    seen.add(key)
                    with self.subTest(key):
                        self.assertEqual(int(value), quota[key])
        self.assertEqual(set(quota) - seen, {"root_times"})


class Commands(Case):
    def code(self):
        """The options in the file of each command, by the command's first word."""
        found = {}
        for path in sorted((ROOT / "tools/xschedctl").glob("command_*.cc")):
            text = path.read_text(encoding="utf-8")
            options = set(re.findall(r'"(?:\w+,)?(--[\w-]+)', text))
            if "AddSelectorOptions" in text:
                options |= set(re.findall(r'Add(?:Option|Flag)\("(?:\w+,)?(--[\w-]+)"', read("tools/xschedctl/command_line.cc"))) | {"--pid"}
            if "AddDurationOption" in text:
                options |= {"--duration"}
            if path.stem == "command_policy":
                options |= policy_options()
            for command in re.findall(r'program\.AddCommand\("([\w-]+)"', text):
                found[command] = options
        everywhere = set(re.findall(r'syntax_\.\w+\("(--[\w-]+)"', read("tools/xschedctl/command_line.cc"))) | {"--help", "--version"}
        self.assertGreater(len(found), 15)
        return {command: options | everywhere for command, options in found.items()}, everywhere

    def test_each_command_has_its_place_in_both_references(self):
        code, _ = self.code()
        described = {heading.split()[0] for page in ROOT.glob("docs/man/xschedctl*.1")
                     for heading in sections(sections(page.read_text(), "Sh")["COMMANDS"], "Ss")}
        self.assertEqual(described, set(code))
        reference = read("docs/reference/xschedctl.md").split("## Commands")[1].split("\n## ")[0]
        listed = {word for row in re.findall(r"^\| (`.*?) \|", reference, re.MULTILINE) for word in re.findall(r"`([a-z]+(?:-[a-z]+)*)\b", row)}
        self.assertEqual(set(code) - listed, set())

    def test_each_option_is_in_the_reference(self):
        code, _ = self.code()
        reference = read("docs/reference/xschedctl.md")
        said = set(re.findall(r"--[a-z][\w-]*", reference))
        for command, options in code.items():
            with self.subTest(command):
                self.assertEqual(options - said - {"--help", "--version"}, set())

    def test_each_command_line_in_a_document_is_one(self):
        code, everywhere = self.code()
        wrong, looked_at = [], 0
        for at, text in [*pages(frozen=False).items(), *((name(path), path.read_text(encoding="utf-8").replace("\\-", "-"))
                                                         for path in MAN.glob("*.[1-8]"))]:
            for line in re.findall(r"(?:`|^[$#] |^| )xschedctl ((?:[a-z]|--)[^`\n]*)", text, re.MULTILINE):
                line = line.split(" -- ")[0].split("#")[0].split(";")[0]
                words = line.split()
                options = re.findall(r"(?<![\w-])--[a-z][\w-]*", line)
                command = next((word for word in words if re.fullmatch(r"[a-z]+(?:-[a-z]+)*", word)), None)
                if options and command in code:
                    looked_at += 1
                    wrong += [f"{at}: xschedctl {line}: {one}" for one in options if one not in code[command]]
                elif options and command is None:
                    wrong += [f"{at}: xschedctl {line}: {one}" for one in options if one not in everywhere]
            for command in re.findall(r"`xschedctl ([a-z]+(?:-[a-z]+)*)\b", text):
                looked_at += 1
                if command not in code:
                    wrong.append(f"{at}: there is no xschedctl {command}")
        self.assertEqual(wrong, [])
        self.assertGreater(looked_at, 100)

    def test_exit_statuses(self):
        code = set(re.findall(r"^  k\w+ = (\d+),", read("tools/xschedctl/exit_code.h"), re.MULTILINE))
        page = set(re.findall(r"^\.It (\d+)$", sections(read("docs/man/xschedctl.1"), "Sh")["EXIT STATUS"], re.MULTILINE))
        reference = read("docs/reference/xschedctl.md").split("## Exit status")[1].split("\n## ")[0]
        self.assertEqual(page, code)
        self.assertEqual(set(re.findall(r"^\| (\d+) \|", reference, re.MULTILINE)), code)
        for at, text in pages(frozen=False).items():
            for status in re.findall(r"exit (?:code|status) (\d+)\b", text):
                with self.subTest(at):
                    self.assertIn(status, code | {"77"})

    def test_exit_statuses_of_the_daemon_and_the_plugin(self):
        main, plugin = read("daemon/main.cc"), read("tools/nri/main.cc")
        daemon = dict(re.findall(r"\bkExit(\w+) = (\d)", re.search(r"enum ExitCode \{(.*?)\}", main).group(1)))
        page = sections(read("docs/man/xschedd.8"), "Sh")["EXIT STATUS"]
        self.assertEqual(re.findall(r"^\.It (\d)$", page, re.MULTILINE), [*daemon.values()])
        self.assertEqual(re.findall(r"^//   (\d)  ", main, re.MULTILINE), [*daemon.values()])
        nri = dict(re.findall(r"constexpr int kExit(\w+) = (\d);", plugin))
        for path, wanted in (("systemd/xschedd.service.in", (daemon["Usage"], daemon["Config"])),
                             ("systemd/xschedd-nri.service.in", (nri["Usage"],))):  # another start repairs neither
            self.says(read(path), rf"^RestartPreventExitStatus={' '.join(wanted)}$", path)

    def test_commands_of_dev(self):
        known = set(re.findall(r"^cmd_(\w+)\(\)", read("dev"), re.MULTILINE))
        self.assertGreater(len(known), 10)
        for at, text in pages(frozen=False).items():
            for command in re.findall(r"\./dev ([a-z]+)", text):
                with self.subTest(at):
                    self.assertIn(command, known)


class Surface(Case):
    def test_metrics(self):
        endings = {"Counter": "_total", "Info": "_info"}
        code = {family + endings.get(kind, "") for family, kind in
                re.findall(r'\{\{"(\w+)",\s*MetricType::k(\w+)', read("daemon/metrics/metrics_families.cc"))}
        rows = set(re.findall(r"^\| `((?:xschedd|hw|process)_\w+)` \| (?:counter|gauge|histogram|info) \|",
                              read("docs/reference/metrics.md"), re.MULTILINE))
        self.assertEqual(rows, code)
        known = code | {one + end for one in code for end in ("_bucket", "_count", "_sum")}
        for at, text in pages(frozen=False).items():
            for one in re.findall(r"`(xschedd_[a-z_]+_(?:total|seconds|ratio|info|bytes))`", text):
                with self.subTest(at):
                    self.assertIn(one, known)

    def test_alerts(self):
        alerts = re.findall(r"- alert: (\w+)", read("systemd/monitoring/prometheus-alerts.yml"))
        self.assertEqual(re.findall(r"^### (Xschedd\w+)$", read("docs/reference/metrics.md"), re.MULTILINE), alerts)

    def test_schemas(self):
        files = {path.stem for path in (ROOT / "tools/xschedctl/schema").glob("*.json")}
        said = {"-".join(one) for one in re.findall(r"^\| `xschedctl/([a-z-]+)/(\d+)` \|", read("docs/reference/json.md"), re.MULTILINE)}
        self.assertEqual(said, files)

    def test_environment_variables(self):
        read_by_code = set()
        for at, text in sources().items():
            if not at.startswith(FROZEN) and not at.endswith(".md") and not at.startswith("docs/"):
                read_by_code |= set(re.findall(r"\bXSCHEDD_[A-Z_]+\b", text))
        for at, text in pages(frozen=False).items():
            for one in re.findall(r"\bXSCHEDD_[A-Z_]+\b", text):
                with self.subTest(at):
                    self.assertIn(one, read_by_code | {"XSCHEDD_"})
        shim = set(re.findall(r"^\.It Ev (\w+)$", sections(read("docs/man/xschedd-shim.7"), "Sh")["ENVIRONMENT"], re.MULTILINE))
        table = set(re.findall(r"^\| `(XSCHEDD_\w+)(?:=1)?` \|", read("docs/explanation/shim.md"), re.MULTILINE))
        self.assertEqual(table, shim)

    def test_functions_of_the_c_api(self):
        code = set(re.findall(r"^XSCHEDD_FUNCTION\([^,]*, (xschedd_\w+)", read("client-shim/include/xschedd.h"), re.MULTILINE))
        self.assertGreater(len(code), 10)
        page = set(re.findall(r"`(xschedd_[a-z_]+)`", read("docs/reference/c-api.md")))
        self.assertEqual(code - page, set())
        for at in ("docs/reference/c-api.md", "docs/how-to/porting-from-xsched.md"):
            for one in re.findall(r"`(xschedd_(?:set|hold|release|get|version|api|result)\w*)", read(at)):
                with self.subTest(at):
                    self.assertIn(one, code)

    def test_the_required_glibc_is_the_same_everywhere(self):
        low, high = re.search(r"^HIGHEST_GLIBC = \((\d+), (\d+)\)", read("tools/dist/needs.py"), re.MULTILINE).groups()
        texts = {**pages(frozen=False), "docs/man/xschedd-shim.7": read("docs/man/xschedd-shim.7")}
        said = [(at, version) for at, text in texts.items() for version in re.findall(r"glibc (\d\.\d+)[^.;\n]*? or later", text)]
        self.assertGreater(len(said), 2)
        for at, version in said:
            with self.subTest(at):
                self.assertEqual(version, f"{low}.{high}")

    def test_versions(self):
        release = re.search(r"^  version: '([\d.]+)'", read("meson.build"), re.MULTILINE).group(1)
        self.says(read("CHANGELOG.md"), rf"^## .*{re.escape(release)}", "CHANGELOG.md")
        published = re.findall(r"^    \{(\d+), 0x[0-9a-f]+, \d+, \d+\},$", read("common/versions.cc"), re.MULTILINE)
        rows = re.findall(r"^\| (\d+) \| ", read("docs/reference/releases.md"), re.MULTILINE)
        self.assertEqual(rows, published)
        api = re.search(r"#define XSCHEDD_API_VERSION (\d+)", read("client-shim/include/xschedd.h")).group(1)
        self.assertIn(f"`XSCHEDD_API_VERSION` is {api}", read("docs/reference/c-api.md"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
