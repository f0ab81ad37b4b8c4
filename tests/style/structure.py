#!/usr/bin/env python3
"""Checks the rules of the tree that a compiler cannot: who may include whom, who may link what, what is installed.

Usage: structure.py [--root DIR]. Prints one line per violation (file:line: rule: what to do) and exits 1 if there is any.
Only files that git would track count. The rules are those of the architecture: see README.md, "The tree".
"""

import argparse
import pathlib
import re
import subprocess
import sys

SOURCE = {".h", ".cpp"}
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]')
DEPENDS = re.compile(r"\b(cordon-[a-z0-9-]+)\b")
SERVICES = {"parser", "collector", "driver", "helper", "vsock", "guest", "sink", "cli"}
TEXT_PARSERS = re.compile(
    r"^(nlohmann/|simdjson|yaml-cpp/|expat|re2/|rapidjson|libxml|pugixml|tinyxml|json/|jansson)")
# What the CLI may know of records: types and names. What reads a file is the parser's.
RECORD_TYPES = {f"common/records/{name}.h" for name in ("report", "junit/junit", "verdicts/verdicts", "coverage/coverage")}
# Homes of guests (agent, postgres) are the product's; anybody else's is a developer's machine.
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:home/(?!agent\b|postgres\b|[<$*{])\w|Users/\w)")
COLUMNS = 100  # of C++; a raw string is as long as what it quotes
NAME = re.compile(r"^[a-z0-9]+(?:-[a-z0-9]+)*(?:_test|_fuzz|_bench)?$")


class Tree:
    def __init__(self, root):
        self.root = root
        self.findings = []

    def files(self):
        listed = subprocess.run(
            ["git", "-C", str(self.root), "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
            capture_output=True, check=False)
        if listed.returncode == 0:
            names = [n for n in listed.stdout.decode().split("\0") if n]
        else:
            names = [str(p.relative_to(self.root)) for p in self.root.rglob("*") if p.is_file()]
        return sorted(pathlib.PurePosixPath(n) for n in names if (self.root / n).is_file())

    def report(self, path, line, rule, remedy):
        self.findings.append(f"{path}:{line}: {rule}: {remedy}")

    def text(self, path):
        return (self.root / path).read_text(encoding="utf-8", errors="replace")


def service_of(path):
    parts = path.parts
    return parts[1] if len(parts) > 2 and parts[0] == "services" and parts[1] in SERVICES else None


def check_includes(tree, path):
    service = service_of(path)
    for number, line in enumerate(tree.text(path).splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        target = match.group(1)
        head = target.split("/")
        if service and head[0] == "services" and head[1] != service:
            tree.report(path, number, "service-includes-service",
                        f"services/{service} may not include {target}; share through common/ or protocols/")
        if path.parts[0] == "common" and head[0] in ("services", "tests", "security", "deploy"):
            if not (head[0] == "tests" and path.stem.endswith("_test")):
                tree.report(path, number, "common-includes-upwards", f"common/ may not include {target}")
        if path.parts[0] == "deploy" and head[0] == "services":
            tree.report(path, number, "deploy-includes-service", f"use protocols/ and common/, not {target}")
        if service == "driver" and (target.startswith("common/channel/") or target.startswith("common/records/")):
            tree.report(path, number, "driver-reads-raw",
                        f"the driver sees results of {target} only through protocols/")
        if service == "cli" and target.startswith("common/records/") and target not in RECORD_TYPES:
            tree.report(path, number, "cli-reads-raw", f"the CLI asks a sandboxed parser; it may not link {target}")
        if service == "helper" and TEXT_PARSERS.match(target):
            tree.report(path, number, "helper-parses-text", f"the helper links no parser of a text format: {target}")
        if service == "guest" and head[0] in ("common", "protocols", "policy") and not target.startswith(
                "common/channel/"):
            if not path.stem.endswith("_test"):
                tree.report(path, number, "guest-links-more",
                            f"the guest agent uses common/channel and its own code alone, not {target}")
        if head[0] == "security" and path.parts[0] not in ("security", "tests"):
            tree.report(path, number, "product-includes-security", f"nothing outside security/ includes {target}")


def check_cmake(tree, path):
    text = tree.text(path)
    for number, line in enumerate(text.splitlines(), 1):
        code = line.split("#", 1)[0]
        if path.parts[0] == "security" and re.search(r"\binstall\s*\(", code, re.I):
            tree.report(path, number, "security-installed", "nothing in security/ is installed")
        if re.search(r"\binstall\s*\(.*\bsecurity\b", code, re.I):
            tree.report(path, number, "security-installed", "nothing in security/ is installed")
    if service_of(path) == "guest":
        for call in re.finditer(r"cordon_executable\s*\(\s*cordon-guest\b([^)]*)\)", text):
            for dependency in DEPENDS.findall(call.group(1)):
                if dependency not in ("cordon-channel", "cordon-guest", "cordon-guest-core"):
                    number = text[: call.start()].count("\n") + 1
                    tree.report(path, number, "guest-links-more", f"the guest agent may not link {dependency}")


def check_columns(tree, path):
    for number, line in enumerate(tree.text(path).splitlines(), 1):
        if len(line) > COLUMNS and 'R"' not in line:
            tree.report(path, number, "columns", f"at most {COLUMNS}; clang-format leaves comments to you")


def check_text(tree, path):
    for number, line in enumerate(tree.text(path).splitlines(), 1):
        if MACHINE_PATH.search(line):
            tree.report(path, number, "machine-path", "a path of one machine does not belong in the project")
        if "TODO(" + "now)" in line:
            tree.report(path, number, "todo-now", "finish it, or classify it (security, perf, someday)")


def check(root):
    tree = Tree(root)
    for path in tree.files():
        top = path.parts[0]
        if path.suffix in SOURCE:
            check_includes(tree, path)
            check_columns(tree, path)
            if not NAME.match(path.stem):
                tree.report(path, 1, "file-name", "kebab-case.h/.cpp, tests as kebab-case_test.cpp")
        if path.name == "CMakeLists.txt" or path.suffix == ".cmake":
            check_cmake(tree, path)
        if path.parts[:2] != ("tests", "style") and top != "LICENSE" and path.suffix in (
                ".h", ".cpp", ".md", ".py", ".sh", ".txt", ".capnp", ".policy", ".cmake", "") and not (
                path.parts[:2] == ("protocols", "vectors") and path.suffix == ".json"):
            check_text(tree, path)
    return tree.findings


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    findings = check(parser.parse_args().root)
    for finding in findings:
        print(finding)
    print(f"structure: {len(findings)} violation(s)")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
