#!/usr/bin/env python3
"""clang-tidy over every file of a build folder, the files that passed before left out.

A file passed before when nothing that clang-tidy reads has changed since: the file, what it
includes of this project (but for lines that only comment), the rules, the flags, clang-tidy and
the packages of the system. It is kept by the hash of all these, so that a clone in another
folder finds it too.
"""

import argparse
import concurrent.futures
import hashlib
import json
import pathlib
import re
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

    def closure(self, path):
        """`path` and every file of the project that it includes, in order of their names."""
        found, waiting = set(), [path]
        while waiting:
            current = waiting.pop()
            if current in found:
                continue
            found.add(current)
            names = INCLUDE.findall(self.text(current).decode())
            waiting += [ROOT / name for name in names if (ROOT / name).is_file()]
        return sorted(found)


def system_digest(tidy):
    """One hash of clang-tidy and of the packages whose headers it reads."""
    version = subprocess.run([tidy, '--version'], capture_output=True, check=True).stdout
    packages = subprocess.run(['dpkg-query', '--show'], capture_output=True, check=True).stdout
    return hashlib.sha256(version + packages).digest()


def file_digest(entry, sources, system):
    path = pathlib.Path(entry['file'])
    digest = hashlib.sha256(system)
    digest.update(entry['command'].replace(str(ROOT), '').encode())
    rules = [folder / '.clang-tidy' for folder in [path.parent, *path.parent.parents]]
    for read in [rule for rule in rules if rule.is_file()] + sources.closure(path):
        text = sources.text(read)
        name = read.relative_to(ROOT) if read.is_relative_to(ROOT) else read
        digest.update(f'{name} {len(text)}\n'.encode())
        digest.update(text)
    return digest.hexdigest()


def check(tidy, build, path):
    """What clang-tidy found in one file: its report, and empty where it passes."""
    done = subprocess.run([tidy, '--quiet', '-p', str(build), str(path)],
                          capture_output=True, text=True)
    return '' if done.returncode == 0 else done.stdout + done.stderr


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
    marks = {}
    for entry in json.loads((arguments.build / 'compile_commands.json').read_text()):
        marks[pathlib.Path(entry['file'])] = file_digest(entry, sources, system)
    if arguments.cache:
        arguments.cache.mkdir(parents=True, exist_ok=True)
        forget_old(arguments.cache)
    waiting = [path for path, mark in marks.items()
               if not (arguments.cache and (arguments.cache / mark).exists())]
    # The largest first, so that no long one is left for the end.
    waiting.sort(key=lambda path: -path.stat().st_size)

    failed = []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        running = {pool.submit(check, arguments.clang_tidy, arguments.build, path): path
                   for path in waiting}
        for future in concurrent.futures.as_completed(running):
            path = running[future]
            if report := future.result():
                failed.append(path)
                print(report, flush=True)
            elif arguments.cache:
                (arguments.cache / marks[path]).touch()
    print(f'clang-tidy: {len(marks)} files, {len(marks) - len(waiting)} of them passed before, '
          f'{len(failed)} with findings')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
