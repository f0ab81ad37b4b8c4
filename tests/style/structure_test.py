#!/usr/bin/env python3
"""Each rule of structure.py finds its violation, names the place, and leaves the legal twin alone."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import structure  # noqa: E402

# rule, file, text that breaks it, text that does not
CASES = [
    ("service-includes-service", "services/parser/a.cpp", '#include "services/vsock/b.h"\n', '#include "services/parser/b.h"\n'),
    ("common-includes-upwards", "common/ipc/a.h", '#include "services/parser/b.h"\n', '#include "common/log/log.h"\n'),
    ("deploy-includes-service", "deploy/client/a.cpp", '#include "services/parser/b.h"\n', '#include "common/ipc/b.h"\n'),
    ("driver-reads-raw", "services/driver/a.cpp", '#include "common/channel/decoder.h"\n', '#include "protocols/parser.capnp.h"\n'),
    ("driver-reads-raw", "services/driver/a.cpp", '#include "common/records/junit.h"\n', '#include "common/ipc/b.h"\n'),
    ("cli-reads-raw", "services/cli/a.cpp", '#include "common/records/junit/reader.h"\n', '#include "common/records/junit/junit.h"\n'),
    ("helper-parses-text", "services/helper/a.cpp", "#include <nlohmann/json.hpp>\n", "#include <string>\n"),
    ("helper-parses-text", "services/helper/launch/a.cpp", "#include <yaml-cpp/yaml.h>\n", "#include <vector>\n"),
    ("guest-links-more", "services/guest/a.cpp", '#include "common/log/log.h"\n', '#include "common/channel/message.h"\n'),
    ("guest-links-more", "services/guest/CMakeLists.txt", "cordon_executable(cordon-guest SOURCES m.cpp DEPENDS cordon-log)\n",
     "cordon_executable(cordon-guest SOURCES m.cpp DEPENDS cordon-channel)\n"),
    ("security-installed", "security/CMakeLists.txt", "install(TARGETS probe)\n", "add_executable(probe p.cpp)\n"),
    ("security-installed", "CMakeLists.txt", "install(DIRECTORY security DESTINATION x)\n", "install(TARGETS cordon)\n"),
    ("product-includes-security", "services/cli/a.cpp", '#include "security/probe.h"\n', '#include "common/log/log.h"\n'),
    ("machine-path", "README.md", "see /home/" + "someone/cordon\n", "see /home/agent/x\n"),
    ("todo-now", "common/log/a.cpp", "// TODO(" + "now): x\n", "// TODO(someday): x\n"),
    ("columns", "common/log/a.cpp", "// " + "x" * 98 + "\n", "// " + "x" * 97 + "\n"),
    ("file-name", "common/log/BadName.cpp", "int a;\n", None),
    ("file-name", "common/log/bad_name.h", "int a;\n", None),
]


class Rules(unittest.TestCase):
    def tree(self, name, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return pathlib.Path(folder.name)

    def test_each_rule(self):
        for rule, name, bad, good in CASES:
            with self.subTest(rule=rule, file=name):
                findings = structure.check(self.tree(name, bad))
                self.assertEqual([f.split(": ")[1] for f in findings], [rule])
                self.assertTrue(findings[0].startswith(f"{name}:1: "))
                if good is not None:
                    self.assertEqual(structure.check(self.tree(name, good)), [])


if __name__ == "__main__":
    unittest.main()
