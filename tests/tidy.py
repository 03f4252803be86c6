#!/usr/bin/env python3
"""clang-tidy over every file of a build folder, those that passed before left out.

A build folder of several sources at a time (TRAINFARE_UNITY) is read so, too: what they all
include is walked once. Each source of a layer is compiled by itself beside that, so that one
which forgets an include is found.

A reading passed before when nothing that it reads has changed since: the file, what it includes
of this project (but for lines that only comment), the rules, the flags, clang-tidy and the
packages of the system. It is kept by the hash of all these, so that a clone in another folder
finds it too.
"""

import argparse
import concurrent.futures
import hashlib
import json
import pathlib
import re
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# NOLINT is a comment that clang-tidy reads.
COMMENT = re.compile(rb'^[ \t]*//(?!.*NOLINT).*\n', re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
KEPT_DAYS = 30


class Sources:
    """The files of the project, read once, and what each includes."""

    def __init__(self):
        self._text = {}

    def text(self, path):
        if path not in self._text:
            self._text[path] = COMMENT.sub(b'', path.read_bytes())
        return self._text[path]

    def includes(self, path):
        """The files of the project that `path` names, as it names them."""
        names = INCLUDE.findall(self.text(path).decode())
        return [name for name in names if (ROOT / name).is_file()]

    def closure(self, path):
        """`path` and every file of the project that it includes, in order of their names."""
        found, waiting = set(), [path]
        while waiting:
            current = waiting.pop()
            if current in found:
                continue
            found.add(current)
            waiting += [ROOT / name for name in self.includes(current)]
        return sorted(found)


def system_digest(tidy):
    """One hash of clang-tidy and of the packages whose headers it reads."""
    version = subprocess.run([tidy, '--version'], capture_output=True, check=True).stdout
    packages = subprocess.run(['dpkg-query', '--show'], capture_output=True, check=True).stdout
    return hashlib.sha256(version + packages).digest()


class Reading:
    """One command that finds fault with one file, or with nothing."""

    def __init__(self, path, command):
        self.path = path
        self.command = command

    def digest(self, sources, system):
        digest = hashlib.sha256(system)
        digest.update(' '.join(self.command).replace(str(ROOT), '').encode())
        rules = [folder / '.clang-tidy' for folder in [self.path.parent, *self.path.parents]]
        for read in [rule for rule in rules if rule.is_file()] + sources.closure(self.path):
            text = sources.text(read).replace(str(ROOT).encode(), b'')
            name = read.relative_to(ROOT) if read.is_relative_to(ROOT) else read
            digest.update(f'{name} {len(text)}\n'.encode())
            digest.update(text)
        return digest.hexdigest()

    def run(self):
        """What is found: a report, and empty where the file passes."""
        done = subprocess.run(self.command, capture_output=True, text=True)
        return '' if done.returncode == 0 else done.stdout + done.stderr


def readings(tidy, build, sources):
    """Every reading of a build folder: clang-tidy of each file that is compiled, and the
    compiler's of each source of a layer that is compiled together with others."""
    for entry in json.loads((build / 'compile_commands.json').read_text()):
        path = pathlib.Path(entry['file'])
        flags = shlex.split(entry['command'])
        flags = flags[:flags.index('-o')]
        # The flags stand behind `--`, so that they count in the digest.
        yield Reading(path, [tidy, '--quiet', str(path), '--', *flags[1:]])
        together = sources.includes(path) if path.suffix == '.cxx' else []
        for alone in map(ROOT.joinpath, together):
            if ROOT / 'tests' not in alone.parents:
                yield Reading(alone, [*flags, '-fsyntax-only', str(alone)])


def forget_old(cache):
    limit = time.time() - KEPT_DAYS * 86400
    for mark in cache.iterdir():
        if mark.stat().st_mtime < limit:
            mark.unlink(missing_ok=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('build', type=pathlib.Path, help='folder with compile_commands.json')
    parser.add_argument('--jobs', type=int, default=1)
    parser.add_argument('--cache', type=pathlib.Path, help='folder of the files that passed')
    parser.add_argument('--clang-tidy', default='clang-tidy-14')
    arguments = parser.parse_args()

    sources = Sources()
    system = system_digest(arguments.clang_tidy)
    marks = {reading: reading.digest(sources, system)
             for reading in readings(arguments.clang_tidy, arguments.build.resolve(), sources)}
    if arguments.cache:
        arguments.cache.mkdir(parents=True, exist_ok=True)
        forget_old(arguments.cache)
    waiting = [reading for reading, mark in marks.items()
               if not (arguments.cache and (arguments.cache / mark).exists())]

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        running = {pool.submit(reading.run): reading for reading in waiting}
        for future in concurrent.futures.as_completed(running):
            if report := future.result():
                failed += 1
                print(report, flush=True)
            elif arguments.cache:
                (arguments.cache / marks[running[future]]).touch()
    print(f'clang-tidy: {len(marks)} readings, {len(marks) - len(waiting)} of them passed before, '
          f'{failed} with findings')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
