#!/usr/bin/env python3
"""tests/tidy.py over a project of two files: what it reads again, and what not."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / 'tidy.py'
# Writes down what it was asked about; a file that says BAD has a finding.
CLANG_TIDY = '''#!/bin/sh
case "$1" in --version) echo pretended; exit ;; esac
file=$2
echo "${file##*/}" >>"$(dirname "$0")/asked"
if grep -q BAD "$file"; then echo "finding in $file"; exit 1; fi
'''


class Tidy(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        (self.root / 'tests').mkdir()
        shutil.copy(SCRIPT, self.root / 'tests')
        (self.root / 'clang-tidy').write_text(CLANG_TIDY)
        (self.root / 'clang-tidy').chmod(0o755)
        self.write('.clang-tidy', 'Checks: "*"\n')
        self.write('one.h', 'int One();\n')
        self.write('one.cc', '#include "one.h"\n#include <vector>\nint One() { return 1; }\n')
        self.write('two.cc', 'int Two() { return 2; }\n')
        self.write('compile_commands.json', json.dumps(
            [{'file': str(self.root / name), 'command': f'c++ -I{self.root} -o {name}.o -c {name}',
              'directory': str(self.root)} for name in ('one.cc', 'two.cc')]))

    def write(self, name, text):
        (self.root / name).write_text(text)

    def run_tidy(self):
        """Exit code, and the files that clang-tidy was asked about."""
        asked = self.root / 'asked'
        asked.write_text('')
        done = subprocess.run(
            [sys.executable, '-B', str(self.root / 'tests' / 'tidy.py'), str(self.root),
             '--cache', str(self.root / 'cache'),
             '--clang-tidy', str(self.root / 'clang-tidy')],
            capture_output=True, text=True)
        self.assertEqual(done.stderr, '')
        self.output = done.stdout
        return done.returncode, sorted(asked.read_text().split())

    def test_what_passed_is_not_read_again(self):
        self.assertEqual(self.run_tidy(), (0, ['one.cc', 'two.cc']))
        self.assertEqual(self.run_tidy(), (0, []))
        self.assertIn('2 of them passed before', self.output)

    def test_a_header_is_read_by_whoever_includes_it(self):
        self.run_tidy()
        self.write('one.h', 'long One();\n')
        self.assertEqual(self.run_tidy(), (0, ['one.cc']))

    def test_comments_do_not_count_unless_clang_tidy_reads_them(self):
        self.run_tidy()
        self.write('one.h', '// The first.\nint One();\n')
        self.assertEqual(self.run_tidy(), (0, []))
        self.write('one.h', '// NOLINTNEXTLINE\nint One();\n')
        self.assertEqual(self.run_tidy(), (0, ['one.cc']))

    def test_other_rules_are_other_results(self):
        self.run_tidy()
        self.write('.clang-tidy', 'Checks: "-*"\n')
        self.assertEqual(self.run_tidy(), (0, ['one.cc', 'two.cc']))

    def test_a_finding_is_named_again_and_again(self):
        self.write('two.cc', 'int Two() { return BAD; }\n')
        for _ in range(2):
            code, asked = self.run_tidy()
            self.assertEqual(code, 1)
            self.assertIn('two.cc', asked)
            self.assertIn('finding in', self.output)

    def test_a_source_that_is_compiled_with_others_compiles_alone(self):
        """It is read once with them, and its own includes are found wanting."""
        self.write('both.cxx', ''.join(f'#include "{self.root / name}"\n'
                                       for name in ('one.cc', 'two.cc')))
        self.write('compile_commands.json', json.dumps(
            [{'file': str(self.root / 'both.cxx'), 'directory': str(self.root),
              'command': f'c++ -I{self.root} -o both.o -c both.cxx'}]))
        self.assertEqual(self.run_tidy(), (0, ['both.cxx']))
        self.assertIn('3 readings', self.output)
        self.write('two.cc', 'int Two() { std::vector<int> v; return 2; }\n')
        code, asked = self.run_tidy()
        self.assertEqual((code, asked), (1, ['both.cxx']))
        self.assertIn('two.cc:1:18: error', self.output)


if __name__ == '__main__':
    unittest.main()
